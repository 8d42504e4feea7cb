"""What a migration refuses: sources, targets and streams, each with its reason, and nothing is written."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from migrating.outcome import SOURCE, TARGET, lose_the_third_scan, migration, refusal

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION

# -- what is refused ---------------------------------------------------------------------------------------------------------------


def test_the_target_may_not_be_the_source(bench: Any) -> None:
    assert "is the source itself" in refusal(lambda: bench.migrator(target=SOURCE).run())


@pytest.mark.parametrize("name", ["t1", "a b c", "", "x" * 256])
def test_a_name_that_no_table_can_have_is_refused(bench: Any, name: str) -> None:
    assert "is not a table name" in refusal(lambda: bench.migrator(target=name).run())
    assert not bench.calls.made


@pytest.mark.parametrize("migrated", [True, False])
def test_a_table_that_belongs_to_another_stream_is_refused_untouched(bench: Any, *, migrated: bool) -> None:
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
    bench.migrator().run()
    bench.sources.tables["second"] = bench.sources.tables[SOURCE]
    assert f"migrated from {SOURCE}" in refusal(bench.migrator(source="second").run)


def test_a_table_claimed_for_another_migration_is_refused_even_when_released(bench: Any) -> None:
    with pytest.raises(ServiceUnavailable):
        lose_the_third_scan(bench).run()
    bench.calls.visit = lambda _: None
    bench.sources.tables["second"] = bench.sources.tables[SOURCE]
    before = copy.deepcopy(bench.table.rows)
    assert f"belongs to the migration of source {SOURCE}" in refusal(bench.migrator(source="second").run)
    assert bench.table.rows == before


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
    identity = replace(bench.stream.describe(), status=status)
    monkeypatch.setattr(bench.stream, "describe", lambda: identity)
    assert status in refusal(bench.migrator().run)


def test_a_stream_made_again_during_the_migration_is_refused_and_the_claim_released(bench: Any) -> None:
    def visit(number: int) -> None:
        if bench.calls.log[number] == "before wake":
            bench.stream.created_millis += 1

    bench.calls.visit = visit
    assert "deleted and created again" in refusal(bench.migrator().run)
    assert migration(bench).released
    assert CONSUMER not in bench.table.rows
