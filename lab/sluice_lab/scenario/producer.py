"""Puts numbered records, and keeps from each reply where they came to lie."""

import itertools
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluice_lab.errors import LabError
from sluice_lab.scenario import records
from sluice_lab.scenario.ledger import Place, Record
from sluice_lab.scenario.records import Packed

MAX_PUT = 500  # PutRecords: records in a call
TRIES = 50
PAUSE_SECONDS = 0.1


class Producer:
    """A producer of one stream; may be used from several threads, its numbers are never used twice."""

    def __init__(self, kinesis: Any, stream: str) -> None:
        self.produced: list[Record] = []
        self._kinesis, self._stream = kinesis, stream
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def put(self, hash_keys: Sequence[int], count: int) -> list[Record]:
        """Put `count` Kinesis records on these hash keys; gives the user records, in the order of their numbers."""
        with self._lock:
            packed = records.series(self._numbers, hash_keys, count)
            found = [record for part in _parts(packed) for record in self._put(part)]
            self.produced += found
        return found

    def last(self) -> Mapping[str, Place]:
        """Of each shard, the place of the last record."""
        return furthest(self.produced)

    def _put(self, packed: Sequence[Packed]) -> list[Record]:
        """One call; what was refused, as during a split, is put again."""
        done: list[Record] = []
        for _ in range(TRIES):
            reply = self._kinesis.put_records(StreamName=self._stream, Records=[each.entry() for each in packed])
            pairs = list(zip(packed, reply["Records"], strict=True))
            done += [record for each, put in pairs if "SequenceNumber" in put for record in _records(each, put)]
            packed = [each for each, put in pairs if "SequenceNumber" not in put]
            if not packed:
                return done
            time.sleep(PAUSE_SECONDS)
        raise LabError(f"{self._stream}: {len(packed)} records were refused {TRIES} times")


class Stroll(threading.Thread):
    """Goes on producing over all shards, some records every interval, until `stop`."""

    def __init__(self, producer: Producer, count: int = 16, interval: float = 0.5) -> None:
        super().__init__(name="producer", daemon=True)
        self._producer, self._count, self._interval = producer, count, interval
        self._ended = threading.Event()
        self._failed: Exception | None = None

    def run(self) -> None:
        """Produce."""
        lanes = records.lanes()
        try:
            while not self._ended.wait(self._interval):
                self._producer.put(lanes, self._count)
        except Exception as error:  # noqa: BLE001 - reported by `stop`
            self._failed = error

    def stop(self) -> None:
        """End, and wait for it.

        Raises:
            LabError: it could not put its records.
        """
        self._ended.set()
        if self.is_alive():
            self.join()
        if self._failed is not None:
            raise LabError(f"the producer failed: {self._failed}") from self._failed


def furthest(produced: Iterable[Record]) -> dict[str, Place]:
    """Of each shard, the place of the last of these records."""
    last: dict[str, Place] = {}
    for record in produced:
        last[record.shard] = max(record.place, last.get(record.shard, record.place))
    return last


def _parts(packed: Sequence[Packed]) -> Iterable[Sequence[Packed]]:
    return (packed[start : start + MAX_PUT] for start in range(0, len(packed), MAX_PUT))


def _records(packed: Packed, put: Mapping[str, Any]) -> list[Record]:
    sequence = int(put["SequenceNumber"])
    return [Record(user.n, put["ShardId"], Place(sequence, sub)) for sub, user in enumerate(packed.users)]
