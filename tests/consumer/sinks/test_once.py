"""A table that takes each batch once, whatever dies and whoever is late: attempts step by step, in many orders."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from lake_in_memory import CONSUMER, Lake, LakeTable
from stepping import SteppedAttempt

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.conflicts import LIMIT_SECONDS, CommitConflict, Retries
from sluice_consumer.sinks.iceberg import lineage
from sluice_consumer.sinks.iceberg.lineage import NONE, Mark
from sluice_consumer.sinks.iceberg.once import MarkMoved, StagedLost, add_once
from sluice_consumer.sinks.verdicts import SinkUnavailable

SOME = 300
STEPS = 15  # more than an attempt takes


class Undone(Refused):
    def __init__(self, mark: Mark) -> None:
        super().__init__(str(mark))
        self.mark = mark


class Attempt(SteppedAttempt):
    """One attempt in a thread of its own; it takes a step only when it is told to, and may be told to die instead. The table's port, too.

    Attributes:
        added: what `add_once` returned.
        refused: the mark that was refused.
        dropped: what readers saw before its publications, and did not see after them.
        looked: what readers saw at its last look, and whether the lineage of the mark was still to be seen.
    """

    errors = (SinkUnavailable, Undone)

    def __init__(self, lake: Lake, batch: int, add: Callable[..., bool] = add_once) -> None:
        self._lake, self._batch, self._add = lake, batch, add
        self.lose_reply = False
        self.added: bool | None = None
        self.refused: Mark | None = None
        self.dropped = set[int]()
        self.looked: tuple[tuple[int, ...], bool] = ((), True)
        super().__init__()

    def _work(self) -> None:
        self.added = self._add(self, CONSUMER, self._batch, Retries(sleep=lambda _seconds: None))

    def read_mark(self, _consumer: str) -> Mark | None:
        self._pause()
        table = self._lake.table
        found = self.judged(table)
        self.looked = (table.visible, self._seen_through(table))
        return found

    def judged(self, table: LakeTable) -> Mark | None:
        return lineage.mark(table, CONSUMER)

    @staticmethod
    def _seen_through(table: LakeTable) -> bool:
        last = table.tagged.get(max(table.tagged, default=NONE))
        return all(lineage.descends(table, each) is not None for each in (last, table.head) if each is not None)

    def undone(self, _consumer: str, _batch: int, mark: Mark) -> Refused:
        self.refused = mark
        return Undone(mark)

    def begin(self, _consumer: str, batch: int) -> None:
        base, found = self._based()
        if not lineage.without_tag(found, batch):
            return

        def change(table: LakeTable) -> None:
            table.main = table.main if table.main is not None else table.add(None, ())
            table.tagged[batch] = table.main

        self._commit(base, change)

    def stage(self, _consumer: str, batch: int) -> Callable[[int], None]:
        staged = self._staged(batch)

        def publish(seen: int) -> None:
            nonlocal staged
            self._pause()
            table = self._lake.table
            if staged not in table.snapshots:
                raise StagedLost("expired")
            if not self.on_main(table, staged):
                staged = self._staged(batch)
            self._publish(staged, batch, seen)

        return publish

    def _staged(self, batch: int) -> int:
        """The branch is moved to `main` first, so another attempt's rows may come in between."""
        found = list[int]()

        def append(table: LakeTable) -> None:
            table.staging = table.add(table.staging, (batch,), batch)
            found.append(table.staging)

        self._commit(self._based()[0], lambda table: setattr(table, "staging", table.main))
        self._commit(self._based()[0], append)
        return found[0]

    def _publish(self, staged: int, batch: int, seen: int) -> None:
        base, found = self._based()
        if not self.unmoved(found, seen):
            raise MarkMoved("moved")
        if not self.on_main(self._lake.table, staged):
            raise CommitConflict("another writer has committed")
        self._commit(base, lambda table: self.publication(table, batch, staged))
        if self.lose_reply:
            self.lose_reply = False
            raise CommitConflict("no reply")

    @staticmethod
    def unmoved(found: Mark | None, seen: int) -> bool:
        return found == Mark(seen, tagged=True)

    @staticmethod
    def on_main(table: LakeTable, staged: int) -> bool:
        found = table.snapshots.get(staged)
        return found is not None and found.parent == table.main

    def publication(self, table: LakeTable, batch: int, staged: int) -> None:
        self.dropped |= {*table.visible} - {*table.held[staged]}
        table.main = table.head = staged
        table.tagged = {batch: staged}

    def _based(self) -> tuple[int, Mark | None]:
        self._pause()
        return self._lake.table.commits, self.judged(self._lake.table)

    def _commit(self, base: int, change: Callable[[LakeTable], None]) -> None:
        self._pause()
        if not self._lake.commit(base, change):
            raise CommitConflict("another writer was faster")


