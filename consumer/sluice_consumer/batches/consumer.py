"""One epoch of a consumer: after the lease was taken, everything until the batch loop ends (docs/protocol.md, "An epoch", "A batch").

Ports in: the store, the stream's catalog, and an engine that runs a batch. The driver gives it Spark; the simulation gives it a step scheduler.
It may not read a clock or start a process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from sluice_checkpoints.errors import Fenced, ProtocolViolation, Refused
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol import batch_writes, pending_letters, reset_writes
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.model import Shard, StreamCatalog, StreamIdentity
from sluice_consumer.batches import bootstrap, planner
from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.batches.planner import BatchPlan, TableView
from sluice_consumer.batches.shard_rows import ShardRows, apart

ACCOUNT = re.compile(":[0-9]{12}:")


class Engine(Protocol):
    """Runs one batch: reads every shard of the plan through `shards.bind.read_shard` and calls the user's `process`."""

    def run(self, plan: BatchPlan) -> None:
        """Returns when `process` returned, no job of the batch runs any more, and none failed; raises otherwise."""
        ...


@dataclass(frozen=True, slots=True)
class Committed:
    """What a batch was, for reports and metrics.

    Attributes:
        rows: as committed.
        replay: an earlier epoch had begun it.
        waits: reads that waited out the lease first, because an earlier attempt of their task might have been alive.
        unread: user records that an earlier epoch had bound and that `process` did not read again; its return counts them as dealt with.
    """

    number: int
    rows: tuple[ShardRow, ...]
    replay: bool = False
    waits: int = 0
    unread: int = 0

    @property
    def records(self) -> int:
        """User records in the batch."""
        return sum(row.records for row in self.rows)

    @property
    def excluded(self) -> int:
        """User records that went to the dead letters."""
        return sum(row.excluded for row in self.rows)

    @property
    def bytes(self) -> int:
        """Payload of the batch; aggregates count as they were sent."""
        return sum(row.size for row in self.rows)

    @property
    def behind_millis(self) -> int:
        """The farthest any of its open shards is behind the tip."""
        return max((row.behind for row in self.rows if row.end != END), default=0)

    @property
    def full(self) -> frozenset[str]:
        """Shards that have more, but a limit ended their range. A range without a record is only on its way."""
        return frozenset(row.id for row in self.rows if row.records and row.behind)

    @property
    def notes(self) -> tuple[str, ...]:
        """Possible losses that its readers saw."""
        return notes(self.rows)


def notes(rows: Iterable[ShardRow]) -> tuple[str, ...]:
    """What rows say of possible losses."""
    return tuple(f"{row.id}: {row.note}" for row in rows if row.note)


def waits(before: ShardRow, after: ShardRow) -> int:
    """How many reads of a bound range waited since `before`.

    Every further read registers. The first of a task adds its name to the readers and continues at once; a later one finds the name, and waits. So
    those that waited are the registrations that added no name. (A registration whose reply was lost, and that was sent again, counts once more.)
    """
    if not after.readers:
        return 0  # closed: no task bound it
    known = before.replays - len(before.readers) if before.batch == after.batch else -1  # a bind adds its own name
    return after.replays - len(after.readers) - known


def unread(row: ShardRow, generation: int) -> int:
    """User records of a committed range that no task of this epoch read."""
    return 0 if any(batch_writes.is_of(key, generation) for key in row.readers) else row.records


def check_identity(consumer: ConsumerRow, identity: StreamIdentity) -> None:
    """Refuses a table of another stream, or of an earlier stream of the same name.

    Raises:
        Refused: naming both.
    """
    if consumer.stream_arn != identity.arn:
        way = "in stream.arn or stream.roleArn name the account that it was, or " if _differ_in_account(consumer.stream_arn, identity.arn) else ""
        mismatch = f"checkpoints.table: the table belongs to {consumer.stream_arn}, not to {identity.arn}"
        raise Refused(f"{mismatch}; {way}give this consumer a table of its own")
    if consumer.stream_created != identity.created_millis:
        raise Refused(
            f"checkpoints.table: stream {identity.name} was created at {identity.created_millis}, but the table's positions are of the one "
            f"created at {consumer.stream_created}: they mean nothing in the new stream; give this consumer a new table"
        )


def _differ_in_account(arn: str, other: str) -> bool:
    """Whether two ARNs of streams differ in nothing else: the same name in two accounts."""
    return arn != other and ACCOUNT.sub("::", arn, count=1) == ACCOUNT.sub("::", other, count=1)


