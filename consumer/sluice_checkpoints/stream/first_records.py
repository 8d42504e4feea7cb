"""What comes first from a position on, as Kinesis shows it: which records are gone, and which closed shards hold one since a time.

A record that retention has passed cannot be read again, so a position inside it equals the position behind it. A closed shard without a record since
a time was over by then, or brought nothing since: nothing of it is read again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import ShardPlace, StreamNotFound

# An empty reply says little: the service walks a thin shard piece by piece (API guide, GetRecords). So many calls a shard, and no more.
CALLS = 10
TIPS = 2  # empty replies from the tip: a record becomes readable some time after its arrival, so a reader wants as many
PAUSE_SECONDS = 0.2  # GetRecords: 5 calls a second and shard
THREADS = 8


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
            record: Mapping[str, Any] = reply["Records"][0]
            return record
        iterator = reply.get("NextShardIterator")
        at_the_tip += reply.get("MillisBehindLatest") == 0
        if iterator is None or at_the_tip == TIPS:
            return None
        sleep(PAUSE_SECONDS)
    raise NotShown(shard_id)


class BotoPassedRecords:
    """`PassedRecords` over boto3."""

    def __init__(self, catalog: BotoStreamCatalog, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._sleep = catalog, sleep

    def passed(self, places: Iterable[ShardPlace]) -> frozenset[ShardPlace]:
        return frozenset(place for place in places if self._passed(*place))

    def _passed(self, shard_id: str, number: str) -> bool:
        """Whether what comes first at this number is another record, or nothing up to the tip."""
        try:
            record = first_record(self._catalog, shard_id, {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number}, self._sleep)
        except NotShown:
            return False
        return record is None or int(record["SequenceNumber"]) > int(number)


class BotoRecentRecords:
    """`RecentRecords` over boto3: several shards at a time."""

    def __init__(self, catalog: BotoStreamCatalog, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._sleep = catalog, sleep

    def since(self, shard_ids: Iterable[str], millis: int) -> frozenset[str]:
        ids = list(shard_ids)
        with ThreadPoolExecutor(THREADS) as pool:
            holds = pool.map(lambda shard: self._holds(shard, millis), ids)
            return frozenset(shard for shard, some in zip(ids, holds, strict=True) if some)

    def _holds(self, shard_id: str, millis: int) -> bool:
        """Whether a record comes from then on. Where so many replies do not show it, one may."""
        begin = datetime.fromtimestamp(millis / 1000, UTC)
        try:
            return first_record(self._catalog, shard_id, {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": begin}, self._sleep) is not None
        except NotShown:
            return True