def lake(seed: int = 0) -> Lake:
    return Lake(random.Random(seed))  # noqa: S311 - a schedule that can be repeated


def test_a_batch_that_comes_again_is_added_once() -> None:
    """The driver was killed before the commit of its batch: the next one is given it again."""
    there = lake()
    for batch in (1, 1, 2, 2, 2, 5):
        Attempt(there, batch).end()
    assert there.table.visible == (1, 2, 5)


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("batch", [1, 2])
def test_a_driver_that_dies_at_any_step_loses_and_doubles_nothing(step: int, batch: int) -> None:
    there = lake()
    if batch > 1:
        Attempt(there, 1).end()
    first = Attempt(there, batch)
    for _ in range(step):
        first.step()
    first.die()
    heir = Attempt(there, batch)
    heir.end()
    assert heir.returned
    assert there.table.visible == tuple(range(1, batch + 1))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_lost_reply_to_the_publication_is_found_out(batch: int) -> None:
    there = lake()
    attempt = Attempt(there, batch)
    attempt.lose_reply = True
    attempt.end()
    assert attempt.returned
    assert there.table.visible == (batch,)


def test_drivers_that_stood_still_add_nothing_later() -> None:
    for seed in range(SOME):
        there, dice = lake(seed), random.Random(seed)  # noqa: S311
        late = [Attempt(there, 1), Attempt(there, 1)]
        for _ in range(dice.randrange(2 * STEPS)):
            dice.choice(late).step()
        for batch in (1, 2, 3):
            heir = Attempt(there, batch)
            while not heir.over:
                dice.choice((heir, heir, *late)).step()
            assert heir.returned
        for each in late:
            each.end()
        assert there.table.visible == (1, 2, 3), seed


def stirred(seed: int, attempt: type[Attempt]) -> None:
    """Drivers store batches 1 to 4, die and stand still, while the owner acts at any moment, and gets out of each refusal.

    Raises:
        AssertionError: a batch was doubled, or a driver took one for stored that the table did not hold.
    """
    there, dice = lake(seed), random.Random(seed)  # noqa: S311
    late = attempt(there, 1)
    for batch in (1, 2, 3, 4):
        while True:
            heir = attempt(there, batch)
            while not heir.over:
                dice.choice([heir.step, heir.step, heir.step, late.step, there.owner] if dice.random() < 0.5 else [heir.step])()
                if dice.random() < 0.03:
                    heir.die()
                assert len(set(there.table.visible)) == len(there.table.visible), f"{seed}: doubled: {there.table.visible}"
            if heir.refused is not None and not heir.returned:
                there.way_out(heir.refused)
            assert not heir.dropped | late.dropped, f"{seed}: dropped: {heir.dropped | late.dropped}"
            held, seen_through = heir.looked
            assert heir.added is not False or batch in held or not seen_through, f"{seed}: batch {batch} was skipped: {held}"
            if heir.returned and dice.random() < 0.6:
                break  # else the driver died before the commit: the batch comes again
            if dice.random() < 0.3:
                there.owner()
        late = attempt(there, batch) if late.over else late
    late.end()
    assert len(set(there.table.visible)) == len(there.table.visible), f"{seed}: doubled: {there.table.visible}"


