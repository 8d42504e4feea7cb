"""What a plan of a reset is made from, and what it is: values, with their counts and hash (docs/protocol.md, "Positions are moved")."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluice_checkpoints.position import Position
from sluice_checkpoints.positions.placement import Placed
from sluice_checkpoints.protocol.folding import TableShards
from sluice_checkpoints.protocol.reset_writes import Move
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_checkpoints.protocol.versions import KeptPosition
from sluice_checkpoints.stream.model import ShardList, StreamIdentity

BACK, FORWARD, UNCHANGED = "back", "forward", "unchanged"


@dataclass(frozen=True)
class Situation:
    """What a plan is made from: consumer row, shards of the table, the stream, its shards, and `recent`: closed ones that hold a recent record.

    `kept`: what the table keeps of the positions in front of the batch that was asked for, and `kept_at` since when, epoch milliseconds.
    `rejected`: where dead letters of records wait that `process` rejected in the open batch.
    """

    consumer: ConsumerRow
    table: TableShards
    stream: StreamIdentity
    listed: ShardList
    recent: frozenset[str] = frozenset()
    kept: Mapping[str, KeptPosition] | None = None
    kept_at: int = 0
    rejected: str | None = None

    @property
    def open_batch(self) -> tuple[ShardRow, ...]:
        """The rows of the batch that was begun and not committed."""
        return tuple(row for row in self.table.rows.values() if row.batch > self.consumer.committed)

    @property
    def expired_millis(self) -> int:
        """Records that arrived before may have expired, epoch milliseconds."""
        return self.listed.date_millis - self.stream.retention_millis

    @property
    def oldest_millis(self) -> int:
        """No record of the stream is older, epoch milliseconds."""
        return max(self.expired_millis, self.stream.created_millis)


@dataclass(frozen=True, slots=True)
class ShardMove:
    """One shard of a plan.

    Attributes:
        row: as it is; of a shard without a row, as it is made.
        at: its committed position.
        placed: where it is moved to.
        move: BACK, FORWARD or UNCHANGED.
        again, passed: user records that come again, and that are never delivered; None: the row does not say.
    """

    row: ShardRow
    at: Position
    placed: Placed
    move: str
    again: int | None = 0
    passed: int | None = 0

    @property
    def write(self) -> Move | None:
        """How its row is moved; None: it stays."""
        if self.move == UNCHANGED:
            return None
        return Move(self.row.id, self.row.batch, self.row.end, self.placed.to, self.placed.read_to, self.placed.children)


@dataclass(frozen=True)
class ResetPlan:
    """All shards of a reset in the order of their ids.

    Attributes:
        committed: the last committed batch when it is carried out: one that is given up included.
        missing: shards without a row: it is made first.
        letters: final dead letters, those of a batch that is given up included.
    """

    shards: tuple[ShardMove, ...]
    committed: int
    warnings: tuple[str, ...] = ()
    missing: tuple[ShardRow, ...] = ()
    letters: tuple[str, ...] = ()

    @property
    def moves(self) -> tuple[Move, ...]:
        """The rows that are moved."""
        return tuple(write for shard in self.shards if (write := shard.write))

    @property
    def counts(self) -> dict[str, int]:
        """How many shards move back, move forward and stay."""
        return {kind: sum(shard.move == kind for shard in self.shards) for kind in (BACK, FORWARD, UNCHANGED)}

    @property
    def again(self) -> int | None:
        """User records that come again; None: the rows do not say."""
        return _sum(shard.again for shard in self.shards)

    @property
    def passed(self) -> int | None:
        """User records that are never delivered; None: the rows do not say."""
        return _sum(shard.passed for shard in self.shards)

    @property
    def digest(self) -> str:
        """A hash of all moves."""
        moves = [(move.shard, move.batch, str(move.end), str(move.to), move.read_to) for move in self.moves]
        return hashlib.sha256(json.dumps([self.committed, moves]).encode()).hexdigest()[:16]


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number or 0 for number in known)
