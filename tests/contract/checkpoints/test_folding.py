from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from stored_rows import CONSUMER_ROW, EPOCH, LATER, ROW, A, B

from sluice_checkpoints.errors import Fenced, Refused, ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.folding import EndedShards, TableShards, delete, fold
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_checkpoints.protocol.rows import ENDED_PREFIX, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Member, Put, Table, Transaction

C = "shardId-000000000002"
AT = 1_700_000_000_000
FIRST, SECOND = (ShardRow(shard, TRIM_HORIZON, END, generation=3, batch=5, read_to=9) for shard in (A, B))
NOTED = replace(SECOND, note="it was last read long ago")
KEPT = replace(ROW, id=C)


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    for row in (CONSUMER_ROW, FIRST, NOTED, KEPT):
        table.write(Put(row.to_item(), ()))
    return CheckpointStore(table)


def test_a_table_without_folded_shards_has_its_rows(store: CheckpointStore) -> None:
    assert store.contents() == TableShards({A: FIRST, B: NOTED, C: KEPT})


def test_ids_are_written_and_the_rows_stay(store: CheckpointStore) -> None:
    assert fold(store, EPOCH, [NOTED, FIRST], AT).shards == {A, B}
    assert store.contents() == TableShards({A: FIRST, B: NOTED, C: KEPT}, {A: AT, B: AT}, {B: "it was last read long ago"})
    assert store.table.get(ENDED_PREFIX + A) == EndedShards(frozenset({A, B}), AT, {B: "it was last read long ago"}).to_item()


def test_rows_of_folded_shards_are_deleted(store: CheckpointStore) -> None:
    fold(store, EPOCH, [FIRST, NOTED], AT)
    delete(store, EPOCH, [FIRST, NOTED])
    found = store.contents()
    assert found.rows == store.shards() == {C: KEPT}
    assert {shard: row.end for shard, row in found.all.items()} == {A: END, B: END, C: KEPT.end}


def test_a_lost_reply_is_recognised(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    again = CheckpointStore(repeats(store.table))
    assert fold(again, EPOCH, [FIRST, NOTED], AT).shards == {A, B}
    delete(again, EPOCH, [FIRST, NOTED])
    assert store.contents() == TableShards({C: KEPT}, {A: AT, B: AT}, {B: "it was last read long ago"})


def test_what_was_folded_is_never_written_over(store: CheckpointStore) -> None:
    fold(store, EPOCH, [FIRST], AT)
    assert fold(store, EPOCH, [FIRST, NOTED], AT + 1) == EndedShards(frozenset({A}), AT)
    assert store.contents().folded == {A: AT}


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ({"at": AT}, "no attribute 'shards'"),
        ({"shards": A, "at": AT}, f"attribute shards is '{A}'"),
        ({"shards": frozenset({A})}, "no attribute 'at'"),
        ({"shards": frozenset({A}), "at": AT, "notes": ["a"]}, "attribute notes is"),
        ({"shards": frozenset({A}), "at": "today"}, "attribute at is 'today'"),
    ],
    ids=["no shards", "text", "no time", "a list of notes", "a day"],
)
def test_a_row_of_folded_shards_that_was_changed_by_hand_is_refused_by_name(store: CheckpointStore, stored: dict[str, Any], why: str) -> None:
    store.table.write(Put({"id": ENDED_PREFIX + A, **stored}, ()))
    with pytest.raises(Refused) as refused:
        CheckpointStore(OwnTable(store.table)).contents()
    told = str(refused.value)
    assert told.startswith(f"table {store.table.name} belongs to another program, or was changed by hand: row {ENDED_PREFIX}{A}")
    assert why in told
    assert f"aws dynamodb get-item --table-name {store.table.name} --key" in told


def test_a_former_epoch_folds_nothing(store: CheckpointStore) -> None:
    store.table.write(Put(replace(CONSUMER_ROW, generation=LATER.generation, token=LATER.token).to_item(), ()))
    with pytest.raises(Fenced, match="generation 4"):
        fold(store, EPOCH, [FIRST], AT)
    assert not store.contents().folded


