"""Reading one Kinesis stream: the port, what its calls return, and its errors, named by what the caller does next.

Adapters: `kinesis.http` (the service) and `sluice_lab.fakes.kinesis` (memory). Both map a stored position to a shard iterator and a reply to columns;
neither knows limits, ranges or batches: that is `shards.reader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from sluice_checkpoints.errors import ProtocolViolation, SluiceError
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import Child

MAX_RECORDS_PER_CALL = 10_000  # API reference, GetRecords


class IteratorExpired(SluiceError):
    """The shard iterator is older than five minutes: get a new one at the last position."""


class ShardNotFound(SluiceError):
    """The service knows no such shard, or no such stream. Not an end: a complete ListShards shows which (docs/protocol.md, "Shards come and go")."""


class RecordColumns(Protocol):
    """Kinesis records in columns of one length, in the order of the shard; aggregates are not taken apart yet.

    Two kinds: `Records` of lists, and `packed.PackedRecords`, which makes no Python object of a record.
    """

    @property
    def sequence(self) -> list[str]:
        """Sequence numbers."""
        ...

    @property
    def partition_key(self) -> list[str]:
        """Partition keys."""
        ...

    @property
    def data(self) -> list[bytes]:
        """Payloads."""
        ...

    @property
    def arrival_millis(self) -> list[int]:
        """ApproximateArrivalTimestamp, epoch milliseconds."""
        ...

    def __len__(self) -> int: ...

    def between(self, start: int, stop: int) -> RecordColumns:
        """The records from index `start` to before `stop`."""
        ...

    def number(self, index: int) -> str:
        """The sequence number of one record; -1 is the last."""
        ...

    def totals(self) -> Sequence[int]:
        """Bytes of payload up to and with each record."""
        ...

    def any_with(self, prefix: bytes) -> bool:
        """Whether any payload begins with `prefix`."""
        ...


@dataclass(slots=True)
class Records:
    """Records in lists."""

    sequence: list[str] = field(default_factory=list)
    partition_key: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    arrival_millis: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sequence)

    def between(self, start: int, stop: int) -> Records:
        at = slice(start, stop)
        return Records(self.sequence[at], self.partition_key[at], self.data[at], self.arrival_millis[at])

    def number(self, index: int) -> str:
        return self.sequence[index]

    def totals(self) -> Sequence[int]:
        return list(accumulate(map(len, self.data)))

    def any_with(self, prefix: bytes) -> bool:
        return any(data.startswith(prefix) for data in self.data)


@dataclass(frozen=True, slots=True)
class Page:
    """One GetRecords reply.

    Attributes:
        next_iterator: None at the end of a closed shard.
        behind_millis: MillisBehindLatest; 0 at the tip.
        children: ChildShards, where the reply carries them (at the end of a shard only, and not from every service).
        server_millis: the service's clock (HTTP Date, whole seconds), epoch milliseconds; 0 where something on the way took the header.
    """

    records: RecordColumns
    next_iterator: str | None
    behind_millis: int
    children: tuple[Child, ...] | None
    server_millis: int


class KinesisClient(Protocol):
    """The two calls that read a shard. Pacing, throttling and passing failures are handled inside, up to a deadline. Thread safe.

    Both calls raise:
        Refused: access denied or a value that the service does not take; the message says which.
        ServiceUnavailable: no success within the deadline.
    """

    def get_iterator(self, shard_id: str, position: Position) -> str:
        """An iterator that continues at `position`; valid for five minutes. For AFTER with a `sub` it starts **at** that record.

        Raises:
            ShardNotFound: no such shard or stream.
        """
        ...

    def get_records(self, shard_id: str, iterator: str, limit: int) -> Page:
        """The next records, at most `limit` (1 to 10,000) Kinesis records and 10 MiB. `shard_id` is for pacing and messages.

        Raises:
            IteratorExpired, ShardNotFound: see there.
        """
        ...


def iterator_type(position: Position) -> dict[str, str | float]:
    """The arguments of GetShardIterator for a position; timestamps in seconds.

    Raises:
        ProtocolViolation: END, from which nothing is ever read.
    """
    if position.at == "TRIM_HORIZON":
        return {"ShardIteratorType": "TRIM_HORIZON"}
    if position.millis is not None:
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": position.millis / 1000}
    if position.sequence is not None:
        kind = "AFTER_SEQUENCE_NUMBER" if position.sub is None else "AT_SEQUENCE_NUMBER"
        return {"ShardIteratorType": kind, "StartingSequenceNumber": position.sequence}
    raise ProtocolViolation(f"nothing can be read from {position}")
