from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from stored_rows import CONSUMER_ROW, EARLIER, EPOCH, FIRST, LATER, READER, ROW, SECOND, A, B, consumer, put, row

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, Child, ConsumerRow, MigrationRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range
from sluice_checkpoints.protocol.table import Put, Table

# -- reading -----------------------------------------------------------------------------------------------------------------------


def test_rows_come_back_as_they_were_written(store: CheckpointStore) -> None:
    full = replace(ROW, id=B, start=Position.timestamp(5), end=END, parents=frozenset({A}), children=(Child("c", frozenset({B})),), note=None)
    put(store, full)
    assert consumer(store) == CONSUMER_ROW
    assert store.shards() == {A: ROW, B: full}


def test_a_fresh_table_has_neither_consumer_nor_migration(table: Table) -> None:
    assert (CheckpointStore(table).consumer(), CheckpointStore(table).migration()) == (None, None)


def test_a_migration_row_is_read(table: Table) -> None:
    claim = MigrationRow("app", "kcl", 5, state="COMPLETE", rows=3, plan_digest="x", risks={"possiblyLost": 1})
    table.write(Put(claim.to_item(), ()))
    assert CheckpointStore(table).migration() == claim


def test_a_missing_row_is_a_violation(store: CheckpointStore) -> None:
    """Nothing ever deletes one."""
    with pytest.raises(ProtocolViolation, match=B):
        store.read([A, B])


def test_another_format_is_refused(store: CheckpointStore) -> None:
    """A later version may mean other things by the same words."""
    store.table.write(Put(CONSUMER_ROW.to_item() | {"format": 2}, ()))
    with pytest.raises(Refused, match="format 2"):
        store.consumer()


# -- take --------------------------------------------------------------------------------------------------------------------------


WANTED = replace(CONSUMER_ROW, token="mine", lease_millis=5000, holder="pod-1", updated_at="now")


def test_a_take_begins_the_next_generation(store: CheckpointStore) -> None:
    put(store, replace(CONSUMER_ROW, released=True))
    taken = store.take(consumer(store), WANTED)
    assert taken == consumer(store)
    assert (taken.generation, taken.counter, taken.token, taken.lease_millis) == (5, 10, "mine", 5000)
    assert (taken.released, taken.committed, taken.holder) == (False, 7, "pod-1")


OWNED = replace(CONSUMER_ROW, owner="shop/orders", cluster="c1")


@pytest.mark.parametrize(
    ("seen", "change"),
    [
        *((CONSUMER_ROW, change) for change in ({"counter": 10}, {"generation": 5}, {"state": "EXPORTED"}, {"owner": "shop/orders"})),
        *((OWNED, change) for change in ({"owner": "test/orders"}, {"cluster": "c2"}, {"owner": None}, {"cluster": None})),
    ],
    ids=lambda given: f"owner {given.owner}" if isinstance(given, ConsumerRow) else str(given),
)
def test_a_take_loses_when_anything_moved_since_it_looked(store: CheckpointStore, seen: ConsumerRow, change: dict[str, Any]) -> None:
    """Two resources that start at once on a table that nobody owns: one of them has it."""
    moved = replace(seen, **change)
    put(store, moved)
    assert store.take(seen, replace(seen, token="mine")) is None
    assert consumer(store) == moved


