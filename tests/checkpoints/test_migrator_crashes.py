from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from sluice_checkpoints.errors import LeaseHeld, ServiceUnavailable, SluiceError, SourceActive
from sluice_checkpoints.memory import MemoryTable
from sluice_checkpoints.model import CONSUMER, MIGRATION
from sluice_checkpoints.table import Member, Outcome, Transaction, Write

TARGET = "sluice-orders"
CALLS = 60  # more than a migration of the bench makes; tests below check that none is left out


@pytest.fixture
def uncrashed(new_bench: Callable[[], Any]) -> Any:
    """A world in which the migration ran undisturbed."""
    bench = new_bench()
    bench.migrator().run()
    return bench


def check(bench: Any, uncrashed: Any, source: object) -> None:
    """The end that every crash leads to."""
    assert bench.end_state() == uncrashed.end_state()
    assert bench.table.rows[MIGRATION]["state"] == "COMPLETE"
    assert bench.sources.tables == source


def check_gate(bench: Any, uncrashed: Any) -> None:
    """No driver could have started: it needs a consumer row, and that is there only when everything is."""
    rows = bench.targets.tables[TARGET].rows if TARGET in bench.targets.tables else {}
    if CONSUMER in rows:
        assert bench.end_state() == uncrashed.end_state()


def test_fewer_calls_are_made_than_the_tests_here_disturb(uncrashed: Any) -> None:
    """Otherwise a call at the end would go untested."""
    assert 20 < uncrashed.calls.made < CALLS


@pytest.mark.parametrize("at", range(CALLS))
def test_a_crash_at_any_call_leads_to_the_same_end(bench: Any, uncrashed: Any, crash: type[BaseException], at: int) -> None:
    """Before it took effect, or after; the next run waits out the claim and finishes."""
    source = copy.deepcopy(bench.sources.tables)
    bench.calls.crash_at = at
    try:
        bench.migrator().run()
    except crash:
        check_gate(bench, uncrashed)
    bench.calls.crash_at = None
    bench.migrator().run()
    check(bench, uncrashed, source)


@pytest.mark.parametrize("at", range(CALLS))
def test_a_lost_reply_of_any_call_leads_to_the_same_end(bench: Any, uncrashed: Any, at: int) -> None:
    """The run ends, the claim is given back if it still can be, and the next run finishes."""
    source = copy.deepcopy(bench.sources.tables)
    bench.calls.lose_at = at
    try:
        bench.migrator().run()
    except ServiceUnavailable:
        check_gate(bench, uncrashed)
    bench.calls.lose_at = None
    bench.migrator().run()
    check(bench, uncrashed, source)


class Repeating(MemoryTable):
    """A table whose every write loses its first reply and is sent again, without the idempotency token that DynamoDB offers."""

    def write(self, write: Write) -> Outcome:
        """Twice."""
        super().write(write)
        return super().write(write)

    def transact(self, members: Sequence[Member]) -> Transaction:
        """Twice."""
        super().transact(members)
        return super().transact(members)


def test_a_write_that_is_repeated_because_its_reply_was_lost_is_recognised(bench: Any, uncrashed: Any) -> None:
    """By the token in the claim, and by the rows themselves: no false "lost"."""
    bench.targets.tables[TARGET] = Repeating(TARGET)
    assert bench.migrator().run().state == "COMPLETE"
    assert bench.end_state() == uncrashed.end_state()


@pytest.mark.parametrize("at", range(CALLS))
def test_a_migrator_that_pauses_at_any_call_changes_nothing_after_another_took_over(bench: Any, uncrashed: Any, at: int) -> None:
    """Five lease durations pass and a second migrator runs to its end; then the first goes on."""
    source = copy.deepcopy(bench.sources.tables)
    after: dict[str, Any] = {}

    def visit(number: int) -> None:
        if number == at:
            bench.seconds += 5 * 30
            bench.migrator().run()
            after.update(copy.deepcopy(bench.table.rows))

    bench.calls.visit = visit
    with suppress(LeaseHeld):
        bench.migrator().run()
    check(bench, uncrashed, source)
    if after:
        assert bench.table.rows == after


@pytest.mark.parametrize("at", range(CALLS))
def test_two_migrators_that_take_turns_come_to_the_same_end(bench: Any, uncrashed: Any, crash: type[BaseException], at: int) -> None:
    """The second starts at any call of the first and dies at once after its own first writes; the first goes on or is asked to come again."""
    source = copy.deepcopy(bench.sources.tables)

    def visit(number: int) -> None:
        if number == at:
            bench.calls.visit = lambda _: None
            bench.calls.crash_at = bench.calls.made + 25
            with suppress(crash, SluiceError):
                bench.migrator().run()
            bench.calls.crash_at = None

    bench.calls.visit = visit
    try:
        bench.migrator().run()
    except LeaseHeld:
        bench.migrator().run()
    check(bench, uncrashed, source)


@pytest.mark.parametrize("at", range(CALLS))
def test_a_checkpoint_of_the_old_writer_at_any_call_is_in_the_target_or_refused(bench: Any, at: int) -> None:
    """Up to the third scan; what is written after it nobody but the driver's later look can see."""
    last_scan = 0

    def visit(number: int) -> None:
        nonlocal last_scan
        last_scan = number if bench.calls.log[number] == "before scan source" else last_scan
        if number == at:
            bench.move()

    bench.calls.visit = visit
    try:
        bench.migrator().run()
    except SourceActive:  # exit 75
        assert CONSUMER not in bench.table.rows
        return
    if at <= last_scan:
        assert bench.places()[bench.one]["sequence"] == bench.reached
