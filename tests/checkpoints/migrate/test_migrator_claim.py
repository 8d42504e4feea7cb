"""A source has to be at rest, and a migrator needs the claim: what each of them means while time passes."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest
from migrating.bench import Bench
from migrating.cases import CASES
from migrating.outcome import lose_the_third_scan, migration

from sluice_checkpoints.errors import ServiceUnavailable, SourceActive
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION

# -- at rest -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dry", [True, False])
def test_a_source_whose_counter_moves_is_active(bench: Any, *, dry: bool) -> None:
    bench.calls.visit = lambda n: bench.move() if bench.calls.log[n] == "before wake" else None
    migrator = bench.migrator(quiet_seconds=60)
    with pytest.raises(SourceActive, match=f"{bench.one}: .*leaseCounter 7 → ") as active:
        migrator.dry_run() if dry else migrator.run()
    assert active.value.exit_code == 75
    if not dry:
        assert migration(bench).released
        assert not bench.places()


@pytest.mark.parametrize("asked", [{"rows": ("lock",)}, {"ignored": ("beat",), "rows": ("lock",)}])
def test_a_row_that_is_ignored_may_move_and_may_be_leased(asked: dict[str, Any]) -> None:
    """It is another program's lock, which is renewed for ever."""
    bench = Bench(next(case for case in CASES if case.name == "vmware-go-kcl 2"), **asked)
    lock = {"ShardID": {"S": "lock"}, "AssignedTo": {"S": "w"}, "LeaseTimeout": {"S": "2100-01-01T00:00:00Z"}}
    bench.rows.append(lock)
    bench.calls.visit = lambda _: lock.update(beat={"N": str(bench.calls.made)})
    assert bench.migrator().run().state == "COMPLETE"


@pytest.mark.parametrize(("places", "complete"), [({}, False), ({"shardId-000000000001": TRIM_HORIZON}, True)])
def test_the_lease_of_a_shard_that_is_placed_is_not_waited_for(places: dict[str, Position], complete: bool) -> None:  # noqa: FBT001 - a table
    """Else only a write to the source would help: its time may be in 2100."""
    bench = Bench(next(case for case in CASES if case.name == "vmware-go-kcl 2"), places=places)
    row = next(row for row in bench.rows if row["ShardID"] == {"S": bench.one})
    row |= {"AssignedTo": {"S": "w"}, "LeaseTimeout": {"S": "2100-01-01T00:00:00Z"}}
    with nullcontext() if complete else pytest.raises(SourceActive, match=r"or add --place for its shard$"):
        assert bench.migrator().run().state == "COMPLETE"


@pytest.mark.parametrize(("asked", "least"), [(None, 60), (5, 5), (0, 0), (400, 400)])
def test_the_two_scans_lie_the_quiet_period_apart(bench: Any, asked: float | None, least: float) -> None:
    """A minute for KCL unless said otherwise."""
    at: list[float] = []
    bench.calls.visit = lambda n: at.append(bench.seconds) if bench.calls.log[n] == "before scan source" else None
    bench.migrator(quiet_seconds=asked).run()
    assert max(b - a for a, b in pairwise(at)) >= least
    assert bench.seconds <= least + 1


def test_a_source_that_moves_after_every_copy_is_active(bench: Any) -> None:
    def visit(number: int) -> None:
        if bench.calls.log[number] == "after transact" and bench.places():
            bench.move()

    bench.calls.visit = visit
    with pytest.raises(SourceActive):
        bench.migrator().run()
    assert CONSUMER not in bench.table.rows


# -- the claim ---------------------------------------------------------------------------------------------------------------------


def hold_the_claim(bench: Any) -> None:
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    bench.table.rows[MIGRATION].pop("released", None)
    bench.table.rows[MIGRATION]["token"] = "another"


def test_a_silent_claim_is_waited_out_in_full_and_taken(bench: Any) -> None:
    hold_the_claim(bench)
    bench.table.rows[MIGRATION]["leaseMillis"] = 90_000
    start = bench.seconds
    assert bench.migrator(lease_millis=1000, quiet_seconds=0).run().state == "COMPLETE"
    assert bench.seconds - start >= 90


def test_a_released_claim_is_taken_at_once(bench: Any) -> None:
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    assert migration(bench).released
    start = bench.seconds
    bench.migrator(quiet_seconds=0).run()
    assert bench.seconds == start
