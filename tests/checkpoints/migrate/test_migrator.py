from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation, Refused, ServiceUnavailable, SourceActive
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.memory.table import MemoryTable
from sluice_checkpoints.migrate.migrator import MigrationResult, Migrator
from sluice_checkpoints.migrate.ports import MigrationProgress
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, SHARD_PREFIX, ConsumerRow, MigrationRow

SOURCE, TARGET = "orders-kcl", "sluice-orders"


def migration(bench: Any) -> MigrationRow:
    """The claim as it stands in the target."""
    return MigrationRow.from_item(bench.table.rows[MIGRATION])


def refusal(run: Callable[[], MigrationResult]) -> str:
    """Why it is refused."""
    with pytest.raises(Refused) as refused:
        run()
    return str(refused.value)


# -- the ordinary way --------------------------------------------------------------------------------------------------------------


def test_every_shard_continues_where_the_source_stands(bench: Any) -> None:
    """One row a shard, and of the shard KCL had not seen yet as well."""
    result = bench.migrator().run()
    assert (result.state, result.shards) == ("COMPLETE", 4)
    assert bench.places() == {
        bench.zero: {"at": "END"},
        bench.one: {"at": "AFTER", "sequence": bench.reached, "sub": 3},
        bench.two: {"at": "TRIM_HORIZON"},
        bench.three: {"at": "TRIM_HORIZON"},
    }


def test_the_consumer_that_comes_out_is_free_to_be_taken(bench: Any) -> None:
    """Released, bootstrapped, generation and batch 0, and bound to this very stream."""
    bench.migrator().run()
    row = ConsumerRow.from_item(bench.table.rows[CONSUMER])
    assert (row.generation, row.committed, row.lease_millis) == (0, 0, 0)
    assert (row.released, row.bootstrapped, row.state) == (True, True, "ACTIVE")
    assert (row.stream_arn, row.stream_created) == (bench.stream.describe().arn, bench.stream.created_millis)


def test_the_source_is_never_written(bench: Any) -> None:
    """Not a byte of it changes."""
    before = copy.deepcopy(bench.sources.tables)
    bench.migrator().run()
    assert bench.sources.tables == before


def test_the_consumer_row_is_the_last_thing_written(bench: Any) -> None:
    """Before it is there, no driver starts."""
    seen: list[bool] = []
    bench.calls.visit = lambda _: seen.append(CONSUMER in getattr(bench.targets.tables.get(TARGET), "rows", {}))
    bench.migrator().run()
    writes = [i for i, line in enumerate(bench.calls.log) if line.startswith("after")]
    assert not any(seen[: writes[-1]])
    assert migration(bench).state == "COMPLETE"


def test_the_claim_says_what_was_copied(bench: Any) -> None:
    """Digests of plan and source, and the number of rows: what a driver compares once more after its start."""
    result = bench.migrator().run()
    row = migration(bench)
    assert (row.plan_digest, row.rows, row.format, row.source) == (result.digest, 4, "kcl", SOURCE)
    assert row.source_digest
    assert row.released


def test_a_dry_run_writes_nothing_and_plans_the_same(bench: Any) -> None:
    """Not even the target table is made."""
    planned = bench.migrator().dry_run()
    assert not bench.targets.tables
    assert not any(line.startswith("after") for line in bench.calls.log)
    assert planned.state == "PLANNED"
    assert planned.digest == bench.migrator().run().digest


def test_shards_are_listed_after_the_rows_were_read(bench: Any) -> None:
    """So a row whose shard is not listed is one whose shard has expired, never one that was not made yet."""
    bench.migrator().run()
    order = [line for line in bench.calls.log if line in {"before scan source", "before list shards"}]
    assert order == ["before scan source", "before list shards"] * 2 + ["before scan source"]


