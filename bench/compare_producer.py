"""The producer of a comparison, and its log: what was acknowledged, and when it was put."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from compare_log import Record

SHARDS, RATE, SIZE = 4, 20, 200  # records a second and shard, bytes
TICK = 0.1


class Producer(threading.Thread):
    """Puts records on random hash keys, the same in every run.

    Attributes:
        refused: how many were refused, or were in a call that failed: they are not in the log, and others follow.
        complete_until: the log has all that was put before then, epoch seconds; a later call may still wait for its reply.
    """

    def __init__(self, api: Any, stream: str) -> None:
        super().__init__(name="producer", daemon=True)
        self._api, self._stream, self._over = api, stream, threading.Event()
        self._log: list[tuple[Record, float]] = []
        self.refused, self.complete_until = 0, 0.0

    def log(self) -> dict[Record, float]:
        """When each record was put, epoch seconds."""
        return dict(self._log.copy())

    def run(self) -> None:
        dice, due = random.Random(1), time.monotonic()  # noqa: S311 - hash keys
        while not self._over.is_set():
            keys = [str(dice.getrandbits(128)) for _ in range(round(RATE * SHARDS * TICK))]
            self.complete_until = time.time()
            self._put([{"Data": dice.randbytes(SIZE), "PartitionKey": "key", "ExplicitHashKey": key} for key in keys])
            due += TICK
            self._over.wait(max(0.0, due - time.monotonic()))

    def _put(self, records: list[dict[str, Any]]) -> None:
        at = time.time()
        try:
            replies = self._api.put_records(StreamName=self._stream, Records=records)["Records"]
        except (ClientError, BotoCoreError):
            self.refused += len(records)
            return
        put = [((reply["ShardId"], int(reply["SequenceNumber"])), at) for reply in replies if "SequenceNumber" in reply]
        self.refused += len(records) - len(put)
        self._log += put

    def stop(self) -> None:
        self._over.set()
        self.join()
