"""Reading one shard inside a task: fetch, bind, and only then hand over; or replay what was bound (docs/protocol.md, "Batches" 2-4).

Ports in, no Spark: the simulation runs this very code with the twins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sluice_checkpoints.errors import LostRace
from sluice_checkpoints.model import ShardRow
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.store import CheckpointStore, Life, Range, Reader, Replay
from sluice_consumer import planner
from sluice_consumer.ranges import BoundRange, Fetched, Limits, Place
from sluice_consumer.tally import Counts, Tally


class ShardSource(Protocol):
    """What reads a shard (`shard_reader.Reader`)."""

    def fetch(self, place: Place, limits: Limits) -> Fetched:
        """A new range from `place` on."""
        ...

    def replay(self, bound: BoundRange) -> Fetched:
        """Exactly a range that was bound."""
        ...


@dataclass(frozen=True)
class Task:
    """What every shard of a task shares.

    Attributes:
        life: who writes. Its token is not needed to bind, and not sent to executors.
        reader: this attempt of this task.
        lease_seconds: how long a former attempt may still be emitting.
        wait: sleeps that long.
        tally: what this process has called; the row that is bound carries it.
    """

    life: Life
    batch: int
    reader: Reader
    limits: Limits
    lease_seconds: float
    wait: Callable[[float], None]
    tally: Tally = field(default_factory=Tally)


def read_shard(store: CheckpointStore, source: ShardSource, task: Task, row: ShardRow) -> Fetched:
    """The records of one shard in this batch, bound; they may be emitted once this returns.

    Args:
        store: the checkpoint table.
        source: the shard.
        task: batch, life and limits.
        row: the shard's row, read after the batch was planned.

    Raises:
        Fenced, LostRace, ProtocolViolation: see `CheckpointStore.bind`.
        ReplayShort: the stream no longer holds what was bound.
    """
    if row.batch > task.batch:
        raise LostRace(f"batch {row.batch} of {row.id} is open; {task.batch} is past")
    if row.batch == task.batch:
        return _replay(store, source, task, row)
    fetched = source.fetch(Place(row.id, row.end, row.read_to, row.iterator, _younger_than(store, row)), task.limits)
    outcome = task.tally.carry(lambda calls: store.bind(task.life, task.batch, _range(fetched, row, calls), task.reader))
    return _replay(store, source, task, outcome.row) if isinstance(outcome, Replay) else fetched


def _younger_than(store: CheckpointStore, row: ShardRow) -> int:
    """Where a row was made before anything was read of the shard's parents, it could not say how old the shard may be. Now they stand at END."""
    if row.read_to or row.end != TRIM_HORIZON or not row.parents:
        return 0
    return planner.younger_than(store.look(row.parents).values())


def _replay(store: CheckpointStore, source: ShardSource, task: Task, row: ShardRow) -> Fetched:
    former = store.register(task.life, task.batch, row.id, task.reader)
    if former is not None:
        task.wait(task.lease_seconds)
    return source.replay(BoundRange(row.id, row.start, row.end, row.first, row.records))


def _range(fetched: Fetched, row: ShardRow, calls: Counts) -> Range:
    return Range(
        shard_id=row.id,
        start=row.end,
        end=fetched.end,
        first=fetched.first,
        records=fetched.records,
        read_to=max(fetched.read_to_millis, row.read_to),
        children=fetched.children,
        size=fetched.bytes,
        behind=fetched.behind_millis,
        note=fetched.possible_loss,
        calls=calls,
        iterator=fetched.iterator,
    )
