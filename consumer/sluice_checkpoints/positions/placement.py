"""To which position each shard is moved, and why. Pure (docs/protocol.md, "Positions are moved").

A position never claims more than is known: TIMESTAMP says that the shard was open then, and so do the ages of its children.

Of a file, what changed in it is moved, if parents still come before their children.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.scope import ShardGraph, named
from sluice_checkpoints.positions.target import NEWEST, ResetRequest, ResetTarget, iso
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, earliest_arrival_millis
from sluice_checkpoints.protocol.versions import KeptPosition

CLOCK_SLACK_MILLIS = 2000  # Kinesis refuses an AT_TIMESTAMP that lies in its future
AGAIN = "print the file again with `sluice show --json`, and edit that"


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a shard is moved to.

    Attributes:
        read_to: what its row says of its age from then on; 0: nothing is known.
        children: with END, what follows.
    """

    to: Position
    why: str
    read_to: int = 0
    children: tuple[Child, ...] | None = None


@dataclass
class ResetPlacement:
    """Decides where the shards of a reset begin.

    Attributes:
        shards: all shards; scope: those that are moved.
        to: the target; a time that is too old is `trimHorizon` here.
        recent: closed shards that hold a record since the time of the target.
        expired_millis: records that arrived before may have expired.
        before: positions in front of a batch, for a target that is one; none of a shard that came later.
    """

    shards: ShardGraph
    scope: frozenset[str]
    to: ResetTarget
    recent: frozenset[str]
    expired_millis: int
    before: Mapping[str, KeptPosition] | None = None
    _reopened: dict[str, bool] = field(default_factory=dict)

    def all(self) -> Mapping[str, Placed | None]:
        """By shard; None: it stays.

        Raises:
            Refused: what follows a shard is not known, so it cannot be passed over.
        """
        return {shard: self._placed(shard) for shard in sorted(self.scope)}

    def _placed(self, shard: str) -> Placed | None:
        if shard not in self.shards.shards:
            return self._passed_over(shard) if self.to.word == NEWEST else None
        if self.before is not None:
            return self._as_before(self.before.get(shard, KeptPosition(TRIM_HORIZON)), shard)
        if self.to.word == NEWEST:
            return self._passed_over(shard) if self._closed(shard) else self._at(self._newest)
        if self.to.millis is None:
            return self._from_beginning(shard)
        if self._follows_reopened(shard):
            return self._from_beginning(shard)
        return self._at(self.to.millis) if self._holds(shard) else self._passed_over(shard)

    def _as_before(self, kept: KeptPosition, shard: str) -> Placed | None:
        if kept.position == END:
            return self._passed_over(shard)
        if kept.position == TRIM_HORIZON:
            return self._from_beginning(shard)
        return Placed(kept.position, f"where it was in front of {self.to}", read_to=kept.read_to)

    @property
    def _newest(self) -> int:
        return self.shards.listed.date_millis - CLOCK_SLACK_MILLIS

    @staticmethod
    def _at(millis: int) -> Placed:
        return Placed(Position.timestamp(millis), f"records that arrived at {iso(millis)} or later", read_to=millis)

    def _from_beginning(self, shard: str) -> Placed:
        """From its oldest record. The age of a child is that of its parents, unless their records may have expired already: nobody is owed those."""
        parents = self.shards.parents[shard]
        rows = self.shards.table.rows
        known = earliest_arrival_millis(rows[parent] for parent in parents if parent in rows)
        if self.to.millis is not None:  # its parents hold a record from then on, so they were open
            known = max(known, self.to.millis)
        why = "its oldest record"
        if here := parents & self.shards.shards.keys() & self.scope:
            why = f"its oldest record, after {named(here)}"
        elif parents:
            why = f"its oldest record: {named(parents)} cannot be read again"
        return Placed(TRIM_HORIZON, why, read_to=known if known > self.expired_millis else 0)

    def _passed_over(self, shard: str) -> Placed | None:
        """To its end, unless it is there. Its children are named then, as a reader would name them."""
        row = self.shards.table.rows.get(shard)
        if row is not None and row.end == END:
            return Placed(END, "read to the end before", row.read_to, row.children)
        children = self.shards.children(shard)
        if not children:
            raise Refused(f"{shard} has ended, and nothing says which shards follow it, so it cannot be passed over: run this again in a minute")
        why = "its end" if self.to.word == NEWEST else "its end: it holds no record from then on"
        return Placed(END, why, children=children)

    def _closed(self, shard: str) -> bool:
        return self.shards.shards[shard].closed

    def _holds(self, shard: str) -> bool:
        return not self._closed(shard) or shard in self.recent

    def _follows_reopened(self, shard: str) -> bool:
        """Whether a parent is read again to its end: all that is in the shard came after that."""
        return any(self._is_reopened(parent) for parent in self.shards.parents[shard] if parent in self.scope and parent in self.shards.shards)

    def _is_reopened(self, shard: str) -> bool:
        if shard not in self._reopened:
            self._reopened[shard] = self._holds(shard) or self._follows_reopened(shard)
        return self._reopened[shard]