def test_a_large_table_is_written_in_transactions_of_99_rows(bench: Any) -> None:
    """250 shards and the check on the claim: three transactions."""
    bench.stream._start(250)
    bench.sources.tables[SOURCE] = (bench.sources.tables[SOURCE][0], [row_of(f"shardId-{i:012d}") for i in range(250)])
    wrote: list[tuple[int, int]] = []

    class Told(MigrationProgress):
        def wrote(self, rows: int, of: int) -> None:
            wrote.append((rows, of))

    Migrator(bench.request, replace(bench.world(), progress=Told())).run()
    assert wrote == [(99, 250), (198, 250), (250, 250)]
    assert len(bench.places()) == 250


def row_of(shard: str) -> dict[str, Any]:
    """A lease that was just made."""
    numbers = {"leaseCounter": {"N": "1"}, "checkpointSubSequenceNumber": {"N": "0"}}
    return {"leaseKey": {"S": shard}, "checkpoint": {"S": "TRIM_HORIZON"}} | numbers


def test_warnings_of_table_and_plan_are_in_the_result(bench: Any) -> None:
    """PITR that was denied, and a LATEST that names no place."""
    bench.targets.warnings = ("no PITR",)
    bench.rows[1]["checkpoint"] = {"S": "LATEST"}
    warnings = bench.migrator().run().warnings
    assert warnings[0] == "no PITR"
    assert bench.one in warnings[1]


# -- again -------------------------------------------------------------------------------------------------------------------------


def test_a_completed_migration_is_done_and_nothing_is_written_again(bench: Any) -> None:
    """Also when the driver has moved on, and when the source is gone."""
    digest = bench.migrator().run().digest
    bench.table.rows[CONSUMER]["generation"] = 5
    bench.table.rows[SHARD_PREFIX + bench.one]["end"] = {"at": "END"}
    del bench.sources.tables[SOURCE]
    before = copy.deepcopy(bench.table.rows)
    for again in (bench.migrator().run(), bench.migrator().dry_run()):
        assert (again.state, again.digest, again.shards, again.plan) == ("COMPLETE", digest, 4, None)
    assert bench.table.rows == before


def test_the_present_plan_replaces_what_an_earlier_try_wrote(bench: Any) -> None:
    """In both directions: nobody has consumed from the target yet."""
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    first = bench.places()[bench.one]
    bench.move()
    bench.migrator().run()
    assert bench.places()[bench.one] == {"at": "AFTER", "sequence": bench.reached, "sub": 3} != first


def lose_the_third_scan(bench: Any) -> Migrator:
    """A migrator that fails after it has written every row."""
    scans = 0

    def visit(number: int) -> None:
        nonlocal scans
        if bench.calls.log[number] == "before scan source":
            scans += 1
            if scans == 3:
                raise ServiceUnavailable("no answer")

    bench.calls.visit = visit
    migrator: Migrator = bench.migrator()
    return migrator


def test_now_means_the_moment_of_the_first_claim(bench: Any) -> None:
    """T0 is decided once: what arrives between two tries is not passed over."""
    bench.rows[1]["checkpoint"] = {"S": "LATEST"}
    t0 = bench.stream.list_shards().date_millis - 2000
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    bench.seconds += 3600
    bench.migrator(unstarted="now").run()
    assert bench.places()[bench.one] == {"at": "TIMESTAMP", "millis": t0}


# -- what is refused ---------------------------------------------------------------------------------------------------------------


def test_a_stream_that_does_not_exist_is_refused_before_anything_is_read(bench: Any) -> None:
    """The message names it."""
    bench.stream.exists = False
    assert "orders" in refusal(bench.migrator().run)
    assert not bench.targets.tables


def test_a_source_that_does_not_exist_is_refused(bench: Any) -> None:
    """The message names it."""
    assert "there is no source table nowhere" in refusal(bench.migrator(source="nowhere").run)
    assert not bench.targets.tables


def test_a_source_of_an_unknown_schema_is_refused_naming_it(bench: Any) -> None:
    """And nothing is made."""
    bench.sources.tables[SOURCE] = ((TableKey("customer", "HASH", "S"),), [])
    assert "customer HASH S" in refusal(bench.migrator().run)
    assert not bench.targets.tables


def test_a_row_with_an_unknown_value_is_refused_naming_row_and_field(bench: Any) -> None:
    """And nothing is made."""
    bench.rows[2]["checkpoint"] = {"S": "SOMEWHERE"}
    message = refusal(bench.migrator().run)
    assert bench.two in message
    assert "checkpoint 'SOMEWHERE'" in message
    assert not bench.targets.tables


