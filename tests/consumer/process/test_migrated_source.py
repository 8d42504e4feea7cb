"""A source that moved after its migration is found out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.snapshot import KeySchema, TableKey
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_checkpoints.protocol.rows import MigrationRow
from sluice_consumer.driver_report import DriverWarning, WarningReason
from sluice_consumer.process.migrated_source import moved, watch


class Tables:
    """One KCL table, whose only lease has this counter; None: no table."""

    def __init__(self, counter: int | None) -> None:
        self.counter = counter

    def key_schema(self, table: str) -> KeySchema | None:
        """KCL's, for the table of that name."""
        return (TableKey("leaseKey", "HASH", "S"),) if table == "old" and self.counter is not None else None

    def scan(self, _table: str) -> list[dict[str, dict[str, str]]]:
        """The lease."""
        return [{"leaseKey": {"S": "shardId-000000000000"}, "checkpoint": {"S": "7"}, "leaseCounter": {"N": str(self.counter)}}]


ROW = MigrationRow("old", "kcl", 0, source_digest=take_snapshot(Tables(1), "old")[1].digest)
CLAIM = MigrationClaim(ROW, "arn", 0)


def test_a_source_at_rest_says_nothing() -> None:
    """Every attribute is as it was."""
    assert moved(Tables(1), CLAIM) is None


def test_a_moved_source_is_named() -> None:
    """A renewed lease is enough."""
    assert str(moved(Tables(2), CLAIM)) == (
        "SourceMoved: table old (kcl) was written after its migration; is the consumer it belongs to still running?"
    )


def test_a_source_that_was_removed_says_nothing() -> None:
    """Removing it is the user's, later."""
    assert moved(Tables(None), CLAIM) is None


def test_a_migration_without_a_digest_is_told_apart_from_rest() -> None:
    """Nothing is claimed that was not compared."""
    assert moved(Tables(1), replace(CLAIM, row=replace(ROW, source_digest=None))) is not None


@pytest.mark.parametrize("choices", [{"ignore-row": ["shardId-000000000000"]}, {"ignore-attribute": ["leaseCounter"]}])
def test_what_the_migration_ignored_may_move(choices: dict[str, list[str]]) -> None:
    """A lock of another program is renewed for ever."""
    left = take_snapshot(Tables(1), "old")[1].without(frozenset(choices.get("ignore-attribute", ())), frozenset(choices.get("ignore-row", ())))
    assert moved(Tables(2), MigrationClaim(replace(ROW, source_digest=left.digest), "arn", 0, choices)) is None


@pytest.mark.parametrize(("looks", "waits"), [(1, [180, 3600]), (4, [180, 3600, 3600, 3600, 3600])])
def test_a_source_is_compared_every_hour_until_the_driver_ends(looks: int, waits: list[float]) -> None:
    """An old Deployment comes back when somebody commits to its repository. A comparison that fails ends nothing."""
    waited: list[float] = []

    def look() -> None:
        if len(waited) == 1:
            raise OSError("no route")

    assert watch(lambda seconds: waited.append(seconds) or len(waited) > looks, look) is None  # type: ignore[func-returns-value]
    assert waited == waits


def test_a_source_that_moved_is_looked_at_no_more() -> None:
    """The warning stays."""
    found = iter([None, None, DriverWarning(WarningReason.SOURCE_MOVED, "table old")])
    assert str(watch(lambda _: False, lambda: next(found))) == "SourceMoved: table old"
