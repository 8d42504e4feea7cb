"""Checks that a source's rows are of this stream, and says row by row what contradicts it. Pure.

Shard ids repeat in every stream, and a sequence number has no upper bound while its shard is open. Three things distinguish streams all the same.
They are the hash keys that KCL stores, the number of shards that were ever made, and Kinesis itself, which accepts only its own sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sluice_checkpoints.formats.reader import OtherStream, Problem, Reading, refuse_all
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot
from sluice_checkpoints.migrate.placement import OTHER_STREAM, contradiction
from sluice_checkpoints.position import Position
from sluice_checkpoints.stream.model import Shard, ShardList, ShardPlace, StreamIdentity

HASH_KEYS = ("startingHashKey", "endingHashKey")


@dataclass(frozen=True)
class Compared:
    """A source's rows beside the stream they are said to be of; the shards were listed after the rows were read.

    Attributes:
        chosen: positions that the user named instead of the rows', by shard id.
    """

    reading: Reading
    snapshot: Snapshot
    stream: StreamIdentity
    shards: ShardList
    chosen: Mapping[str, Position] = field(default_factory=dict)

    def contradictions(self) -> list[Problem]:
        """What no table of this stream can hold: other hash keys than the shard's, or a shard newer than the stream's newest."""
        return [*self._other_hash_keys(), *self._unborn()]

    def places(self) -> list[ShardPlace]:
        """The sequence numbers that Kinesis can judge: one a shard that is listed and whose range has room for it."""
        positions = {**{row.id: row.stored.position for row in self.reading.shards}, **self.chosen}
        listed = ((shard, positions.get(shard.id)) for shard in self.shards.shards)
        return [(shard.id, place.sequence) for shard, place in listed if place and place.sequence and not contradiction(place, shard)]

    def disowned(self, answers: Mapping[ShardPlace, str]) -> list[Problem]:
        """The positions that Kinesis did not accept, as problems of their rows."""
        return [self._problem(shard_id, f"{self._named(shard_id, number)}: {why}") for (shard_id, number), why in answers.items()]

    def agreeing(self, wrong: AbstractSet[str]) -> int:
        """How many rows have a sequence number that may be one of their shard in this stream, but for those of the shards in `wrong`."""
        return len({shard_id for shard_id, _ in self.places()} - wrong)

    def _other_hash_keys(self) -> Iterator[Problem]:
        for shard in self.shards.shards:
            for _, _, item in self._rows(shard.id):
                if problem := _hash_keys(item, shard):
                    yield self._problem(shard.id, problem)

    def _unborn(self) -> Iterator[Problem]:
        """Shard ids count up and the newest shard is always open, so one above it cannot have expired."""
        youngest = max((shard.id for shard in self.shards.shards), default="")
        for row in self.reading.shards:
            for what, shard_id in (("is of", row.id), *(("names the child", child) for child in sorted(row.children))):
                if shard_id > youngest:
                    why = f"{what} {shard_id}, and the newest shard of stream {self.stream.name} is {youngest}"
                    yield self._problem(row.id, f"{why} (a reshard of this very moment: run this again)")

    def _problem(self, shard_id: str, why: str) -> Problem:
        table, label, _ = next(self._rows(shard_id), (self.snapshot.table, shard_id, {}))
        return Problem(table, label, OtherStream(f"{why}: {OTHER_STREAM}"))

    def _named(self, shard_id: str, number: str) -> str:
        names = (name for _, _, item in self._rows(shard_id) for name in sorted(item) if item[name] == {"S": number})
        return f"{next(names, 'position')} {number}"

    def _rows(self, shard_id: str) -> Iterator[tuple[str, str, RawItem]]:
        """Table, key and attributes of a shard's rows, by every form of key that a format gives them."""
        for table in self.snapshot.tables:
            for label in row_labels(shard_id, self.stream):
                if item := self.snapshot.by_label.get((table, label)):
                    yield table, label, item


def row_labels(shard_id: str, stream: StreamIdentity) -> tuple[str, ...]:
    """The keys that a row of this shard may have, in any format."""
    account, second = stream.arn.split(":")[4], stream.created_millis // 1000
    return shard_id, f"{account}:{stream.name}:{second}:{shard_id}", f"{stream.name}/{shard_id}", f"shard/{shard_id}"


def _hash_keys(item: RawItem, shard: Shard) -> str | None:
    stored = [item.get(name, {}).get("S") for name in HASH_KEYS]
    actual = [str(shard.starting_hash), str(shard.ending_hash)]
    wrong = [f"{n} {s}, not {a}" for n, s, a in zip(HASH_KEYS, stored, actual, strict=True) if s is not None and s != a]
    return f"says {' and '.join(wrong)}" if wrong else None


def refuse_other_stream(stream: StreamIdentity, problems: Sequence[Problem], what: str = "the source", way_on: str = "") -> None:
    """Raises `Refused` naming the rows, if there are problems; `what` is the table that they are in, and `way_on` ends the message."""
    refuse_all(f"{what} is not of stream {stream.name}", [f"table {p.table}, row {p.row}: {p.why}" for p in problems], way_on)