def stir_all(attempt: type[Attempt]) -> None:
    for seed in range(SOME):
        stirred(seed, attempt)


def test_each_batch_is_in_the_table_once_or_refused_whatever_the_owner_does() -> None:
    stir_all(Attempt)


class ByTagOnly(Attempt):
    """Takes a tag for the truth, and a missing one for a new consumer."""

    def judged(self, table: LakeTable) -> Mark | None:
        return Mark(max(table.tagged), tagged=True) if table.tagged else None


class ByBranchOnly(Attempt):
    """Does not ask whether the table still holds what was published."""

    def judged(self, table: LakeTable) -> Mark | None:
        found = lineage.mark(table, CONSUMER)
        return found and Mark(found.batch, found.tagged)


class Blind(Attempt):
    """Publishes whatever the mark is by then."""

    @staticmethod
    def unmoved(_found: Mark | None, _seen: int) -> bool:
        return True


class Overwriting(Attempt):
    """Moves `main` to what it has staged, whoever has committed since."""

    @staticmethod
    def on_main(_table: LakeTable, _staged: int) -> bool:
        return True


class InTwoCommits(Attempt):
    """The rows first, then the mark."""

    def _publish(self, _staged: int, batch: int, _seen: int) -> None:
        self._commit(self._based()[0], lambda table: setattr(table, "main", table.add(table.main, (batch,))))
        super()._commit(self._based()[0], lambda table: table.tagged.update({batch: table.main or 0}))


@pytest.mark.parametrize("sabotaged", [ByTagOnly, ByBranchOnly, Blind, Overwriting, InTwoCommits])
def test_these_stories_notice_a_rule_taken_out(sabotaged: type[Attempt]) -> None:
    with pytest.raises(AssertionError, match=r"doubled|skipped|dropped"):
        stir_all(sabotaged)


@pytest.mark.parametrize("order", [0, 1], ids=["format 1", "format 2"])
def test_expired_snapshots_between_the_mark_and_main_are_no_reason_to_refuse(order: int) -> None:
    """A consumer was suspended while others wrote and maintenance ran."""
    snapshots = {1: lineage.LineageSnapshot(1, None, order * 1), 5: lineage.LineageSnapshot(5, 4, order * 5)}
    table = LakeTable(5, snapshots, {}, {3: 1}, None)
    assert lineage.descends(table, 1) is None
    assert lineage.mark(table, CONSUMER) == Mark(3, tagged=True)


@pytest.mark.parametrize("order", [0, 1], ids=["format 1", "format 2"])
def test_a_rollback_behind_expired_snapshots_is_seen(order: int) -> None:
    """Main was moved back to 2, which has expired; 3 was the mark's."""
    snapshots = {3: lineage.LineageSnapshot(3, 2, order * 3), 4: lineage.LineageSnapshot(4, 2, order * 4)}
    table = LakeTable(4, snapshots, {}, {7: 3}, None)
    assert lineage.mark(table, CONSUMER) == Mark(7, tagged=True, lost=3)


def test_another_consumers_batches_are_no_witness() -> None:
    """It begins anew, as one does whose table of checkpoints was adopted."""
    table = LakeTable(1, {1: lineage.LineageSnapshot(1, None, 1, "another", 7)})
    assert lineage.mark(table, CONSUMER) is None


def for_ever(retries: Retries) -> None:
    while True:
        retries.pause(CommitConflict("CommitFailedException"))


def test_other_writers_that_are_always_faster_make_the_sink_unavailable_after_a_limit() -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds + 0.5

    retries = Retries(sleep=sleep, clock=lambda: now[0])
    with pytest.raises(SinkUnavailable, match=r"CommitFailedException; other writers were faster \d+ times in 120 s\. Nothing of the batch counts"):
        for_ever(retries)
    assert LIMIT_SECONDS <= now[0] < LIMIT_SECONDS + 6
    assert max(slept[:3]) <= 0.4
    assert max(slept) > 1
