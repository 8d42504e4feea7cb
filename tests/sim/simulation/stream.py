"""The simulated stream: the in-memory fake of Kinesis, and a log of all that was ever put into it, which is what the ledger judges by.

The unit is the user record: its payload is its name, a number that no other record of this world has. It comes as a Kinesis record of its own or with
others in an aggregate. The log keeps what retention takes, and what was in a stream that was deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from sluice_checkpoints.stream.model import Shard, ShardList
from sluice_lab.fakes.stream import MemoryStream

MAGIC = bytes.fromhex("f3899ac2")  # KPL, aggregation-format.md


@dataclass(frozen=True, slots=True)
class UserRecord:
    """A user record as it was put: its name, and the Kinesis record and the place in that which it has."""

    name: str
    shard: str
    number: int
    sub: int
    arrival: int

    def after(self, position: Mapping[str, Any]) -> bool:
        """Whether it comes after a position, as that is stored (docs/protocol.md, "Rows")."""
        if position["at"] == "TIMESTAMP":
            return self.arrival >= int(position["millis"])
        if position["at"] != "AFTER":
            return bool(position["at"] == "TRIM_HORIZON")
        number = int(position["sequence"])
        return self.number > number or (self.number == number and "sub" in position and self.sub > int(position["sub"]))


def aggregate(payloads: list[bytes]) -> bytes:
    """User records of one key in one Kinesis record, as the KPL packs them; none at all is an aggregate, too. Payloads are short."""
    body = _field(1, b"k") + b"".join(_field(3, b"\x08\x00" + _field(3, payload)) for payload in payloads)
    return MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


class Stream(MemoryStream):
    """A stream and its log.

    Attributes:
        log: what was put, in order, by creation time of the stream and shard id; a shard is in it from when it is opened.
        parents: of every shard that there ever was, by id.
    """

    def __init__(self, shards: int, now: Callable[[], int]) -> None:
        self.log: dict[tuple[int, str], list[UserRecord]] = {}
        self.parents: dict[str, tuple[str, ...]] = {}
        self._names, self._arrivals, self._closed_at = count(1), 0, dict[str, int]()
        super().__init__("s", shards, lambda: now() + self._arrivals)
        self._listings = [self.list_shards()]  # before the last split or merge, and now
        self._late = self._listings[0]

    @property
    def open_shards(self) -> list[str]:
        return [shard.id for shard in self.list_shards().shards if not shard.closed]

    # -- what happens to it --------------------------------------------------------------------------------------------------------

    def arrive(self, shard: str, records: int, *, together: bool = False) -> list[UserRecord]:
        """User records are put into a shard, each alone or all in one aggregate."""
        names = [str(next(self._names)) for _ in range(records)]
        packed = [names] if together else [[name] for name in names]
        return [record for names in packed for record in self._arrived(shard, names, together=together)]

    def _arrived(self, shard: str, names: list[str], *, together: bool) -> list[UserRecord]:
        payloads = [name.encode() for name in names]
        self._arrivals += 1  # no two in one millisecond: retention can take one and leave the next
        sequence = self.put_in(shard, aggregate(payloads) if together else payloads[0])
        arrival = self.shards[shard].records[-1].arrival_millis
        found = [UserRecord(name, shard, int(sequence), sub, arrival) for sub, name in enumerate(names)]
        self.log[self.created_millis, shard] += found
        return found

    def reshard(self, split: str | None = None, merge: str | None = None) -> bool:
        """Splits a shard, or merges one with its upper neighbour; False: it has none."""
        if split is not None:
            self.split(split)
        if merge is not None:
            mine = self.shards[merge].shard
            above = [t.shard.id for t in self._open_shards() if t.shard.starting_hash == mine.ending_hash + 1]
            if not above:
                return False
            self.merge(merge, above[0])
        self._listings = [self._listings[-1], self.list_shards()]
        return True

    def listed_before(self) -> ShardList:
        """What a machine of the service answers that has not heard of the last split or merge; its clock is right."""
        return ShardList(self._listings[0].shards, self.list_shards().date_millis)

    def listed_late(self) -> ShardList:
        """What one answers that has not heard yet of the shards that expired last."""
        return ShardList(self._late.shards, self.list_shards().date_millis)

    def expire(self) -> None:
        """See `MemoryStream.expire`; a shard that was closed so long ago goes as a whole."""
        super().expire()
        self._late = self.list_shards()
        for shard in [shard for shard, at in self._closed_at.items() if shard in self.shards and at < self.now() - self.retention_millis]:
            self.expire_shard(shard)
        self._listings = [self.list_shards()]

    def recreate(self, shards: int = 1) -> None:
        """See `MemoryStream.recreate`; nobody answers for the former stream any more."""
        self._closed_at = {}
        super().recreate(shards)
        self._listings = [self.list_shards()]

    def _close(self, shard_id: str) -> Shard:
        self._closed_at[shard_id] = self.now()
        return super()._close(shard_id)

    def _open(self, parents: tuple[str, ...], low: int, high: int) -> str:
        shard = super()._open(parents, low, high)
        self.log[self.created_millis, shard] = []
        self.parents[shard] = parents
        return shard

    # -- what the ledger asks ------------------------------------------------------------------------------------------------------

    def between(self, created: int, shard: str, row: Mapping[str, Any]) -> list[UserRecord]:
        """All user records that were ever put into a row's range."""
        log = self.log.get((created, shard), [])
        return [record for record in log if record.after(row["start"]) and not record.after(row["end"])]

    def expired(self, created: int, record: UserRecord) -> bool:
        """Whether retention, or the deletion of the stream, has taken a record."""
        held = self.shards.get(record.shard)
        return created != self.created_millis or held is None or record.number <= held.trimmed

    def kept(self) -> Iterator[UserRecord]:
        """What the stream still holds, the oldest first."""
        held = (record for (created, _), log in self.log.items() for record in log if not self.expired(created, record))
        return iter(sorted(held, key=lambda record: record.number))
