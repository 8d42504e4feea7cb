"""Is a record still in its shard? One that retention has passed cannot be read again, so a position inside it equals the position behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_record import NotShown, first_record
from sluice_checkpoints.stream.model import ShardPlace


class BotoPassedRecords:
    """`PassedRecords` over boto3."""

    def __init__(self, catalog: BotoStreamCatalog, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._sleep = catalog, sleep

    def passed(self, places: Iterable[ShardPlace]) -> frozenset[ShardPlace]:
        return frozenset(place for place in places if self._passed(*place))

    def _passed(self, shard_id: str, number: str) -> bool:
        """Whether what comes first at this number is another record, or nothing up to the tip."""
        try:
            found = first_record(self._catalog, shard_id, {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number}, self._sleep)
        except NotShown:
            return False
        return found is None or int(found["SequenceNumber"]) > int(number)