def edited(request: ResetRequest, consumer: ConsumerRow, shards: ShardGraph) -> dict[str, Position]:
    """The positions of a file that are others than those of the table, by shard; none without a file.

    If the open batch is given up, they are compared with those behind it: a shard that is to stay in front of it is moved back.

    Raises:
        Refused: the file is of another consumer or an earlier moment, or names shards that cannot be moved.
    """
    file = request.file
    if file is None:
        return {}
    if file.consumer != consumer.consumer_id:
        raise Refused(f"consumerId: the file is of consumer {file.consumer}, and the table of {consumer.consumer_id}")
    moved = {"committed": (file.committed, consumer.committed), "lastReset": (file.last_reset, consumer.last_reset)}
    for name, (then, now_) in moved.items():
        if then != now_:
            raise Refused(f"{name}: positions have moved since the file was printed, when it was {then} (now {now_}); {AGAIN}")
    if unknown := file.positions.keys() - shards.parents.keys() - shards.table.folded.keys():
        raise Refused(f"shards: neither the table nor the stream has {named(unknown)}")
    given_up = request.give_up == consumer.committed + 1
    now = shards.positions(consumer.committed + given_up)
    changed = {shard: position for shard, position in file.positions.items() if now.get(shard, END) != position}
    if gone := changed.keys() - shards.shards.keys():
        raise Refused(f"shards: {named(gone)} has left the stream, so nothing of it can be read again; leave it as it was printed")
    return changed


@dataclass(kw_only=True)
class FilePlacement(ResetPlacement):
    """Decides where the shards begin that a file moves.

    Attributes:
        positions: by shard, as the file has them.
        accept_expired: a time may lie before the oldest record.
        oldest_millis: no record of the stream is older; of such a time nobody was asked which shards hold records since.
    """

    positions: Mapping[str, Position]
    accept_expired: bool
    oldest_millis: int

    def _placed(self, shard: str) -> Placed | None:
        position = self.positions[shard]
        if position == TRIM_HORIZON:
            return self._from_beginning(shard)
        if position.sequence is not None:  # when that record arrived is not known: a reader looks whether it is still there
            return Placed(position, "what comes after this record")
        if position == END:
            return self._ended(shard)
        return self._at_time(shard, position.millis or 0)

    def _ended(self, shard: str) -> Placed | None:
        if not self._closed(shard):
            raise Refused(f"shards.{shard}.at: the shard is open, so it has no END; use TIMESTAMP")
        placed = self._passed_over(shard)
        return replace(placed, why="its end") if placed else None

    def _at_time(self, shard: str, millis: int) -> Placed | None:
        if millis > self.shards.listed.date_millis - CLOCK_SLACK_MILLIS:
            raise Refused(f"shards.{shard}.millis: {iso(millis)} lies in the future, or is now")
        if millis < self.expired_millis and not self.accept_expired:
            raise Refused(f"shards.{shard}.millis: {iso(millis)} lies before the oldest record; add --accept-expired, or name a later time")
        if millis < self.oldest_millis:
            return self._from_beginning(shard)
        return self._at(millis) if self._holds(shard) else self._passed_over(shard)