def test_a_take_whose_reply_was_lost_is_known_by_its_token(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    """Its second try meets its own row, and that is no loss."""
    taken = CheckpointStore(repeats(store.table)).take(consumer(store), WANTED)
    assert taken == consumer(store)
    assert taken.generation == 5


# -- beat and release --------------------------------------------------------------------------------------------------------------


def test_a_beat_moves_the_counter_and_nothing_else(store: CheckpointStore) -> None:
    assert store.beat(EPOCH)
    assert consumer(store) == replace(CONSUMER_ROW, counter=10)
    assert store.beat(EPOCH, 7000)
    assert consumer(store) == replace(CONSUMER_ROW, counter=11, lease_millis=7000)


def test_a_release_says_that_the_next_need_not_wait(store: CheckpointStore) -> None:
    assert store.release(EPOCH)
    assert store.release(EPOCH)
    assert consumer(store) == replace(CONSUMER_ROW, released=True)


@pytest.mark.parametrize("epoch", [LATER, EARLIER, Epoch(4, "another")])
def test_beat_release_and_bootstrap_are_for_the_holder_alone(store: CheckpointStore, epoch: Epoch) -> None:
    assert not store.beat(epoch)
    assert not store.release(epoch)
    with pytest.raises(Fenced):
        store.finish_bootstrap(epoch)
    assert consumer(store) == CONSUMER_ROW


def test_the_end_of_a_bootstrap_is_said_once_and_for_all(store: CheckpointStore) -> None:
    store.finish_bootstrap(EPOCH)
    assert consumer(store).bootstrapped


# -- fence -------------------------------------------------------------------------------------------------------------------------


def test_a_fence_marks_a_row_and_may_be_set_again(store: CheckpointStore) -> None:
    store.fence(LATER, A)
    store.fence(LATER, A)
    assert row(store) == replace(ROW, generation=5)


def test_a_fence_of_a_later_epoch_stands(store: CheckpointStore) -> None:
    with pytest.raises(Fenced, match="generation 4"):
        store.fence(EARLIER, A)
    assert row(store) == ROW


def test_a_fence_on_no_row_is_a_violation(store: CheckpointStore) -> None:
    with pytest.raises(ProtocolViolation):
        store.fence(EPOCH, B)
    assert store.table.get(f"shard/{B}") is None


# -- rows --------------------------------------------------------------------------------------------------------------------------


def test_a_fresh_table_gets_its_consumer_once(table: Table) -> None:
    store = CheckpointStore(table)
    assert store.create_consumer(CONSUMER_ROW)
    assert not store.create_consumer(replace(CONSUMER_ROW, consumer_id="id-2"))
    assert consumer(store) == CONSUMER_ROW


def test_a_table_that_is_being_migrated_gets_no_consumer(table: Table) -> None:
    table.write(Put(MigrationRow("app", "kcl", 5).to_item(), ()))
    assert not CheckpointStore(table).create_consumer(CONSUMER_ROW)
    assert table.get(CONSUMER) is None
    assert table.get(MIGRATION)


def test_a_row_is_put_once(table: Table) -> None:
    store = CheckpointStore(table)
    assert store.put_new({"id": "bootstrap/x/0", "n": 1})
    assert not store.put_new({"id": "bootstrap/x/0", "n": 2})
    assert table.get("bootstrap/x/0") == {"id": "bootstrap/x/0", "n": 1}


def test_shards_found_later_get_rows(store: CheckpointStore) -> None:
    rows = [ShardRow(f"shardId-{i:012d}", TRIM_HORIZON, TRIM_HORIZON, generation=4, joins=9) for i in range(120)]
    store.create_shards(EPOCH, 7, rows)
    assert store.shards() == {r.id: r for r in rows} | {A: ROW}


@pytest.mark.parametrize(("epoch", "committed"), [(LATER, 7), (EARLIER, 7), (EPOCH, 6), (EPOCH, 8)])
def test_no_row_is_made_by_another_epoch_or_at_another_batch(store: CheckpointStore, epoch: Epoch, committed: int) -> None:
    """A row made late would join a batch that was planned without it."""
    with pytest.raises(Fenced):
        store.create_shards(epoch, committed, [ShardRow(B, TRIM_HORIZON, TRIM_HORIZON)])
    assert store.shards() == {A: ROW}


# -- close -------------------------------------------------------------------------------------------------------------------------


def test_a_close_fixes_that_a_batch_holds_nothing_of_a_shard(store: CheckpointStore) -> None:
    closed = store.close(EPOCH, 8, ROW)
    assert closed == row(store) == store.close(EPOCH, 8, ROW)
    assert (closed.batch, closed.start, closed.end, closed.records, closed.first, dict(closed.readers)) == (8, FIRST, FIRST, 0, None, {})
    assert closed.committed_position(7) == closed.committed_position(8) == FIRST


def test_a_close_that_loses_to_a_late_bind_says_so(store: CheckpointStore) -> None:
    store.bind(EPOCH, 8, Range(A, FIRST, FIRST), READER)
    before = row(store)
    with pytest.raises(LostRace):
        store.close(EPOCH, 8, ROW)
    assert row(store) == before


def test_a_close_by_an_earlier_epoch_is_fenced(store: CheckpointStore) -> None:
    store.fence(LATER, A)
    with pytest.raises(Fenced):
        store.close(EPOCH, 8, ROW)


def test_a_close_of_a_past_batch_loses(store: CheckpointStore) -> None:
    with pytest.raises(LostRace):
        store.close(EPOCH, 7, ROW)
    assert row(store) == ROW


# -- commit ------------------------------------------------------------------------------------------------------------------------


def test_a_commit_moves_every_shard_with_one_write(bound: CheckpointStore) -> None:
    assert row(bound).committed_position(consumer(bound).committed) == FIRST
    bound.commit(EPOCH, 8)
    bound.commit(EPOCH, 8)
    assert row(bound).committed_position(consumer(bound).committed) == SECOND


@pytest.mark.parametrize("batch", [6, 7, 9])
def test_batches_are_committed_one_after_the_other(store: CheckpointStore, batch: int) -> None:
    if batch == 7:
        store.commit(EPOCH, 7)  # the last one: only its reply can have been lost
    else:
        with pytest.raises(ProtocolViolation):
            store.commit(EPOCH, batch)
    assert consumer(store) == CONSUMER_ROW


def test_the_retention_is_kept_by_the_epoch_that_holds_the_lease(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    CheckpointStore(repeats(store.table)).keep_retention(EPOCH, 86_400_000)
    assert consumer(store) == replace(CONSUMER_ROW, retention=86_400_000)


@pytest.mark.parametrize("epoch", [LATER, EARLIER])
def test_no_other_epoch_keeps_a_retention(store: CheckpointStore, epoch: Epoch) -> None:
    with pytest.raises(Fenced):
        store.keep_retention(epoch, 86_400_000)
    assert consumer(store) == CONSUMER_ROW


def test_a_commit_says_which_batch_contained_shards_last(store: CheckpointStore) -> None:
    """In the same write."""
    assert consumer(store).filled == 0
    store.commit(EPOCH, 8, filled=8)
    store.commit(EPOCH, 9, filled=8)
    assert consumer(store) == replace(CONSUMER_ROW, committed=9, filled=8)


def test_a_commit_leaves_its_time_for_people(store: CheckpointStore) -> None:
    """Of a later commit that leaves none, no time is known."""
    facts = {"at": 2_000, "former": 1_000, "records": 7}
    store.commit(EPOCH, 8, facts=facts)
    assert consumer(store).commit_facts == {"batch": 8, **facts}
    store.commit(EPOCH, 9)
    assert not consumer(store).commit_facts


def test_a_beat_leaves_its_time_for_people(store: CheckpointStore) -> None:
    assert store.beat(EPOCH, at=3_000)
    assert consumer(store).beat_at == 3_000
    assert not store.beat(LATER, at=4_000)
    assert consumer(store).beat_at == 3_000
    store.take(consumer(store), WANTED)
    assert consumer(store).beat_at is None


@pytest.mark.parametrize("epoch", [LATER, EARLIER])
def test_only_the_epoch_that_holds_the_lease_commits(store: CheckpointStore, epoch: Epoch) -> None:
    """And what a commit says beside its number is not written without it."""
    with pytest.raises(Fenced):
        store.commit(epoch, 8, ("a",), filled=8, facts={"at": 1})
    assert consumer(store) == CONSUMER_ROW
