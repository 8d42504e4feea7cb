"""Does a closed shard hold a record since a time? One that does not was over by then, or brought nothing since: nothing of it is read again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_record import NotShown, first_record

THREADS = 8


class BotoRecentRecords:
    """`RecentRecords` over boto3: several shards at a time."""

    def __init__(self, catalog: BotoStreamCatalog, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._sleep = catalog, sleep

    def since(self, shard_ids: Iterable[str], millis: int) -> frozenset[str]:
        ids = list(shard_ids)
        with ThreadPoolExecutor(THREADS) as pool:
            holds = pool.map(lambda shard: self._holds(shard, millis), ids)
            return frozenset(shard for shard, found in zip(ids, holds, strict=True) if found)

    def _holds(self, shard_id: str, millis: int) -> bool:
        """Whether a record comes from then on. Where so many replies do not show it, one may."""
        begin = datetime.fromtimestamp(millis / 1000, UTC)
        try:
            return first_record(self._catalog, shard_id, {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": begin}, self._sleep) is not None
        except NotShown:
            return True