def test_the_table_of_a_stream_that_was_made_again_is_refused(bench: Any) -> None:
    """Shard ids repeat, sequence numbers do not."""
    bench.stream.recreate(2)
    assert "another stream" in refusal(bench.migrator().run)
    assert not bench.targets.tables


def test_the_target_may_not_be_the_source(bench: Any) -> None:
    """A name is never reused."""
    assert "is the source itself" in refusal(lambda: bench.migrator(target=SOURCE).run())


@pytest.mark.parametrize("name", ["t1", "a b c", "", "x" * 256])
def test_a_name_that_no_table_can_have_is_refused(bench: Any, name: str) -> None:
    """Before anything is asked."""
    assert "is no table name" in refusal(lambda: bench.migrator(target=name).run())
    assert not bench.calls.made


@pytest.mark.parametrize("migrated", [True, False])
def test_a_table_that_belongs_to_another_stream_is_refused_untouched(bench: Any, *, migrated: bool) -> None:
    """Whether that consumer came from a migration or not."""
    bench.migrator().run()
    bench.table.rows[CONSUMER]["streamArn"] = "arn:other"
    bench.table.rows[MIGRATION]["streamArn"] = "arn:other"
    if not migrated:
        del bench.table.rows[MIGRATION]
    before = copy.deepcopy(bench.table.rows)
    for run in (bench.migrator().run, bench.migrator().dry_run):
        message = refusal(run)
        assert "already belongs to a consumer of stream arn:other" in message
        assert TARGET in message
    assert bench.table.rows == before


def test_a_table_that_another_source_was_migrated_into_is_refused(bench: Any) -> None:
    """One table, one source."""
    bench.migrator().run()
    bench.sources.tables["second"] = bench.sources.tables[SOURCE]
    assert f"migrated from {SOURCE}" in refusal(bench.migrator(source="second").run)


def test_a_table_claimed_for_another_migration_is_refused_even_when_released(bench: Any) -> None:
    """Its rows would be mixed."""
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    bench.sources.tables["second"] = bench.sources.tables[SOURCE]
    before = copy.deepcopy(bench.table.rows)
    assert f"belongs to the migration of source {SOURCE}" in refusal(bench.migrator(source="second").run)
    assert bench.table.rows == before


def test_a_table_with_rows_of_another_program_is_refused(bench: Any) -> None:
    """Any table may have a key named id."""
    bench.targets.tables[TARGET] = MemoryTable(TARGET)
    bench.table.rows["customer-1"] = {"id": "customer-1"}
    assert "rows that are not Sluice's" in refusal(bench.migrator().run)
    assert list(bench.table.rows) == ["customer-1"]


def test_chunks_of_a_bootstrap_that_never_became_a_consumer_are_no_hindrance(bench: Any) -> None:
    """The claim decides; whoever loads the plan later finds it."""
    bench.targets.tables[TARGET] = MemoryTable(TARGET)
    bench.table.rows["bootstrap/x/0"] = {"id": "bootstrap/x/0"}
    assert bench.migrator().run().state == "COMPLETE"


def test_a_table_that_was_exported_is_no_target(bench: Any) -> None:
    """Its positions went back to another system, and no driver starts on it again: done is not what this migration is."""
    bench.migrator().run()
    bench.table.rows[CONSUMER] |= {"state": "EXPORTED", "exportedTo": "orders-kcl-2"}
    before = copy.deepcopy(bench.table.rows)
    for run in (bench.migrator().run, bench.migrator().dry_run):
        message = refusal(run)
        assert "EXPORTED: its positions went to orders-kcl-2" in message
        assert "migrate into a new table" in message
    assert bench.table.rows == before


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("orders-kcl", "orders-kcl-CoordinatorState"),
        ("orders-kcl", "orders-kcl-WorkerMetricStats"),
        ("orders-kcl", "orders-kcl_migration"),
        ("orders_checkpoints", "orders_clients"),
        ("orders_checkpoints", "orders_metadata"),
    ],
)
def test_the_target_may_not_be_a_table_that_belongs_to_the_source(bench: Any, source: str, target: str) -> None:
    """The other system would find its own table with a wrong key, and this migrator would take itself for its consumer."""
    assert f"--target {target} is a name that " in refusal(lambda: bench.migrator(source=source, target=target).run())
    assert not bench.calls.made


