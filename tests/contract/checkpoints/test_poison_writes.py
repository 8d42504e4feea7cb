"""`shorten`, `exclude` and `forfeit` change an open range: what they write, and that each condition holds (docs/protocol.md, "Poison")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.open_range import RangeKept, RangeLeft, exclude, forfeit, shorten
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, TaskAttempt
from sluice_checkpoints.protocol.table import Put, Table

EPOCH = Epoch(4, "t4")
ROW = ShardRow(
    "a", Position.after("1"), Position.after("9"), generation=4, batch=8, first="2", records=5, size=50, readers={"3.0.0": 1}, read_by="3.0.0"
)
ONE = replace(ROW, records=1)
SOME, NOTHING = RangeKept(Position.after("6", 2), "2", 2, 20, 17), RangeKept(ROW.start, None, 0, 0, 16)
LEFT = RangeLeft("6", 2, 20, "three are lost")
WRITES: dict[str, tuple[ShardRow, Callable[[CheckpointStore], ShardRow]]] = {
    "shorten": (ROW, lambda store: shorten(store, EPOCH, ROW, SOME)),
    "forfeit": (ROW, lambda store: forfeit(store, EPOCH, ROW, LEFT)),
    "exclude": (ONE, lambda store: exclude(store, EPOCH, ONE)),
    "exclude, with a pending letter": (ONE, lambda store: exclude(store, EPOCH, ONE, "letters/8")),
}
each_write = pytest.mark.parametrize(("row", "write"), WRITES.values(), ids=WRITES)


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    return CheckpointStore(table)


@pytest.mark.parametrize("kept", [SOME, NOTHING], ids=["in part", "nothing"])
def test_a_range_ends_earlier_and_the_next_one_begins_there(store: CheckpointStore, kept: RangeKept) -> None:
    store.table.write(Put(ROW.to_item(), ()))
    written = shorten(store, EPOCH, ROW, kept)
    assert written == store.read(["a"])["a"]
    assert (written.end, written.first, written.records, written.size, written.read_to) == (
        kept.end,
        kept.first,
        kept.records,
        kept.size,
        kept.read_to,
    )
    assert store.bind(EPOCH, 9, Range("a", kept.end, Position.after("9"), "7", 3), TaskAttempt("4.1.0", 1)) is None


def test_the_end_of_a_shard_and_an_iterator_are_let_go(store: CheckpointStore) -> None:
    ended = replace(ROW, end=END, children=(Child("b", frozenset({"a"})),), iterator="i")
    store.table.write(Put(ended.to_item(), ()))
    written = shorten(store, EPOCH, ended, SOME)
    assert (written.children, written.iterator) == (None, None)
    assert written == store.read(["a"])["a"]


def test_the_only_record_is_taken_out_and_the_ends_stay(store: CheckpointStore) -> None:
    store.table.write(Put(ONE.to_item(), ()))
    written = exclude(store, EPOCH, ONE, "letters/8")
    assert written.letter == "letters/8"
    assert written == store.read(["a"])["a"]
    assert (written.start, written.end, written.first, written.records, written.excluded) == (ONE.start, ONE.end, None, 0, 1)
    store.bind(EPOCH, 9, Range("a", ONE.end, Position.after("10"), "10", 1), TaskAttempt("4.1.0", 1))
    assert (store.read(["a"])["a"].excluded, store.read(["a"])["a"].letter) == (0, None)


def test_a_record_that_is_not_alone_is_not_excluded(store: CheckpointStore) -> None:
    store.table.write(Put(ROW.to_item(), ()))
    with pytest.raises(ProtocolViolation, match="only a record that is alone"):
        exclude(store, EPOCH, ROW)
    assert store.read(["a"])["a"] == ROW


@pytest.mark.parametrize("left", [LEFT, RangeLeft(None, 0, 0, "all are lost")], ids=["in part", "as a whole"])
def test_a_range_shrinks_to_what_is_left_and_keeps_its_ends(store: CheckpointStore, left: RangeLeft) -> None:
    store.table.write(Put(ROW.to_item(), ()))
    written = forfeit(store, EPOCH, ROW, left)
    assert written == store.read(["a"])["a"]
    assert (written.first, written.records, written.size, written.note) == (left.first, left.records, left.size, left.note)
    assert (written.start, written.end, written.batch, written.readers) == (ROW.start, ROW.end, ROW.batch, ROW.readers)


@each_write
def test_a_lost_reply_is_recognised(
    store: CheckpointStore, row: ShardRow, write: Callable[[CheckpointStore], ShardRow], repeats: Callable[[Table], Any]
) -> None:
    store.table.write(Put(row.to_item(), ()))
    assert write(CheckpointStore(repeats(store.table))) == store.read(["a"])["a"]


@each_write
@pytest.mark.parametrize(
    "other",
    [{"batch": 9}, {"records": 4}, {"first": "3"}, {"end": Position.after("8")}],
    ids=["another batch", "another number of records", "another first record", "another end"],
)
def test_a_range_that_was_not_looked_at_is_not_touched(
    store: CheckpointStore, row: ShardRow, write: Callable[[CheckpointStore], ShardRow], other: dict[str, Any]
) -> None:
    there = replace(row, **other)
    store.table.write(Put(there.to_item(), ()))
    with pytest.raises(ProtocolViolation, match="another range"):
        write(store)
    assert store.read(["a"])["a"] == there


@each_write
def test_a_fenced_epoch_changes_nothing(store: CheckpointStore, row: ShardRow, write: Callable[[CheckpointStore], ShardRow]) -> None:
    later = replace(row, generation=5)
    store.table.write(Put(later.to_item(), ()))
    with pytest.raises(Fenced):
        write(store)
    assert store.read(["a"])["a"] == later
