"""Every reader of Sluice's own table takes a table into which every writer has written (docs/protocol.md, "Rows")."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from faults import Calls, Catalog
from written_by_all import WrittenTable

from sluice_checkpoints.cli import diagnose as command
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.diagnose.model import Severity
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.export.exporter import Exporter
from sluice_checkpoints.export.ports import ExportPorts, ExportRequest
from sluice_checkpoints.formats.sluice import KEY
from sluice_checkpoints.migrate.migrator import MigrationResult, Migrator
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.encoding import item_to_wire
from sluice_checkpoints.protocol.row_kinds import KINDS, OwnTable
from sluice_checkpoints.protocol.rows import MIGRATION, SHARD_PREFIX
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.address import StreamAddress
from sluice_lab.fakes.migration import MemorySources, MemoryTargetTables

PROTOCOL = Path(__file__).parents[3] / "docs" / "protocol.md"


@pytest.fixture
def written() -> WrittenTable:
    return WrittenTable()


def sources(written: WrittenTable) -> MemorySources:
    return MemorySources({"own": (KEY, [item_to_wire(row) for row in written.table.rows.values()])})


def migrated(written: WrittenTable, target: str = "renamed") -> MigrationResult:
    world = replace(written.bench.world(), sources=sources(written))
    return Migrator(replace(written.bench.request, source="own", target=target), world).run()


def places(written: WrittenTable) -> dict[str, Position]:
    committed = written.table.rows["consumer"]["committed"]
    return {i: row.committed_position(committed) for i, row in written.store.contents().all.items()}


def test_the_list_of_kinds_has_every_row_and_every_attribute_that_is_written(written: WrittenTable) -> None:
    """And nothing else: what no writer writes would hide an unknown attribute."""
    written.exported()
    assert written.attributes == {kind.name: set(kind.types) for kind in KINDS}


def test_the_page_names_the_same_kinds_and_attributes() -> None:
    page = PROTOCOL.read_text().partition("## Rows\n")[2].partition("\n## ")[0]
    lines = {line.split("`")[1].partition("/")[0]: set(re.findall(r"`(\w+)", line)) for line in page.splitlines() if line.startswith("| `")}
    assert lines.keys() == {kind.name for kind in KINDS}
    assert {(kind.name, name) for kind in KINDS for name in kind.types.keys() - lines[kind.name]} == set()


def test_it_can_be_migrated(written: WrittenTable) -> None:
    """To rename a consumer that has had a poison record."""
    result = migrated(written)
    made = CheckpointStore(written.bench.targets.tables["renamed"])
    assert result.state == "COMPLETE"
    assert {i: row.start for i, row in made.shards().items()} == places(written)
    assert [warning for warning in result.warnings if written.bench.one not in warning] == []  # its batch 2 is open


def test_it_can_be_shown(written: WrittenTable) -> None:
    shown = document(OwnTable(written.table))
    assert shown["folded"] == {"shards": [written.bench.two], "notes": {written.bench.two: "note"}}
    assert {*shown["shards"], *shown["folded"]["shards"]} == places(written).keys()


def test_it_can_be_diagnosed(written: WrittenTable) -> None:
    bench = written.bench
    options = command.DiagnoseOptions("own", StreamAddress("orders", "us-east-1"), "us-east-1", "auto", None, records=False, dynamodb_endpoint=None)
    found = diagnose(command.observe(options, command.DiagnosePorts(sources(written), Catalog(bench.stream, Calls()), None)))
    assert {finding.kind for finding in found if finding.severity != Severity.INFO} == set()


def test_it_can_be_exported(written: WrittenTable) -> None:
    """To KCL: the shard that was folded is finished there, and so it is not read again."""
    bench = written.bench
    tables = MemoryTargetTables({})
    ports = ExportPorts(CheckpointStore(OwnTable(written.table)), bench.stream, tables, lambda: 0.0, lambda _: None)
    assert Exporter(ExportRequest("kcl", "back"), ports).run().state == "EXPORTED"
    leases = {item["leaseKey"]["S"]: item["checkpoint"]["S"] for item in tables.tables["back"][1]}
    assert leases[bench.two] == "SHARD_END"


@pytest.mark.parametrize("key", ["consumer", "migration", "isolation", "bootstrap/", "ended/", "shard/"])
def test_an_attribute_that_no_writer_writes_is_refused_by_name(written: WrittenTable, key: str) -> None:
    """A later version may keep the place there."""
    row = next(row for i, row in written.table.rows.items() if i.startswith(key))
    row["resumeAt"] = "elsewhere"
    with pytest.raises(Refused, match=f"row {key}.*unknown attribute resumeAt"):
        migrated(written)


def test_a_target_with_rows_of_a_consumer_but_no_consumer_is_anothers(written: WrittenTable) -> None:
    rows = dict(written.table.rows)
    target = written.bench.targets.ensure("half").table
    target.rows.update({i: row for i, row in rows.items() if i.startswith("bootstrap/")})  # type: ignore[attr-defined]  # the fake's
    assert migrated(written, "half").state == "COMPLETE"
    for kind in ("isolation", SHARD_PREFIX):
        target = written.bench.targets.ensure(f"strange-{kind[:3]}").table
        target.rows.update({i: row for i, row in rows.items() if i.startswith(kind)})  # type: ignore[attr-defined]  # the fake's
        with pytest.raises(Refused, match="not Sluice's"):
            migrated(written, target.name)
    assert MIGRATION in rows
