"""Dumps are found by what they are, and served and stored as what they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from takeover import dumps, handmade_nifi
from takeover.dumps import FORMAT, Dump, Tables


def put(folder: Path, name: str, **content: object) -> Path:
    path = folder / name
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_every_file_of_the_format_is_found_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, "a-situation-of-tomorrow.json", format=FORMAT)
    put(tmp_path, "attributes.json", format="something else")
    put(tmp_path, "list.json")
    assert [dump.name for dump in dumps.found([tmp_path])] == ["a-situation-of-tomorrow"]


def test_a_dump_that_two_folders_have_counts_once_unless_they_differ(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        put(folder, "same.json", format=FORMAT)
        put(folder, "changed.json", format=FORMAT, where=folder.name)
    assert [dump.name for dump in dumps.found([ours, theirs])] == ["changed", "changed", "same"]


def test_the_project_has_dumps_of_its_own() -> None:
    found = [dump.name for dump in dumps.found([dumps.OURS])]
    assert len(found) >= 19
    assert {name[:4] for name in found} >= {"kcl1", "kcl2", "kcl3", "gokc", "kins", "nifi"}


@pytest.mark.parametrize(
    ("tables", "source"),
    [
        (["orders", "orders-CoordinatorState", "orders-WorkerMetricStats"], "orders"),
        (["orders_clients", "orders_checkpoints", "orders_metadata"], "orders_checkpoints"),
        (["orders_migration", "orders"], "orders"),
        (["orders_migration"], "orders"),
    ],
)
def test_the_source_is_the_table_that_the_system_was_configured_with(tables: list[str], source: str) -> None:
    """Which is not there while NiFi's own migration has deleted it."""
    assert Dump("any", {"tables": dict.fromkeys(tables)}).source == source


def test_tables_are_loaded_as_they_are_dumped_each_under_a_name_of_its_own(dynamodb_endpoint: str) -> None:
    (dump,) = (d for d in dumps.found([dumps.OURS]) if d.name == "kcl3-pending")
    one, other = Tables(dump, dynamodb_endpoint), Tables(dump, dynamodb_endpoint)
    assert not one.contents().keys() & other.contents().keys()
    ((_, items),) = one.contents().items()
    states = [item["pendingCheckpointState"]["B"] for item in items if "pendingCheckpointState" in item]
    assert states
    assert all(isinstance(state, bytes) for state in states)
    assert len(items) == len(dump.tables[dump.source]["items"])


def test_a_table_that_is_not_in_a_dump_is_not_made(dynamodb_endpoint: str) -> None:
    """NiFi's main table may be missing: that is what the dump is about."""
    (dump,) = (d for d in handmade_nifi.DUMPS if d.name.endswith("main-missing"))
    tables = Tables(dump, dynamodb_endpoint)
    assert list(tables.contents()) == [tables.named(dump.source) + "_migration"]