class Consumer:
    """The rows of one consumer, as the epoch that owns them reads and writes them.

    Attributes:
        view: what the next batch is planned from.
        identity: the stream when it was last asked; `row`: the consumer row at the take-over. None before `begin`.
        listed_millis: the service's time of the last audit, in whole seconds.
        letters: dead letters of the open batch; None: none are kept. unpublished: entries of dead letters that are final, and not known to be
            published.
    """

    def __init__(
        self,
        store: CheckpointStore,
        catalog: StreamCatalog,
        epoch: Epoch,
        phase: Callable[[str], None] = lambda _: None,
        wall: Callable[[], int] | None = None,
    ) -> None:
        """`wall`: now in epoch milliseconds, which a commit leaves for people."""
        self.store, self.catalog, self.epoch, self._phase, self._wall = store, catalog, epoch, phase, wall
        self._committed_at: int | None = None
        self.view = TableView(ShardRows({}), 0, frozenset())
        self.row: ConsumerRow | None = None
        self.identity: StreamIdentity | None = None
        self.listed_millis = 0
        self.letters: BatchLetters | None = None
        self.unpublished: tuple[str, ...] = ()
        self._retention: int | None = None

    # -- beginning -----------------------------------------------------------------------------------------------------------------

    def begin(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Finishes the bootstrap or a reset, fences every row, then reads every row; only now is the epoch ready.

        Raises:
            Refused: the table is another stream's. Fenced: a later epoch took over.
        """
        consumer = self.store.consumer()
        if consumer is not None and consumer.generation > self.epoch.generation:
            raise Fenced(f"generation {consumer.generation} took over from {self.epoch.generation} before it began")
        if consumer is None or consumer.generation != self.epoch.generation:
            raise ProtocolViolation(f"generation {self.epoch.generation} does not own {self.store.table.name}")
        self.row, self.unpublished, self._retention = consumer, consumer.letters, consumer.retention
        self.identify()
        consumer = bootstrap.finish(self.store, consumer, self.epoch)
        self.row = consumer = reset_writes.finish(self.store, consumer, self.epoch)
        before = self.store.contents().rows.values()
        # A row at END cannot be bound: every range starts before it.
        open_rows = [row for row in before if row.generation < self.epoch.generation and row.committed_position(consumer.committed) != END]
        progress(f"fencing {len(open_rows)} of {len(before)} shards")
        self.store.table.side_by_side(partial(self.store.fence, self.epoch, row.id) for row in open_rows)
        contents = self.store.contents()
        inherited = max((row.batch for row in contents.rows.values()), default=0)
        rows = ShardRows.of(contents.rows, consumer.committed, contents.folded.keys())
        self.view = TableView(rows, consumer.committed, frozenset(), inherited=inherited, filled=consumer.filled)
        self.audit()

    @property
    def notes(self) -> tuple[str, ...]:
        """Possible losses in committed ranges; the epoch that committed them may have ended before it reported them."""
        return notes(row for row in self.view.rows.values() if row.batch <= self.view.committed)

    def audit(self) -> None:
        """Lists the stream's shards and gives a row to those that have none.

        The stream is asked who it is *after* the listing: if it still is the table's, the listing was of it too. Shard ids repeat in a stream that
        was deleted and created again.

        Raises:
            Refused: it is another stream now, or there is none.
        """
        asked, listed = frozenset(self.view.live), self.catalog.list_shards()
        self.identify()
        self.listed_millis = listed.date_millis
        self.view = replace(self.view, listed=frozenset(shard.id for shard in listed.shards), asked=asked)
        self._create(planner.unaccounted(self.view, map(as_child, listed.shards), self.epoch.generation))
        self._keep_retention()

    def _keep_retention(self) -> None:
        """A shorter retention counts at once; a longer one only once nothing is unread that may have expired under the shorter one."""
        assert self.identity is not None  # noqa: S101 - an audit asked who it is
        now, kept = self.identity.retention_millis, self._retention
        if kept is None or now < kept or (now > kept and not planner.unread_since(self.view, self.listed_millis - kept)):
            self.store.keep_retention(self.epoch, now)
            self._retention = now
            self.identity = replace(self.identity, shorter_millis=0)

    def identify(self) -> StreamIdentity:
        """The stream as it is now.

        Raises:
            Refused: it is not the one that this table's positions are of, or there is none.
        """
        assert self.row is not None  # noqa: S101 - begin() set it
        identity = self.catalog.describe()
        check_identity(self.row, identity)
        shorter = self._retention or 0
        self.identity = replace(identity, shorter_millis=shorter if shorter < identity.retention_millis else 0)
        return self.identity

    # -- batches -------------------------------------------------------------------------------------------------------------------

    def plan(self, idle: frozenset[str] = frozenset()) -> BatchPlan | None:
        """The next batch without these idle shards, or None: there is nothing to read for now.

        Creates rows of children first. A number that only waits for shards to join is committed at once, without Spark.
        """
        self._phase("plan")
        self._create(planner.missing_children(self.view, self.epoch.generation))
        if planner.needs_audit(self.view):
            self.audit()
        plan = planner.next_batch(self.view, idle)
        while not plan.rows and planner.waits_for_number(self.view):
            self._commit(plan.number, ())
            plan = planner.next_batch(self.view, idle)
        return plan if plan.rows else None

    def run(self, plan: BatchPlan, engine: Engine) -> Committed:
        """One batch to its end: run, close what no task bound, commit, publish its dead letters.

        The return of `process` says that it dealt with all that the batch contains, whether it read it in this epoch or not.

        Raises:
            Whatever ends an epoch: Fenced, LostRace, ProtocolViolation, or what the engine or the user's code raised.
        """
        self._phase("process")
        engine.run(self._issued(plan))
        self._phase("close")
        rows = self._all_closed(plan)
        self._phase("commit")
        self._commit(plan.number, rows)
        self.publish()
        self._phase("rest")
        skipped = sum(unread(row, self.epoch.generation) for row in rows)
        return Committed(plan.number, rows, plan.replay, sum(map(waits, plan.rows, rows)), skipped)

    def close_failed(self, plan: BatchPlan) -> tuple[ShardRow, ...]:
        """The rows of a batch that failed, and that is to be issued again in this epoch. Its content is fixed from now on.

        What no task bound is closed: a late task could bind it otherwise, and the batch would be committed without having shown it to `process`.

        Raises:
            Fenced, LostRace: see `CheckpointStore.close`.
        """
        rows = self._all_closed(plan)
        self.know(*rows)
        return rows

    def _issued(self, plan: BatchPlan) -> BatchPlan:
        if self.letters is None:
            return plan
        self.letters.begin_issue()
        return replace(plan, without=self.letters.rejected(plan.number))

    def publish(self) -> None:
        """Publishes the dead letters of committed batches, and deletes what else was pending of them. To be repeated until it returns.

        Raises:
            Fenced: a later epoch took over. Else what the store of dead letters raises.
        """
        if self.letters is None:
            return
        left = self.letters.publish(self.unpublished)
        if left != self.unpublished:
            pending_letters.published(self.store, self.epoch, self.unpublished, left)
            self.unpublished = left
        self.letters.forget(self.view.committed, left)

    def _all_closed(self, plan: BatchPlan) -> tuple[ShardRow, ...]:
        rows = self.store.read(row.id for row in plan.rows)
        unbound = [row for row in rows.values() if row.batch != plan.number]
        closed = self.store.table.side_by_side(partial(self._closed, plan.number, row) for row in unbound)
        return tuple((rows | {row.id: row for row in closed}).values())

    def _closed(self, batch: int, row: ShardRow) -> ShardRow:
        return self.store.close(self.epoch, batch, row)

    def know(self, *rows: ShardRow) -> None:
        """Plans from these rows from now on; they were written by this epoch."""
        self._knows(rows, self.view.committed)

    def _commit(self, number: int, rows: Iterable[ShardRow]) -> None:
        rows = tuple(rows)
        letters, filled = (*self.unpublished, *self._final(number, rows)), number if rows else self.view.filled
        self.store.commit(self.epoch, number, letters, filled, self._facts(rows))
        self.unpublished = letters
        self._knows(rows, number, own_commits=True, woken=planner.woken(self.view, number, rows), filled=filled)

    def _facts(self, rows: Iterable[ShardRow]) -> Mapping[str, int]:
        if self._wall is None:
            return {}
        former, self._committed_at = self._committed_at, self._wall()
        facts = {"at": self._committed_at, "records": sum(row.records for row in rows)}
        return facts if former is None else facts | {"former": former}

    def _knows(self, rows: Iterable[ShardRow], committed: int, **more: Any) -> None:
        self.view = replace(self.view, rows=apart(self.view.rows).known(rows, committed), committed=committed, **more)

    def _final(self, number: int, rows: tuple[ShardRow, ...]) -> tuple[str, ...]:
        if self.letters is not None:
            return self.letters.final(number, rows)
        return tuple(row.letter for row in rows if row.letter)

    def _create(self, rows: tuple[ShardRow, ...]) -> None:
        if not rows:
            return
        self.store.create_shards(self.epoch, self.view.committed, rows)
        self._knows(self.store.read(row.id for row in rows).values(), self.view.committed)


def as_child(shard: Shard) -> Child:
    """A listed shard as the child of its parents."""
    return Child(shard.id, frozenset(shard.parents))