def test_a_time_that_has_not_come_is_refused(bench: Any) -> None:
    """By the service's clock: it refuses such an iterator, and a finished migration cannot be corrected."""
    bench.rows[1]["checkpoint"] = {"S": "AT_TIMESTAMP"}
    now = bench.stream.list_shards().date_millis
    for run in (bench.migrator(timestamp_millis=now + 1000).run, bench.migrator(timestamp_millis=now + 1000).dry_run):
        assert "--timestamp 2023-11-14T22:13:21+00:00 has not come: the time of Kinesis is 2023-11-14T22:13:20+00:00" in refusal(run)
    assert not bench.targets.tables
    assert bench.migrator(timestamp_millis=now).run().state == "COMPLETE"


@pytest.mark.parametrize("status", ["CREATING", "DELETING"])
def test_a_stream_that_comes_or_goes_is_refused(bench: Any, monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    """Its shards cannot be told."""
    identity = replace(bench.stream.describe(), status=status)
    monkeypatch.setattr(bench.stream, "describe", lambda: identity)
    assert status in refusal(bench.migrator().run)


def test_a_stream_made_again_during_the_migration_is_refused_and_the_claim_released(bench: Any) -> None:
    """Identity is asked for again before every copy."""

    def visit(number: int) -> None:
        if bench.calls.log[number] == "before wake":
            bench.stream.created_millis += 1

    bench.calls.visit = visit
    assert "deleted and created again" in refusal(bench.migrator().run)
    assert migration(bench).released
    assert CONSUMER not in bench.table.rows


# -- at rest -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dry", [True, False])
def test_a_source_whose_counter_moves_is_active(bench: Any, *, dry: bool) -> None:
    """The message names the row and what moved; the claim is released, and nothing of the plan is written."""
    bench.calls.visit = lambda n: bench.move() if bench.calls.log[n] == "before wake" else None
    migrator = bench.migrator(quiet_seconds=60)
    with pytest.raises(SourceActive, match=f"{bench.one}: .*leaseCounter 7 → ") as active:
        migrator.dry_run() if dry else migrator.run()
    assert active.value.exit_code == 75
    if not dry:
        assert migration(bench).released
        assert not bench.places()


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[0].update(leaseOwner={"S": "worker-2"}),
        lambda rows: rows[0].pop("leaseOwner"),
        lambda rows: rows.pop(0),
        lambda rows: rows.append({"leaseKey": {"S": "Leader"}, "ownerName": {"S": "w"}}),
        lambda rows: rows[1].update(checkpointSubSequenceNumber={"N": "4"}),
    ],
)
def test_any_change_of_any_row_is_a_sign_of_life(bench: Any, change: Callable[[list[Any]], object]) -> None:
    """An owner that changes, a row that comes or goes, a checkpoint within an aggregate."""
    done = False

    def visit(number: int) -> None:
        nonlocal done
        if not done and bench.calls.log[number] == "before wake":
            done = bool(change(bench.rows)) or True

    bench.calls.visit = visit
    with pytest.raises(SourceActive):
        bench.migrator().run()


def test_an_owner_alone_is_no_sign_of_life(bench: Any) -> None:
    """KCL keeps it after a clean stop, on finished rows too."""
    assert all("leaseOwner" in row for row in bench.rows)
    assert bench.migrator().run().state == "COMPLETE"


@pytest.mark.parametrize(("asked", "least"), [(None, 60), (5, 5), (0, 0), (400, 400)])
def test_the_two_scans_lie_the_quiet_period_apart(bench: Any, asked: float | None, least: float) -> None:
    """A minute for KCL unless said otherwise."""
    at: list[float] = []
    bench.calls.visit = lambda n: at.append(bench.seconds) if bench.calls.log[n] == "before scan source" else None
    bench.migrator(quiet_seconds=asked).run()
    assert max(b - a for a, b in pairwise(at)) >= least
    assert bench.seconds <= least + 1


