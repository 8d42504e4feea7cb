"""User records on their way from replies to a range: taking whole Kinesis records until a limit, aggregates taken apart."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from sluice_checkpoints.model import Position
from sluice_consumer.aggregation import MAGIC, user_records
from sluice_consumer.kinesis import Records


@dataclass(slots=True)
class Columns:
    """User records in columns of one length, in the order of the shard."""

    partition_key: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    sequence: list[str] = field(default_factory=list)
    sub: list[int] = field(default_factory=list)
    arrival_millis: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sequence)


@dataclass(slots=True)
class Gathering:
    """What was taken of a shard after `start`.

    Attributes:
        position: after the last Kinesis record taken; where a new iterator goes on.
        bytes: payload of the Kinesis records taken, aggregates counted as they were sent.
        taken: Kinesis records taken.
    """

    start: Position
    position: Position = field(init=False)
    columns: Columns = field(default_factory=Columns)
    bytes: int = 0
    taken: int = 0

    def __post_init__(self) -> None:
        self.position = self.start

    @property
    def first(self) -> str | None:
        """Sequence number of the Kinesis record that the first user record is of."""
        return self.columns.sequence[0] if self.columns.sequence else None

    def take(self, records: Records, max_records: int, max_bytes: int) -> bool:
        """Takes as many Kinesis records as fit; the first with user records always does.

        Returns:
            Whether all were taken.
        """
        fresh = self._unread(records)
        count = len(records)
        plain = self.start.sub is None and not any(data.startswith(MAGIC) for data in records.data)
        end = self._take_plain(records, fresh, max_records, max_bytes) if plain else self._take_mixed(records, fresh, max_records, max_bytes)
        if end > fresh:
            self.taken += end - fresh
            self.position = Position.after(records.sequence[end - 1])
        return end == count

    def _unread(self, records: Records) -> int:
        """Index of the first record that was not read before; not 0 only where the service goes back behind the position asked for."""
        if self.position.sequence is None:
            return 0
        number, inside = int(self.position.sequence), self.position.sub is not None
        for i, sequence in enumerate(records.sequence):
            if int(sequence) > number or (inside and int(sequence) == number):
                return i
        return len(records)

    def _take_plain(self, records: Records, at: int, max_records: int, max_bytes: int) -> int:
        """All at once, for records that are their own only user record."""
        sizes = list(accumulate(map(len, records.data[at:])))
        fits = min(bisect_right(sizes, max_bytes - self.bytes), max_records - len(self.columns), len(sizes))
        fits = max(fits, 0 if self.columns.sequence else min(1, len(sizes)))
        end, columns = at + max(fits, 0), self.columns
        columns.partition_key += records.partition_key[at:end]
        columns.data += records.data[at:end]
        columns.sequence += records.sequence[at:end]
        columns.sub += [0] * (end - at)
        columns.arrival_millis += records.arrival_millis[at:end]
        self.bytes += sizes[end - at - 1] if end > at else 0
        return end

    def _take_mixed(self, records: Records, at: int, max_records: int, max_bytes: int) -> int:
        for i in range(at, len(records)):
            users = user_records(records.partition_key[i], records.data[i])
            if self.start.sub is not None and records.sequence[i] == self.start.sequence:
                users = [user for user in users if user.sub > self.start.sub]
            size = len(records.data[i])
            if self.columns.sequence and (len(self.columns) + len(users) > max_records or self.bytes + size > max_bytes):
                return i
            columns = self.columns
            columns.partition_key += [user.partition_key for user in users]
            columns.data += [user.data for user in users]
            columns.sequence += [records.sequence[i]] * len(users)
            columns.sub += [user.sub for user in users]
            columns.arrival_millis += [records.arrival_millis[i]] * len(users)
            self.bytes += size
        return len(records)
