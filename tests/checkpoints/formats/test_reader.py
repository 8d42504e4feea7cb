from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.reader import StoredPosition, refuse_all
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot, TableKey
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_lab.fakes.migration import MemorySources

KEYS = (TableKey("leaseKey", "HASH", "S"),)
ROW: dict[str, Any] = {
    "leaseKey": {"S": "a"},
    "n": {"N": "1"},
    "set": {"SS": ["x", "y"]},
    "bytes": {"B": b"\x00"},
    "map": {"M": {"l": {"L": [{"N": "2"}]}}},
}


def snapshot(*rows: RawItem) -> Snapshot:
    return Snapshot("app", {"app": KEYS}, {"app": rows})


def test_the_digest_knows_nothing_of_order() -> None:
    other = {"leaseKey": {"S": "b"}}
    turned = {**dict(reversed(ROW.items())), "set": {"SS": ["y", "x"]}}
    assert snapshot(ROW, other).digest == snapshot(other, turned).digest


@pytest.mark.parametrize(
    "change",
    [{"n": {"N": "2"}}, {"n": {"S": "1"}}, {"set": {"SS": ["x"]}}, {"bytes": {"B": b""}}, {"map": {"M": {}}}, {"more": {"NULL": True}}],
)
def test_the_digest_and_the_comparison_know_every_attribute(change: dict[str, Any]) -> None:
    before, after = snapshot(ROW), snapshot(ROW | change)
    assert before.digest != after.digest
    (line,) = before.moved(after)
    assert line.startswith(f"a: {next(iter(change))} ")


def test_rows_that_come_and_go_are_movement() -> None:
    assert snapshot(ROW).moved(snapshot()) == ("a: row is gone",)
    assert snapshot().moved(snapshot(ROW)) == ("a: row appeared",)


def test_tables_that_come_go_or_change_their_key_are_movement() -> None:
    other = (TableKey("id", "HASH", "S"),)
    beside = Snapshot("app", {"app": KEYS, "app_migration": KEYS}, {"app": (ROW,), "app_migration": ()})
    anew = Snapshot("app", {"app": other}, {"app": ()})
    for later, named in ((beside, "app_migration"), (anew, "app")):
        assert snapshot(ROW).moved(later) == (f"table {named} was created, deleted, or created again",)
    assert snapshot(ROW).digest != beside.digest
    assert snapshot().digest != anew.digest


def test_nothing_moved_between_equal_scans() -> None:
    assert snapshot(ROW).moved(snapshot(dict(ROW))) == ()


@pytest.mark.parametrize(("stored", "progress"), [("150", True), ("END", True), ("TRIM_HORIZON", False), (None, False)])
def test_progress_is_what_was_acknowledged(stored: str | None, *, progress: bool) -> None:
    places = {"150": Position.after("150"), "END": END, "TRIM_HORIZON": TRIM_HORIZON}
    assert StoredPosition("x", places.get(stored) if stored else None).progress is progress


def test_problems_are_named_up_to_ten_and_counted() -> None:
    with pytest.raises(Refused) as refused:
        refuse_all("table app", [f"p{i}" for i in range(25)])
    assert "p9" in str(refused.value)
    assert "p10" not in str(refused.value)
    assert "and 15 more" in str(refused.value)
    refuse_all("table app", [])


def test_a_snapshot_has_the_main_tables_rows_and_key() -> None:
    chosen, seen = take_snapshot(MemorySources({"app": (KEYS, [ROW])}), "app")
    assert (chosen.name, seen.rows, seen.keys) == ("kcl", (ROW,), {"app": KEYS})


def test_a_source_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="there is no source table app"):
        take_snapshot(MemorySources({}), "app")
