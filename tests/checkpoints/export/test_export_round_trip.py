from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from exporting.bench import FOUR, OLD, ONE, THREE, ZERO, Bench
from faults import Catalog

from sluice_checkpoints.export.exporter import Exporter
from sluice_checkpoints.export.ports import ExportPorts as Exports
from sluice_checkpoints.export.ports import ExportRequest as Export
from sluice_checkpoints.formats.kcl import KCL
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate.migrator import MigrationResult, Migrator
from sluice_checkpoints.migrate.ports import MigrationPorts, MigrationRequest
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.protocol.store import CheckpointStore, Range, TaskAttempt
from sluice_lab.fakes.migration import MemoryTargets, MemoryTargetTables

NULL = {"NULL": True}
CHILDREN = tuple(Child(i, frozenset({ZERO})) for i in (THREE, FOUR))


def migrate(bench: Bench, targets: MemoryTargets, target: str) -> MigrationResult:
    world = MigrationPorts(bench.old, Catalog(bench.stream, bench.calls), targets, bench._clock, bench._sleep, lambda: target)
    return Migrator(MigrationRequest(OLD, target), world).run()


def stands(store: CheckpointStore) -> dict[str, Position]:
    consumer = store.consumer()
    return {i: row.committed_position(consumer.committed if consumer else 0) for i, row in store.shards().items()}


def consume(bench: Bench, store: CheckpointStore) -> None:
    """One batch by the protocol: 0 to its end, 1 and 3 to their last records; 2 and 4 have nothing to read."""
    epoch = take_over(store, LeaseRequest(20_000, "driver", "now"), Watcher()).epoch
    rows = store.shards()
    ends = {ZERO: END, ONE: Position.after(bench.second), THREE: Position.after(bench.three)}
    for shard, row in rows.items():
        store.fence(epoch, shard)
        if shard in ends and row.end != ends[shard]:
            children = CHILDREN if shard == ZERO else None
            assert (
                store.bind(epoch, 1, Range(shard, row.end, ends[shard], records=1, children=children), TaskAttempt(f"{epoch.generation}.0.0", 1))
                is None
            )
    store.commit(epoch, 1)
    assert store.release(epoch)


def whole(bench: Bench, positions: dict[str, Position]) -> dict[str, Position]:
    """NiFi's last sequence number of a finished shard means its end."""
    last = Position.after(str(bench.stream.shards[ZERO].shard.ending_sequence))
    return {shard: END if position == last else position for shard, position in positions.items()}


def test_there_and_back_and_there_again_loses_nothing_and_repeats_nothing(each: Bench) -> None:
    targets = MemoryTargets()
    migrate(each, targets, "sluice-first")
    first = CheckpointStore(targets.tables["sluice-first"])
    consume(each, first)
    before = stands(first)
    assert (before[ZERO], before[FOUR]) == (END, TRIM_HORIZON)
    each.table = targets.tables["sluice-first"]
    each.exporter().run()
    again = migrate(each, targets, "sluice-second")
    assert whole(each, stands(CheckpointStore(targets.tables["sluice-second"]))) == before
    assert again.plan is not None
    assert {p.id for p in again.plan.shards if p.verdict.again} == (set() if each.writer.unstarted is None else {FOUR})


def test_there_and_back_without_a_batch_changes_no_place(each: Bench) -> None:
    targets = MemoryTargets()
    were = each.says()
    migrate(each, targets, "sluice-first")
    each.table = targets.tables["sluice-first"]
    each.exporter().run()
    says = each.says()
    assert {shard: position for shard, position in says.items() if were.get(shard)} == {shard: p for shard, p in were.items() if p}
    assert {says[shard] for shard in says if not were.get(shard)} <= {None, TRIM_HORIZON}


@pytest.mark.parametrize(
    "name", ["kcl1-graceful", "kcl1-sigkill", "kcl2-graceful", "kcl34-graceful", "kcl3-graceful", "kcl3-sigkill", "kcl3-latest", "kcl3-pending"]
)
def test_tables_that_kcl_itself_wrote_come_back_as_they_were(golden: Callable[[str], Any], name: str) -> None:
    dump, seconds = golden(name), [0.0]
    tables = MemoryTargetTables({name: (KCL.keys, dump.rows)})

    def read() -> dict[str, Position | None]:
        rows = tables.tables[name][1]
        shards = KCL.reader.parse(Snapshot(name, {name: KCL.keys}, {name: rows}), dump.describe()).shards
        return {row.id: row.stored.position for row in shards}

    def sleep(passed: float) -> None:
        seconds[0] += passed

    def others() -> list[str]:
        return sorted(str(sorted(row.items())) for row in tables.tables[name][1] if "checkpoint" not in row)

    were, kept, targets = read(), others(), MemoryTargets()
    Migrator(MigrationRequest(name, "sluice"), MigrationPorts(tables, dump, targets, lambda: seconds[0], sleep)).run()
    store = CheckpointStore(targets.tables["sluice"])
    Exporter(Export("kcl", name), Exports(store, dump, tables, lambda: seconds[0], sleep)).run()
    assert {shard: position for shard, position in read().items() if shard in were} == {i: p or TRIM_HORIZON for i, p in were.items()}
    assert others() == kept
    assert not [row for row in tables.tables[name][1] if "leaseOwner" in row and "checkpoint" in row]
