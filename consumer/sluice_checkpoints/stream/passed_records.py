"""Is a record still in its shard? One that retention has passed cannot be read again, so a position inside it equals the position behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import ShardPlace, StreamNotFound

# An empty reply says little: the service walks a thin shard piece by piece (API guide, GetRecords). So many calls a shard, and no more.
CALLS = 10
PAUSE_SECONDS = 0.2  # GetRecords: 5 calls a second and shard


class BotoPassedRecords:
    """`PassedRecords` over boto3: one record a call, at most `CALLS` a shard."""

    def __init__(self, catalog: BotoStreamCatalog, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._sleep = catalog, sleep

    def passed(self, places: Iterable[ShardPlace]) -> frozenset[ShardPlace]:
        """See `stream.model.PassedRecords`."""
        return frozenset(place for place in places if self._passed(*place))

    def _passed(self, shard_id: str, number: str) -> bool:
        """Whether what comes first at this number is another record, or nothing up to the tip."""
        where = {"ShardId": shard_id, "ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
        try:
            iterator = self._catalog.call("GetShardIterator", "get_shard_iterator", {"StreamName": self._catalog.name} | where)["ShardIterator"]
        except StreamNotFound:  # the stream was just described: the shard expired since it was listed
            return True
        for _ in range(CALLS):
            reply = self._catalog.call("GetRecords", "get_records", {"ShardIterator": iterator, "Limit": 1})
            if reply["Records"]:
                return int(reply["Records"][0]["SequenceNumber"]) > int(number)
            iterator = reply.get("NextShardIterator")
            if iterator is None or reply.get("MillisBehindLatest") == 0:
                return True
            self._sleep(PAUSE_SECONDS)
        return False
