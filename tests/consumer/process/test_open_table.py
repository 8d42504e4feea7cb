"""Before a lease is taken: the table is opened or made, a plan is written, and what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from supervising import CONFIG, Targets

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.rows import MigrationRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.config import Config, MigrateFromConfig, StartConfig
from sluice_consumer.process import supervisor, wiring
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Targets:
    targets, table, stream = Targets(None), CheckpointStore(MemoryTable()), MemoryStream("s")
    for name, made in (("store", table), ("catalog", stream), ("targets", targets)):
        monkeypatch.setattr(wiring, name, lambda _config, made=made: made)
    return targets


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, migrate_from=MigrateFromConfig("old"))], ids=["begun here", "migrated"])
def test_a_table_that_was_deleted_is_not_made_again(config: Config, services: Targets) -> None:
    """The new one would begin at start.position, and what lies between would be lost without a word."""
    with pytest.raises(Refused, match=r"checkpoints\.table: t does not exist, .* Restore it from a backup; or, to begin again, delete"):
        supervisor.open_table(config, made=True)
    assert services.asked == []


@pytest.mark.parametrize("made", [True, False])
def test_a_table_that_is_there_is_opened_and_one_that_never_was_is_made(made: bool, services: Targets) -> None:  # noqa: FBT001
    services.table = MemoryTable() if made else None
    assert supervisor.open_table(CONFIG, made=made).consumer() is not None
    assert services.asked == ([] if made else ["t"])


# -- preparing ---------------------------------------------------------------------------------------------------------------------


def test_preparing_a_fresh_table_writes_one_plan_and_preparing_it_again_changes_nothing() -> None:
    """Where each shard begins is decided once."""
    stream, table = MemoryStream("s", 2), MemoryTable()
    supervisor.prepare(CONFIG, CheckpointStore(table), stream)
    before = dict(table.rows)
    supervisor.prepare(replace(CONFIG, start=StartConfig("LATEST")), CheckpointStore(table), stream)
    assert table.rows == before
    assert {key.split("/")[0] for key in before} == {"consumer", "bootstrap"}


def test_a_start_before_the_oldest_record_is_a_warning_of_the_start_that_counts(caplog: pytest.LogCaptureFixture) -> None:
    stream, table = MemoryStream("s"), MemoryTable()
    stream.created_millis = 0
    config = replace(CONFIG, start=StartConfig("AT_TIMESTAMP", "2001-01-01T00:00:00Z"))
    for _ in range(2):
        supervisor.prepare(config, CheckpointStore(table), stream)
    assert caplog.text.count("start.timestamp 2001-01-01T00:00:00Z lies before the oldest record of stream s") == 1


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (None, "none"),
        (MigrationRow("old", "kcl", 1), "CLAIMED"),
        (MigrationRow("other", "kcl", 1, state="COMPLETE"), "other"),
    ],
    ids=["was never begun", "is not complete", "is of another table"],
)
def test_nothing_starts_when_the_migration_that_was_asked_for(row: MigrationRow | None, found: str) -> None:
    store = CheckpointStore(MemoryTable())
    if row:
        store.put_new(row.to_item())
    with pytest.raises(Refused, match=rf"migrateFrom\.table.*{found}"):
        supervisor.prepare(replace(CONFIG, migrate_from=MigrateFromConfig("old")), store, MemoryStream("s"))
    assert store.consumer() is None


def test_nothing_starts_on_the_target_of_an_unfinished_migration() -> None:
    store = CheckpointStore(MemoryTable())
    store.put_new(MigrationRow("old", "kcl", 1).to_item())
    with pytest.raises(Refused, match=r"checkpoints\.table"):
        supervisor.prepare(CONFIG, store, MemoryStream("s"))


def test_nothing_starts_on_a_recreated_stream() -> None:
    now = [1000]
    stream, store = MemoryStream("s", now=lambda: now[0]), CheckpointStore(MemoryTable())
    supervisor.prepare(CONFIG, store, stream)
    now[0] += 1
    stream.recreate()
    with pytest.raises(Refused, match="new table"):
        supervisor.prepare(CONFIG, store, stream)


def test_a_table_that_was_restored_under_the_name_is_refused(services: Targets) -> None:
    """Its batch numbers would come again with other records; nothing is written, the lease included."""
    store = supervisor.open_table(CONFIG)
    services.table = cast("MemoryTable", store.table)
    services.id = "arn:t@2"
    before = dict(services.table.rows)
    with pytest.raises(Refused, match=r"checkpoints\.table: .*is a copy of arn:t@1"):
        supervisor.open_table(CONFIG)
    assert services.table.rows == before
