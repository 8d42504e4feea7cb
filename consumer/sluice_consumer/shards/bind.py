"""Reading one shard inside a task: fetch, bind, and only then hand over; or replay what was bound (docs/protocol.md, "A batch").

Ports in, no Spark: the simulation runs this very code with the in-memory fakes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sluice_checkpoints.errors import LostRace
from sluice_checkpoints.protocol.rows import ShardRow, earliest_arrival_millis
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, Replay, TaskAttempt
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_consumer.shards.request_counts import Counts, RequestCounter


class ShardSource(Protocol):
    """What reads a shard (`shards.reader.ShardReader`)."""

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        """A new range from `place` on."""
        ...

    def replay(self, bound: BoundRange) -> Fetched:
        """Exactly a range that was bound."""
        ...


@dataclass(frozen=True)
class Task:
    """What every shard of a task shares.

    Attributes:
        epoch: the writer. Its token is not needed to bind, and not sent to executors.
        reader: this attempt of this task.
        lease_seconds: how long a former attempt may still be emitting.
        wait: sleeps that long.
        requests: what this process has called; the row that is bound carries it.
    """

    epoch: Epoch
    batch: int
    reader: TaskAttempt
    limits: Limits
    lease_seconds: float
    wait: Callable[[float], None]
    requests: RequestCounter = field(default_factory=RequestCounter)


def read_shard(store: CheckpointStore, source: ShardSource, task: Task, row: ShardRow) -> Fetched:
    """The records of one shard in this batch, bound; they may be emitted once this returns.

    Args:
        store: the checkpoint table.
        source: the shard.
        task: batch, epoch and limits.
        row: the shard's row, read after the batch was planned.

    Raises:
        Fenced, LostRace, ProtocolViolation: see `CheckpointStore.bind`.
        ReplayShort: the stream no longer holds what was bound.
    """
    if row.batch > task.batch:
        raise LostRace(f"batch {row.batch} of {row.id} is open; {task.batch} is past")
    if row.batch == task.batch:
        return _replay(store, source, task, row)
    place = FetchRequest(row.id, row.end, row.read_to, row.iterator, _earliest_arrival_millis(store, row), row.parents, row.was_open)
    fetched = source.fetch(place, task.limits)
    outcome = task.requests.carry(lambda calls: store.bind(task.epoch, task.batch, _range(fetched, row, calls), task.reader))
    return _replay(store, source, task, outcome.row) if isinstance(outcome, Replay) else fetched


def _earliest_arrival_millis(store: CheckpointStore, row: ShardRow) -> int:
    """A row that was made while the shard's parents were still read says how far they had come by then, or nothing. Now they are at END."""
    return earliest_arrival_millis(store.existing(row.parents).values()) if row.unread and row.parents else 0


def _replay(store: CheckpointStore, source: ShardSource, task: Task, row: ShardRow) -> Fetched:
    former = store.register(task.epoch, task.batch, row.id, task.reader)
    if former is not None:
        task.wait(task.lease_seconds)
    return source.replay(BoundRange.of(row))


def _range(fetched: Fetched, row: ShardRow, calls: Counts) -> Range:
    return Range(
        shard_id=row.id,
        start=row.end,
        end=fetched.end,
        first=fetched.first,
        records=fetched.records,
        read_to=fetched.read_to,
        children=fetched.children,
        size=fetched.size,
        behind=fetched.behind,
        note=fetched.note,
        calls=calls,
        iterator=fetched.iterator,
    )
