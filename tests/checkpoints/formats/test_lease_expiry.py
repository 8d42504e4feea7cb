"""A lease that says until when it is held is waited out: its worker may live and be silent until then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from migrating.bench import Bench
from migrating.cases import CASES

from sluice_checkpoints.errors import SourceActive
from sluice_checkpoints.formats.lease_expiry import LONGEST_SECONDS, latest, unreadable
from sluice_checkpoints.formats.snapshot import Snapshot, TableKey

NOW = datetime.fromtimestamp(1_700_000_000, UTC)  # of a bench
GO = [case for case in CASES if case.name.startswith("vmware")]
NIFI = next(case for case in CASES if case.name == "NiFi")


def go_until(bench: Bench, seconds: float) -> None:
    until = (NOW + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    bench.rows[1] |= {"AssignedTo": {"S": "w1"}, "LeaseTimeout": {"S": until}}


def nifi_until(bench: Bench, seconds: float) -> None:
    bench.rows[2] |= {"leaseOwner": {"S": "node-1"}, "leaseExpiry": {"N": str(1_700_000_000_000 + round(seconds * 1000))}}


@pytest.mark.parametrize(("seconds", "waited"), [(-5, 30), (20, 30), (100, 100)])
def test_the_longer_of_quiet_period_and_lease_counts(seconds: float, waited: float) -> None:
    bench = Bench(GO[0])
    go_until(bench, seconds)
    bench.migrator().run()
    assert waited <= bench.seconds <= waited + 2


def test_a_lease_that_is_renewed_meanwhile_is_a_sign_of_life() -> None:
    bench = Bench(GO[0])
    go_until(bench, 600)
    bench.calls.visit = lambda n: go_until(bench, 1195) if bench.calls.log[n] == "before wake" and bench.seconds > 590 else None
    with pytest.raises(SourceActive, match=f"{bench.one}: LeaseTimeout "):
        bench.migrator().run()


@pytest.mark.parametrize(("until", "case", "attribute"), [(go_until, GO[1], "LeaseTimeout"), (nifi_until, NIFI, "leaseExpiry")])
def test_a_quiet_period_that_ends_before_a_lease_is_refused_naming_the_row(until: Any, case: Any, attribute: str) -> None:
    """Whoever asks for less than the row promises would take a source over whose worker may live; also in a dry run."""
    bench = Bench(case)
    until(bench, 25)
    for run in (bench.migrator(quiet_seconds=5).dry_run, bench.migrator(quiet_seconds=5).run):
        with pytest.raises(SourceActive, match=rf"{bench.one}: .* holds its lease \({attribute}\) for 2[0-9] s more: stop its consumer"):
            run()
        assert not bench.targets.tables
    bench.seconds = 30
    assert bench.migrator(quiet_seconds=5).run().state == "COMPLETE"


def test_a_lease_without_end_is_not_waited_for() -> None:
    bench = Bench(GO[0])
    go_until(bench, LONGEST_SECONDS + 60)
    with pytest.raises(SourceActive, match="stop its consumer"):
        bench.migrator().run()
    assert bench.seconds == 0


def test_a_lease_that_nobody_holds_any_more_is_no_promise() -> None:
    """A clean stop takes the owner out and leaves the time."""
    bench = Bench(GO[0])
    go_until(bench, 600)
    del bench.rows[1]["AssignedTo"]
    bench.migrator().run()
    assert bench.seconds <= 32


@pytest.mark.parametrize("written", ["2026-13-01T00:00:00Z", "2026-11-21T02:12:59"])
def test_a_time_that_is_none_is_refused_naming_the_row(written: str) -> None:
    row: Any = {"ShardID": {"S": "shardId-000000000000"}, "AssignedTo": {"S": "w"}, "LeaseTimeout": {"S": written}}
    snapshot = Snapshot("t", {"t": (TableKey("ShardID", "HASH", "S"),)}, {"t": (row,)})
    (problem,) = unreadable(snapshot)
    assert (problem.row, latest(snapshot)) == ("shardId-000000000000", None)
    assert str(problem.why).startswith(f"LeaseTimeout '{written}' is not a time")


@pytest.mark.parametrize("case", [case for case in CASES if case not in {*GO, NIFI}], ids=str)
def test_other_tables_promise_nothing_that_has_not_passed(case: Any) -> None:
    """KCL and kinsumer store no end of a lease."""
    bench = Bench(case)
    snapshot = Snapshot(case.table, {n: k for n, (k, _) in bench.sources.tables.items()}, {n: r for n, (_, r) in bench.sources.tables.items()})
    found = latest(snapshot)
    assert found is None or found.until_millis < NOW.timestamp() * 1000
