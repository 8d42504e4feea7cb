"""A crash before and after every write of the isolation, on a real table and a real folder of letters (docs/protocol.md, "Poison")."""

from __future__ import annotations

from pathlib import Path

import pytest
from lettered_world import AFTER, BEFORE, HANGS, RAISES, STORES, Crashes, World, check, lived_through

from sluice_checkpoints.dynamodb.http import DynamoHttp
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.protocol.poison_note import noted
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Table

WRITES = {RAISES: 19, HANGS: 35}  # of isolation, commits, letters and sink
each_way = pytest.mark.parametrize("does", WRITES)


@pytest.fixture
def drivers_table(dynamo_table: DynamoTable, dynamodb_http: DynamoHttp) -> DynamoTable:
    """A table in DynamoDB by the client that drivers and tasks have, which is cheap: these are thousands of calls."""
    return DynamoTable(dynamo_table.name, dynamodb_http)


@each_way
def test_the_isolation_makes_these_writes(table: Table, tmp_path: Path, does: str) -> None:
    """The letter is stored before the exclusion, and final after the commit."""
    world, crashes = World(table, tmp_path, does), Crashes()
    lived_through(world, crashes)
    check(world)
    assert world.final() == ["poison"]
    seen = crashes.seen
    assert set(seen) == {"shorten", "hold", "note", "exclude", "sink", "commit", "letter", "named", "drop"}
    assert [name for name in seen if name in {"hold", "exclude", "letter", "named", "drop"}] == ["hold", "exclude", "letter", "named", "drop"]
    assert seen[seen.index("exclude") + 1 : seen.index("letter")] == ["commit"]
    assert len(seen) == WRITES[does]
    assert noted(CheckpointStore(table)).ever == 1


@pytest.mark.slow
@pytest.mark.parametrize("repaired", [None, STORES])
@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize(("does", "at"), [(does, at) for does, writes in WRITES.items() for at in range(writes)])
def test_a_crash_at_any_of_them_loses_nothing_and_doubles_nothing(
    drivers_table: Table, tmp_path: Path, does: str, at: int, when: str, repaired: str | None
) -> None:
    world, crashes = World(drivers_table, tmp_path, does, repaired), Crashes((at,), when)
    lived_through(world, crashes)
    check(world)
    if repaired is None:
        assert len(crashes.seen) > at
        assert world.final() == ["poison"]
