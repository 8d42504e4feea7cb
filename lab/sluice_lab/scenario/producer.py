"""Puts numbered records, and keeps their positions from the replies."""

import itertools
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluice_checkpoints.names import counted
from sluice_lab.errors import LabError
from sluice_lab.scenario import records
from sluice_lab.scenario.account import Record, RecordPosition
from sluice_lab.scenario.records import KinesisRecord

MAX_PUT = 500  # PutRecords: records in a call
TRIES = 50
PAUSE_SECONDS = 0.1


class Producer:
    """A producer of one stream, usable from several threads. It never uses a number twice."""

    def __init__(self, kinesis: Any, stream: str) -> None:
        self.produced: list[Record] = []
        self._kinesis, self._stream = kinesis, stream
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def put(self, hash_keys: Sequence[int], count: int) -> list[Record]:
        """Put `count` Kinesis records on these hash keys; returns the user records, by number."""
        with self._lock:
            packed = records.series(self._numbers, hash_keys, count)
            found = [record for part in _parts(packed) for record in self._put(part)]
            self.produced += found
        return found

    def last_positions(self) -> Mapping[str, RecordPosition]:
        """The position of the last record of each shard."""
        return last_positions(self.produced)

    def _put(self, packed: Sequence[KinesisRecord]) -> list[Record]:
        """Put records with one call, and the refused ones again. A split refuses some."""
        done: list[Record] = []
        for _ in range(TRIES):
            reply = self._kinesis.put_records(StreamName=self._stream, Records=[each.entry() for each in packed])
            pairs = list(zip(packed, reply["Records"], strict=True))
            done += [record for each, put in pairs if "SequenceNumber" in put for record in _records(each, put)]
            packed = [each for each, put in pairs if "SequenceNumber" not in put]
            if not packed:
                return done
            time.sleep(PAUSE_SECONDS)
        raise LabError(f"{self._stream}: {counted(len(packed), 'record')} refused {TRIES} times")


class LoadGenerator(threading.Thread):
    """Produces `count` Kinesis records on all shards every `interval` seconds, until `stop`."""

    def __init__(self, producer: Producer, count: int = 16, interval: float = 0.5) -> None:
        super().__init__(name="producer", daemon=True)
        self._producer, self._count, self._interval = producer, count, interval
        self._ended = threading.Event()
        self._failed: Exception | None = None

    def run(self) -> None:
        """Produce until `stop`."""
        keys = records.hash_keys()
        try:
            while not self._ended.wait(self._interval):
                self._producer.put(keys, self._count)
        except Exception as error:  # noqa: BLE001 - reported by `stop`
            self._failed = error

    def stop(self) -> None:
        """End the thread, and wait for it.

        Raises:
            LabError: a put failed.
        """
        self._ended.set()
        if self.is_alive():
            self.join()
        if self._failed is not None:
            raise LabError(f"the producer failed: {self._failed}") from self._failed


def last_positions(produced: Iterable[Record]) -> dict[str, RecordPosition]:
    """The position of the last of these records in each shard."""
    last: dict[str, RecordPosition] = {}
    for record in produced:
        last[record.shard] = max(record.position, last.get(record.shard, record.position))
    return last


def _parts(packed: Sequence[KinesisRecord]) -> Iterable[Sequence[KinesisRecord]]:
    return (packed[start : start + MAX_PUT] for start in range(0, len(packed), MAX_PUT))


def _records(packed: KinesisRecord, put: Mapping[str, Any]) -> list[Record]:
    sequence = int(put["SequenceNumber"])
    return [Record(user.n, put["ShardId"], RecordPosition(sequence, sub)) for sub, user in enumerate(packed.user_records)]
