"""Which commits of a Delta table's history take a batch out of the table."""

from __future__ import annotations

import pytest

from sluice_consumer.sinks.delta.lineage import History, TableVersion, adding, last_holding, undoing


def history(*told: str | int | tuple[str, int]) -> History:
    """Versions from 0: a batch, an operation, or a RESTORE to a version."""
    made = dict[int, TableVersion]()
    for version, each in enumerate(told):
        if isinstance(each, int):
            made[version] = TableVersion(version, "WRITE", None, "c", each)
        else:
            made[version] = TableVersion(version, each) if isinstance(each, str) else TableVersion(version, *each)
    return made


CREATE, OTHER = "CREATE TABLE", "OPTIMIZE"


@pytest.mark.parametrize(
    ("told", "undone_by"),
    [
        (history(CREATE, 1, 2), None),
        (history(CREATE, 1, 2, OTHER, "WRITE"), None),
        (history(CREATE, 1, 2, ("RESTORE", 1)), 3),
        (history(CREATE, 1, 2, ("RESTORE", 2)), None),
        (history(CREATE, 1, 2, ("RESTORE", 1), "WRITE", OTHER), 3),
        (history(CREATE, 1, 2, ("RESTORE", 1), ("RESTORE", 2)), None),
        (history(CREATE, 1, 2, OTHER, ("RESTORE", 1), OTHER, ("RESTORE", 3)), None),
        (history(CREATE, 1, 2, ("RESTORE", 1), ("RESTORE", 3)), 3),
        (history(CREATE, 1, 2, ("RESTORE", None)), 3),  # type: ignore[arg-type]
        (history(CREATE, 1, 2, "CREATE OR REPLACE TABLE"), 3),
        (history(CREATE, 1, 2, "REPLACE TABLE AS SELECT", OTHER), 3),
        (history(CREATE, 1, 2, "CREATE OR REPLACE TABLE AS SELECT", ("RESTORE", 2)), None),
        (history(CREATE, 1, 2, "CLONE"), 3),
        (history(CREATE, 1, 2, "REPLACE COLUMNS"), None),
        (history(CREATE, 1, ("RESTORE", 0), 2), None),
    ],
)
def test_what_undid_a_batch_is_found(told: History, undone_by: int | None) -> None:
    added = adding(told, "c", 2)
    found = undoing(told, added)
    assert (found and found.version) == undone_by
    if undone_by is not None and added is not None:
        assert undoing(told, added, last_holding(told, added)) is None


@pytest.mark.parametrize(
    ("told", "undone_by"),
    [
        (("WRITE", ("RESTORE", 1)), 4),  # to a version that the history does not show: the batch may be newer than that
        (("WRITE", ("RESTORE", None)), 4),
        (("WRITE", "CREATE OR REPLACE TABLE", ("RESTORE", 4)), 4),
        (("WRITE", ("RESTORE", 3), OTHER), None),
        (("WRITE", ("RESTORE", 2)), None),  # the newest version that is not shown: whatever is older is in it
        (("WRITE", "CREATE OR REPLACE TABLE", ("RESTORE", 3)), None),
        (("WRITE", OTHER), None),
    ],
)
def test_a_batch_that_is_older_than_the_history_is_in_doubt_only_where_nothing_proves_it(told: tuple[str, ...], undone_by: int | None) -> None:
    """A RESTORE to a version that the history shows keeps what is older than that."""
    cleaned = {version: commit for version, commit in history(CREATE, 1, 2, *told).items() if version > 2}
    assert adding(cleaned, "c", 2) is None
    found = undoing(cleaned, None)
    assert (found and found.version) == undone_by


def test_a_version_whose_writer_does_not_say_what_it_did_undoes_nothing() -> None:
    """`commitInfo` is optional in Delta's protocol."""
    told = {**history(CREATE, 1, 2), 3: TableVersion(3, None)}
    assert undoing(told, adding(told, "c", 2)) is None


def test_another_consumers_batch_of_that_number_is_another_one() -> None:
    assert adding({3: TableVersion(3, "WRITE", None, "d", 2)}, "c", 2) is None
