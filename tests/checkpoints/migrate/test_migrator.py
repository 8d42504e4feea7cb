from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from migrating.outcome import SOURCE, migration

from sluice_checkpoints.migrate import store
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.ports import MigrationProgress
from sluice_checkpoints.protocol.rows import CONSUMER, SHARD_PREFIX, ConsumerRow

# -- the ordinary way --------------------------------------------------------------------------------------------------------------


def test_every_shard_continues_where_the_source_stands(bench: Any) -> None:
    result = bench.migrator().run()
    assert (result.state, result.shards) == ("COMPLETE", 4)
    assert bench.places() == {
        bench.zero: {"at": "END"},
        bench.one: {"at": "AFTER", "sequence": bench.reached, "sub": 3},
        bench.two: {"at": "TRIM_HORIZON"},
        bench.three: {"at": "TRIM_HORIZON"},
    }


def test_the_consumer_that_comes_out_is_free_to_be_taken(bench: Any) -> None:
    bench.migrator().run()
    row = ConsumerRow.from_item(bench.table.rows[CONSUMER])
    assert (row.generation, row.committed, row.lease_millis) == (0, 0, 0)
    assert (row.released, row.bootstrapped, row.state) == (True, True, "ACTIVE")
    assert (row.stream_arn, row.stream_created) == (bench.stream.describe().arn, bench.stream.created_millis)


def test_the_claim_says_what_was_copied(bench: Any) -> None:
    result = bench.migrator().run()
    row = migration(bench)
    assert (row.plan_digest, row.rows, row.format, row.source) == (result.digest, 4, "kcl", SOURCE)
    assert row.released


def test_a_dry_run_writes_nothing_and_plans_the_same(bench: Any) -> None:
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


def test_progress_counts_the_rows_of_all_transactions(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote: list[tuple[int, int]] = []

    class Told(MigrationProgress):
        def wrote(self, rows: int, of: int) -> None:
            wrote.append((rows, of))

    monkeypatch.setattr(store, "MEMBERS", 2)
    Migrator(bench.request, replace(bench.world(), progress=Told())).run()
    assert wrote == [(2, 4), (4, 4)]


def test_warnings_of_table_and_plan_are_in_the_result(bench: Any) -> None:
    bench.targets.warnings = ("no PITR",)
    bench.rows[1]["checkpoint"] = {"S": "LATEST"}
    warnings = bench.migrator().run().warnings
    assert warnings[0] == "no PITR"
    assert bench.one in warnings[1]


# -- again -------------------------------------------------------------------------------------------------------------------------


def test_a_completed_migration_is_done_and_nothing_is_written_again(bench: Any) -> None:
    digest = bench.migrator().run().digest
    bench.table.rows[CONSUMER]["generation"] = 5
    bench.table.rows[SHARD_PREFIX + bench.one]["end"] = {"at": "END"}
    del bench.sources.tables[SOURCE]
    before = copy.deepcopy(bench.table.rows)
    for again in (bench.migrator().run(), bench.migrator().dry_run()):
        assert (again.state, again.digest, again.shards, again.plan) == ("COMPLETE", digest, 4, None)
    assert bench.table.rows == before
