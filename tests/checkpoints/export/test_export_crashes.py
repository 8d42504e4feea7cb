from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from exporting.bench import OLD, Bench
from faults import Crash

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.formats.writer import RowChange
from sluice_lab.fakes.migration import MemoryTargetTables

CALLS = 60  # more than an export of the bench makes; a test below checks that none is left out
QUIET = 1  # seconds, so that there are few calls


@pytest.fixture(params=[("kcl", True), ("kcl", False), ("nifi", True), ("vmware-go-kcl", True), ("kinsumer", True)], ids=str)
def make(request: pytest.FixtureRequest) -> Callable[[], Bench]:
    name, there = request.param

    def new() -> Bench:
        bench = Bench(name)
        if not there:
            bench.old.tables.clear()
        return bench

    return new


def finished(bench: Bench) -> Bench:
    bench.exporter(quiet_seconds=QUIET).run()
    return bench


def check_gate(bench: Bench, whole: Bench) -> None:
    """Sluice's table is closed only when everything is said; and before that no row was lowered, for places only grow."""
    if bench.consumer["state"] == "EXPORTED":
        assert bench.end_state() == whole.end_state()


def test_fewer_calls_are_made_than_the_tests_here_disturb(make: Callable[[], Bench]) -> None:
    """Otherwise a call at the end would go untested."""
    assert 20 < len(finished(make()).calls.log) < CALLS


@pytest.mark.parametrize(("fault", "ends"), [("crash_at", Crash), ("lose_at", ServiceUnavailable)], ids=["a crash", "a lost reply"])
def test_a_fault_at_any_call_leads_to_the_same_end(make: Callable[[], Bench], fault: str, ends: type[BaseException]) -> None:
    """Before it took effect, or after: the next run waits out the lease of a process that is gone, which nobody released, and finishes."""
    whole = finished(make())
    for at in range(CALLS):
        bench = make()
        setattr(bench.calls, fault, at)
        try:
            finished(bench)
        except ends:
            check_gate(bench, whole)
        setattr(bench.calls, fault, None)
        assert finished(bench).end_state() == whole.end_state(), f"call {at}"


def test_an_orderly_end_releases_the_lease(make: Callable[[], Bench]) -> None:
    """Whatever call failed after the take: the next driver need not wait. Only the take's own lost reply leaves it held: nobody knows its token."""
    held = set()
    for at in range(CALLS):
        bench = make()
        bench.calls.lose_at = at
        try:
            bench.exporter(quiet_seconds=QUIET).run()
        except ServiceUnavailable:
            if not bench.consumer.get("released"):
                held.add(bench.calls.log[at])
                assert bench.consumer["counter"] == 41  # the take was the one write
    assert held == {"after write"}


class Repeating(MemoryTargetTables):
    """Tables on which every write loses its first reply and is sent again, without the idempotency token that DynamoDB offers."""

    def write(self, table: str, changes: Any) -> Any:
        super().write(table, changes)
        return super().write(table, changes)


def test_a_write_that_is_repeated_because_its_reply_was_lost_is_recognised(make: Callable[[], Bench]) -> None:
    whole, bench = finished(make()), make()
    bench.old = Repeating(bench.old.tables, bench.calls)
    assert finished(bench).end_state() == whole.end_state()


class Half(MemoryTargetTables):
    """Tables on which an earlier run of this program wrote one of two transactions and crashed."""

    def write(self, table: str, changes: Any) -> Any:
        super().write(table, changes[:1])
        raise ServiceUnavailable("no answer")


def test_an_export_that_stopped_between_two_transactions_is_finished_by_the_next(make: Callable[[], Bench]) -> None:
    whole, bench = finished(make()), make()
    tables = bench.old.tables
    bench.old = Half(tables, bench.calls)
    with pytest.raises(ServiceUnavailable):
        bench.exporter(quiet_seconds=QUIET).run()
    asked: list[RowChange] = []

    def hook(when: str, what: str, changes: Any) -> None:
        if (when, what) == ("before", "write target"):
            asked.extend(changes)

    bench.old = MemoryTargetTables(tables, hook)
    assert finished(bench).end_state() == whole.end_state()
    assert 0 < len(asked) < len(tables[OLD][1])