def test_a_former_epoch_deletes_nothing(store: CheckpointStore) -> None:
    fold(store, EPOCH, [FIRST, NOTED], AT)
    store.table.write(Put(replace(CONSUMER_ROW, generation=LATER.generation, token=LATER.token).to_item(), ()))
    with pytest.raises(Fenced, match="generation 4"):
        delete(store, EPOCH, [FIRST, NOTED])
    assert store.shards() == {A: FIRST, B: NOTED, C: KEPT}


@pytest.mark.parametrize("change", [{"end": Position.after("1")}, {"batch": 8}, {"generation": 5}], ids=["end", "batch", "generation"])
def test_with_a_row_that_is_not_as_it_was_read_nothing_is_deleted(store: CheckpointStore, change: dict[str, Any]) -> None:
    """Somebody changed it by hand. The caller asks for the others again."""
    changed = replace(FIRST, **change)
    store.table.write(Put(changed.to_item(), ()))
    assert delete(store, EPOCH, [FIRST, NOTED]) == {A: changed.to_item()}
    assert store.shards() == {A: changed, B: NOTED, C: KEPT}


def test_a_row_that_is_gone_already_is_told_apart(store: CheckpointStore) -> None:
    """The reply of an earlier try was lost, and a part of it is asked for again."""
    assert delete(store, EPOCH, [FIRST]) == {}
    assert delete(store, EPOCH, [FIRST, NOTED]) == {A: None}
    assert store.shards() == {B: NOTED, C: KEPT}


class Silent:
    """A table whose replies leave out the rows of conditions that failed, as a proxy or an emulator may."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def transact(self, members: Sequence[Member]) -> Transaction:
        result = self._table.transact(members)
        return replace(result, refused=dict.fromkeys(result.refused))


def test_a_fold_reads_the_row_that_its_reply_leaves_out(store: CheckpointStore) -> None:
    fold(store, EPOCH, [FIRST], AT)
    silent = CheckpointStore(Silent(store.table))
    assert fold(silent, EPOCH, [FIRST, NOTED], AT + 1) == EndedShards(frozenset({A}), AT)


def test_a_row_that_is_said_to_be_there_and_is_not_is_an_error(store: CheckpointStore) -> None:
    """The caller leaves the table alone for an hour."""

    class Lying(Silent):
        def transact(self, _members: Sequence[Member]) -> Transaction:
            return Transaction(applied=False, refused={1: None})

    with pytest.raises(ServiceUnavailable, match="ended/"):
        fold(CheckpointStore(Lying(store.table)), EPOCH, [FIRST], AT)


def test_a_row_that_was_put_after_its_shard_was_folded_says_nothing(store: CheckpointStore) -> None:
    """A program that stood still in the first start puts it: its condition is that there is none."""
    fold(store, EPOCH, [FIRST], AT)
    delete(store, EPOCH, [FIRST])
    assert store.put_new(ShardRow(A, TRIM_HORIZON, TRIM_HORIZON).to_item())
    assert store.shards() == {B: NOTED, C: KEPT}


def test_ids_of_thousands_of_shards_take_few_bytes(table: Table) -> None:
    """90 ids in a row of 2 KB: 100,000 shards are below 3 MB, where their rows took 33 MB."""
    table.write(Put(CONSUMER_ROW.to_item(), ()))
    store = CheckpointStore(table)
    shards = [ShardRow(f"shardId-{number:012d}", TRIM_HORIZON, END) for number in range(270)]
    for first in range(0, 270, 90):
        fold(store, EPOCH, shards[first : first + 90], AT)
    assert store.contents().folded.keys() == {row.id for row in shards}
    ended = [item for item in table.scan() if item["id"].startswith(ENDED_PREFIX)]
    assert sum(len(item["id"]) + sum(map(len, item["shards"])) + 100 for item in ended) < 30 * 270
