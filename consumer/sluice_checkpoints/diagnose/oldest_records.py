"""The oldest record still in a shard, from Kinesis: has retention overtaken a checkpoint?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import StreamNotFound

# An empty reply says little: the service walks a thin shard piece by piece (API guide, GetRecords). So many calls a shard, and no more.
CALLS = 10
PAUSE_SECONDS = 0.2  # GetRecords: 5 calls a second and shard, and its consumer wants some of them
THREADS = 8


class OldestRecords(Protocol):
    """Finds the sequence numbers of the oldest records."""

    def oldest(self, shard_ids: Iterable[str]) -> Mapping[str, str]:
        """By shard id. A shard without a record is missing, as is one in which none was found soon.

        Raises:
            Refused: access denied.
            ServiceUnavailable: no answer within the deadline.
        """
        ...


class BotoOldestRecords:
    """`OldestRecords` over boto3: one record a call, at most `CALLS` a shard, several shards at a time."""

    def __init__(self, catalog: BotoStreamCatalog, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._sleep = catalog, sleep

    def oldest(self, shard_ids: Iterable[str]) -> Mapping[str, str]:
        ids = list(shard_ids)
        with ThreadPoolExecutor(THREADS) as pool:
            oldest = zip(ids, pool.map(self._first, ids), strict=True)
            return {shard_id: sequence for shard_id, sequence in oldest if sequence is not None}

    def _first(self, shard_id: str) -> str | None:
        try:
            return self._walk(shard_id)
        except StreamNotFound:  # the stream was just described: the shard expired since it was listed
            return None
        except Refused as refused:
            raise type(refused)(f"{refused}; --no-records does without it") from refused

    def _walk(self, shard_id: str) -> str | None:
        ask = self._catalog.address.stream | {"ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
        iterator = self._catalog.call("GetShardIterator", "get_shard_iterator", ask)["ShardIterator"]
        for _ in range(CALLS):
            reply = self._catalog.call("GetRecords", "get_records", {"ShardIterator": iterator, "Limit": 1} | self._catalog.address.stream_arn)
            if reply["Records"]:
                return str(reply["Records"][0]["SequenceNumber"])
            iterator = reply.get("NextShardIterator")
            if iterator is None or not reply.get("MillisBehindLatest"):
                return None
            self._sleep(PAUSE_SECONDS)
        return None
