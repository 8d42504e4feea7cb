"""Which record of a shard comes first from a position on, as Kinesis shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import StreamNotFound

# An empty reply says little: the service walks a thin shard piece by piece (API guide, GetRecords). So many calls a shard, and no more.
CALLS = 10
TIPS = 2  # empty replies from the tip: a record becomes readable some time after its arrival, so a reader wants as many
PAUSE_SECONDS = 0.2  # GetRecords: 5 calls a second and shard


class NotShown(Exception):
    """So many replies showed neither a record nor the tip."""


def first_record(catalog: BotoStreamCatalog, shard_id: str, where: Mapping[str, Any], sleep: Callable[[float], None]) -> Mapping[str, Any] | None:
    """The record, one a call; None: there is none up to the tip or the end, or the shard expired since it was listed.

    Args:
        catalog: of the stream, which was just described.
        shard_id: of the shard.
        where: type and position of the iterator, as GetShardIterator takes them.
        sleep: between two calls.

    Raises:
        NotShown: after `CALLS` replies it is not known.
    """
    address = catalog.address
    try:
        asked = {**address.stream, "ShardId": shard_id, **where}
        iterator = catalog.call("GetShardIterator", "get_shard_iterator", asked)["ShardIterator"]
    except StreamNotFound:
        return None
    at_the_tip = 0
    for _ in range(CALLS):
        reply = catalog.call("GetRecords", "get_records", {"ShardIterator": iterator, "Limit": 1} | address.stream_arn)
        if reply["Records"]:
            found: Mapping[str, Any] = reply["Records"][0]
            return found
        iterator = reply.get("NextShardIterator")
        at_the_tip += reply.get("MillisBehindLatest") == 0
        if iterator is None or at_the_tip == TIPS:
            return None
        sleep(PAUSE_SECONDS)
    raise NotShown(shard_id)
