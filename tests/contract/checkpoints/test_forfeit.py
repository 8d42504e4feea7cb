from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.open_range import RangeLeft, forfeit
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put, Table

EPOCH = Epoch(4, "t4")
ROW = ShardRow(
    "a", Position.after("1"), Position.after("9"), generation=4, batch=8, first="2", records=5, size=50, readers={"3.0.0": 1}, read_by="3.0.0"
)
SOME, NOTHING = RangeLeft("6", 2, 20, "three are lost"), RangeLeft(None, 0, 0, "all are lost")


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    table.write(Put(ROW.to_item(), ()))
    return CheckpointStore(table)


@pytest.mark.parametrize("left", [SOME, NOTHING], ids=["in part", "as a whole"])
def test_a_range_shrinks_to_what_is_left_and_keeps_its_ends(store: CheckpointStore, left: RangeLeft) -> None:
    written = forfeit(store, EPOCH, ROW, left)
    assert written == store.read(["a"])["a"]
    assert (written.first, written.records, written.size, written.note) == (left.first, left.records, left.size, left.note)
    assert (written.start, written.end, written.batch, written.readers) == (ROW.start, ROW.end, ROW.batch, ROW.readers)


def test_a_lost_reply_is_recognised(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    assert forfeit(CheckpointStore(repeats(store.table)), EPOCH, ROW, SOME).records == 2


@pytest.mark.parametrize(
    "other",
    [replace(ROW, batch=9), replace(ROW, records=4), replace(ROW, first="3"), replace(ROW, end=Position.after("8"))],
    ids=["another batch", "another number of records", "another first record", "another end"],
)
def test_a_range_that_was_not_looked_at_is_not_touched(store: CheckpointStore, other: ShardRow) -> None:
    store.table.write(Put(other.to_item(), ()))
    with pytest.raises(ProtocolViolation, match="another range"):
        forfeit(store, EPOCH, ROW, SOME)
    assert store.read(["a"])["a"] == other


def test_a_fenced_epoch_gives_nothing_up(store: CheckpointStore) -> None:
    later = replace(ROW, generation=5)
    store.table.write(Put(later.to_item(), ()))
    with pytest.raises(Fenced):
        forfeit(store, EPOCH, ROW, SOME)
    assert store.read(["a"])["a"] == later
