"""A table that takes each batch once, whatever dies and whoever is late: attempts step by step, in many orders."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from stepping import SteppedAttempt

from sluice_consumer.sinks.once import NONE, MarkMoved, add_once

CONSUMER = "c"
SOME = 300


@dataclass
class Tables:
    """What is stored: marks, and the batches whose rows readers see."""

    marks: set[int] = field(default_factory=set)
    visible: list[int] = field(default_factory=list)


class Attempt(SteppedAttempt):
    """One attempt in a thread of its own; it takes a step only when it is told to, and may be told to die instead. The table's port, too."""

    errors = (MarkMoved,)

    def __init__(self, tables: Tables, batch: int, add: Callable[..., object] = add_once) -> None:
        self._tables, self._batch, self._add = tables, batch, add
        self.lose_reply = False
        super().__init__()

    def _work(self) -> None:
        self._add(self, CONSUMER, self._batch)

    def mark(self, _consumer: str) -> int | None:
        """See `MarkedTable`."""
        self._pause()
        return max(self._tables.marks, default=None)

    def begin(self, _consumer: str) -> None:
        """See `MarkedTable`."""
        self._pause()
        self._tables.marks.add(NONE)

    def stage(self, _consumer: str, batch: int) -> Callable[[int], None]:
        """See `MarkedTable`."""
        self._pause()

        def publish(seen: int) -> None:
            self._pause()
            if seen not in self._tables.marks:
                raise MarkMoved("gone")
            self._tables.marks = {mark for mark in self._tables.marks if mark > seen} | {batch}
            self._tables.visible.append(batch)
            if self.lose_reply:
                raise MarkMoved("no reply")

        return publish


def test_a_batch_that_comes_again_is_added_once() -> None:
    """The driver was killed before the commit of its batch: the next one is given it again."""
    tables = Tables()
    for batch in (1, 1, 2, 2, 2, 5):
        Attempt(tables, batch).end()
    assert tables.visible == [1, 2, 5]


@pytest.mark.parametrize("step", range(7))
@pytest.mark.parametrize("batch", [1, 2])
def test_a_driver_that_dies_at_any_step_loses_and_doubles_nothing(step: int, batch: int) -> None:
    """The replay adds what is missing."""
    tables = Tables()
    if batch > 1:
        Attempt(tables, 1).end()
    first = Attempt(tables, batch)
    for _ in range(step):
        first.step()
    first.die()
    heir = Attempt(tables, batch)
    heir.end()
    assert heir.returned
    assert tables.visible == list(range(1, batch + 1))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_lost_reply_to_the_publication_is_found_out(batch: int) -> None:
    """The mark says that it happened."""
    tables = Tables()
    attempt = Attempt(tables, batch)
    attempt.lose_reply = True
    attempt.end()
    assert attempt.returned
    assert tables.visible == [batch]


def test_a_driver_that_stood_still_adds_nothing_later() -> None:
    """It looked, or staged, or began, while an heir went on: in any order of their steps each batch is there once, in order."""
    for seed in range(SOME):
        dice, tables = random.Random(seed), Tables()  # noqa: S311 - a schedule that can be repeated
        late = Attempt(tables, 1)
        for _ in range(dice.randrange(7)):
            late.step()
        for batch in (1, 2, 3):
            heir = Attempt(tables, batch)
            while not heir.over:
                dice.choice((heir, heir, late)).step()
            if not heir.returned:  # it was refused: its driver is started again
                again = Attempt(tables, batch)
                again.end()
                assert again.returned
        late.end()
        assert tables.visible == [1, 2, 3], seed


class Unread(Attempt):
    """No look before the append."""

    def mark(self, consumer: str) -> int | None:
        """Answers as before the first batch, once."""
        super().mark(consumer)
        return NONE if not self.over else None

    def stage(self, consumer: str, batch: int) -> Callable[[int], None]:
        """Publishes whatever the mark is."""
        super().stage(consumer, batch)
        return lambda _seen: self._tables.visible.append(batch)


class InTwoCommits(Attempt):
    """The rows first, then the mark."""

    def stage(self, consumer: str, batch: int) -> Callable[[int], None]:
        """Readers see the rows a step before the mark moves."""
        super().stage(consumer, batch)

        def publish(_seen: int) -> None:
            self._pause()
            self._tables.visible.append(batch)
            self._pause()
            self._tables.marks = {batch}

        return publish


@pytest.mark.parametrize("sabotaged", [Unread, InTwoCommits])
def test_these_stories_notice_a_rule_taken_out(sabotaged: type[Attempt]) -> None:
    """A story that cannot fail proves nothing."""
    doubled = []
    for step in range(7):
        tables = Tables()
        first = sabotaged(tables, 1)
        for _ in range(step):
            first.step()
        first.die()
        sabotaged(tables, 1).end()
        doubled.append(tables.visible != [1])
    assert any(doubled)