def test_the_claim_is_kept_alive_while_the_source_is_watched(bench: Any) -> None:
    """The quiet period is longer than the lease, and a beat comes every third of it."""
    bench.migrator(quiet_seconds=400, lease_millis=30_000).run()
    assert migration(bench).counter == 1 + 400 / 10  # the claim itself, then one every 10 s


def test_a_checkpoint_during_the_copy_is_in_the_target(bench: Any) -> None:
    """The third scan finds it, and the copy is made again from rest."""
    moved = False

    def visit(number: int) -> None:
        nonlocal moved
        if not moved and bench.calls.log[number] == "after transact" and bench.places():
            moved = True
            bench.move()

    bench.calls.visit = visit
    assert bench.migrator().run().state == "COMPLETE"
    assert moved
    assert bench.places()[bench.one]["sequence"] == bench.reached


def test_a_source_that_moves_after_every_copy_is_active(bench: Any) -> None:
    """Some time it has to end."""

    def visit(number: int) -> None:
        if bench.calls.log[number] == "after transact" and bench.places():
            bench.move()

    bench.calls.visit = visit
    with pytest.raises(SourceActive):
        bench.migrator().run()
    assert CONSUMER not in bench.table.rows


# -- the claim ---------------------------------------------------------------------------------------------------------------------


def test_a_claim_that_beats_is_respected(bench: Any, lease: Any) -> None:
    """Exit 75; the other migrator goes on."""
    del lease
    hold_the_claim(bench)

    def visit(number: int) -> None:
        if bench.calls.log[number] == "before wake":
            bench.table.rows[MIGRATION]["counter"] += 1

    bench.calls.visit = visit
    with pytest.raises(LeaseHeld) as held:
        bench.migrator().run()
    assert held.value.exit_code == 75
    assert migration(bench).token == "another"


def hold_the_claim(bench: Any) -> None:
    """Another migrator of the same source has the claim."""
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    bench.table.rows[MIGRATION].pop("released", None)
    bench.table.rows[MIGRATION]["token"] = "another"


def test_a_silent_claim_is_waited_out_in_full_and_taken(bench: Any) -> None:
    """By what its holder promised, not by what the taker would."""
    hold_the_claim(bench)
    bench.table.rows[MIGRATION]["leaseMillis"] = 90_000
    start = bench.seconds
    assert bench.migrator(lease_millis=1000, quiet_seconds=0).run().state == "COMPLETE"
    assert bench.seconds - start >= 90


def test_a_released_claim_is_taken_at_once(bench: Any) -> None:
    """An orderly exit costs the next one nothing."""
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    assert migration(bench).released
    start = bench.seconds
    bench.migrator(quiet_seconds=0).run()
    assert bench.seconds == start


def test_rows_somebody_else_wrote_stop_it(bench: Any) -> None:
    """Only migrators write here, and only with the claim."""
    intruded = False

    def visit(number: int) -> None:
        nonlocal intruded
        if not intruded and bench.calls.log[number] == "after write" and migration(bench).state == "COPYING":
            intruded = True
            bench.table.rows[SHARD_PREFIX + bench.one] = {"id": SHARD_PREFIX + bench.one}

    bench.calls.visit = visit
    with pytest.raises(ProtocolViolation, match=bench.one):
        bench.migrator().run()
    assert CONSUMER not in bench.table.rows


def test_a_row_that_changed_after_it_was_written_stops_it(bench: Any) -> None:
    """The target is compared with the plan before anything depends on it."""

    def visit(number: int) -> None:
        if bench.calls.log[number] == "after transact" and bench.places():
            bench.table.rows[SHARD_PREFIX + bench.one]["start"] = {"at": "END"}

    bench.calls.visit = visit
    with pytest.raises(ProtocolViolation, match=bench.one):
        bench.migrator().run()
    assert CONSUMER not in bench.table.rows
    assert migration(bench).released
