from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, Child, ConsumerRow, MigrationRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, Replay, TaskAttempt
from sluice_checkpoints.protocol.table import Put, Table

A, B = "shardId-000000000000", "shardId-000000000001"
CONSUMER_ROW = ConsumerRow("id-1", "arn:orders", 1_700_000_000_000, generation=4, token="t4", counter=9, lease_millis=20_000, committed=7)
EPOCH, LATER, EARLIER = Epoch(4, "t4"), Epoch(5, "t5"), Epoch(3, "t3")
FIRST, SECOND = Position.after("100", 3), Position.after("200")
READER = TaskAttempt("4.1.0", 11)
BOUND = Range(A, FIRST, SECOND, first="101", records=12, read_to=99, size=1000, behind=5, calls={"kinesis/GetRecords": 2}, iterator="AAAA")
ROW = ShardRow(A, TRIM_HORIZON, FIRST, generation=4, batch=7, readers={"4.0.0": 2}, first="1", records=3, note="old")


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    """A consumer of generation 4 that has committed batch 7, and a shard whose last range is of that batch."""
    table.write(Put(CONSUMER_ROW.to_item(), ()))
    table.write(Put(ROW.to_item(), ()))
    return CheckpointStore(table)


def row(store: CheckpointStore, shard: str = A) -> ShardRow:
    """A shard's row as it stands."""
    return store.read([shard])[shard]


def consumer(store: CheckpointStore) -> ConsumerRow:
    """The consumer row as it stands."""
    found = store.consumer()
    assert found
    return found


def put(store: CheckpointStore, changed: ShardRow | ConsumerRow) -> None:
    """What another program wrote meanwhile."""
    store.table.write(Put(changed.to_item(), ()))


# -- reading -----------------------------------------------------------------------------------------------------------------------


def test_rows_come_back_as_they_were_written(store: CheckpointStore) -> None:
    """Consumer and shard, with everything in them."""
    full = replace(ROW, id=B, start=Position.timestamp(5), end=END, parents=frozenset({A}), children=(Child("c", frozenset({B})),), note=None)
    put(store, full)
    assert consumer(store) == CONSUMER_ROW
    assert store.shards() == {A: ROW, B: full}


def test_a_fresh_table_has_neither_consumer_nor_migration(table: Table) -> None:
    """None, not an error."""
    assert (CheckpointStore(table).consumer(), CheckpointStore(table).migration()) == (None, None)


def test_a_migration_row_is_read(table: Table) -> None:
    """The driver checks it before it starts."""
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
    """Generation and counter grow, the promise is the taker's, and it is no longer released."""
    put(store, replace(CONSUMER_ROW, released=True))
    taken = store.take(consumer(store), WANTED)
    assert taken == consumer(store)
    assert (taken.generation, taken.counter, taken.token, taken.lease_millis) == (5, 10, "mine", 5000)
    assert (taken.released, taken.committed, taken.holder) == (False, 7, "pod-1")


@pytest.mark.parametrize("change", [{"counter": 10}, {"generation": 5}, {"state": "EXPORTED"}])
def test_a_take_loses_when_anything_moved_since_it_looked(store: CheckpointStore, change: dict[str, Any]) -> None:
    """A beat, another take, an export."""
    seen = consumer(store)
    put(store, replace(CONSUMER_ROW, **change))
    assert store.take(seen, WANTED) is None
    assert consumer(store) == replace(CONSUMER_ROW, **change)


def test_a_take_whose_reply_was_lost_is_known_by_its_token(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    """Its second try meets its own row, and that is no loss."""
    taken = CheckpointStore(repeats(store.table)).take(consumer(store), WANTED)
    assert taken == consumer(store)
    assert taken.generation == 5


# -- beat and release --------------------------------------------------------------------------------------------------------------


def test_a_beat_moves_the_counter_and_nothing_else(store: CheckpointStore) -> None:
    """Unless it makes a new promise."""
    assert store.beat(EPOCH)
    assert consumer(store) == replace(CONSUMER_ROW, counter=10)
    assert store.beat(EPOCH, 7000)
    assert consumer(store) == replace(CONSUMER_ROW, counter=11, lease_millis=7000)


def test_a_release_says_that_the_next_need_not_wait(store: CheckpointStore) -> None:
    """And may be said twice."""
    assert store.release(EPOCH)
    assert store.release(EPOCH)
    assert consumer(store) == replace(CONSUMER_ROW, released=True)


@pytest.mark.parametrize("epoch", [LATER, EARLIER, Epoch(4, "another")])
def test_beat_release_and_bootstrap_are_for_the_holder_alone(store: CheckpointStore, epoch: Epoch) -> None:
    """Generation and token must both be right; nothing changes otherwise."""
    assert not store.beat(epoch)
    assert not store.release(epoch)
    with pytest.raises(Fenced):
        store.finish_bootstrap(epoch)
    assert consumer(store) == CONSUMER_ROW


def test_the_end_of_a_bootstrap_is_said_once_and_for_all(store: CheckpointStore) -> None:
    """Every shard of the plan has its row."""
    store.finish_bootstrap(EPOCH)
    assert consumer(store).bootstrapped


# -- fence -------------------------------------------------------------------------------------------------------------------------


def test_a_fence_marks_a_row_and_may_be_set_again(store: CheckpointStore) -> None:
    """Once it is there, setting it again changes nothing: a lost reply is no loss."""
    store.fence(LATER, A)
    store.fence(LATER, A)
    assert row(store) == replace(ROW, generation=5)


def test_a_fence_of_a_later_epoch_stands(store: CheckpointStore) -> None:
    """The earlier one has to stop."""
    with pytest.raises(Fenced, match="generation 4"):
        store.fence(EARLIER, A)
    assert row(store) == ROW


def test_a_fence_on_no_row_is_a_violation(store: CheckpointStore) -> None:
    """And makes none."""
    with pytest.raises(ProtocolViolation):
        store.fence(EPOCH, B)
    assert store.table.get(f"shard/{B}") is None


# -- rows --------------------------------------------------------------------------------------------------------------------------


def test_a_fresh_table_gets_its_consumer_once(table: Table) -> None:
    """The first wins; the other plan is ignored."""
    store = CheckpointStore(table)
    assert store.create_consumer(CONSUMER_ROW)
    assert not store.create_consumer(replace(CONSUMER_ROW, consumer_id="id-2"))
    assert consumer(store) == CONSUMER_ROW


def test_a_table_that_is_being_migrated_gets_no_consumer(table: Table) -> None:
    """The migration makes it, at its end."""
    table.write(Put(MigrationRow("app", "kcl", 5).to_item(), ()))
    assert not CheckpointStore(table).create_consumer(CONSUMER_ROW)
    assert table.get(CONSUMER) is None
    assert table.get(MIGRATION)


def test_a_row_is_put_once(table: Table) -> None:
    """What is there stays."""
    store = CheckpointStore(table)
    assert store.put_new({"id": "bootstrap/x/0", "n": 1})
    assert not store.put_new({"id": "bootstrap/x/0", "n": 2})
    assert table.get("bootstrap/x/0") == {"id": "bootstrap/x/0", "n": 1}


def test_shards_found_later_get_rows(store: CheckpointStore) -> None:
    """More than one transaction holds; one that exists is left as it is."""
    rows = [ShardRow(f"shardId-{i:012d}", TRIM_HORIZON, TRIM_HORIZON, generation=4, joins=9) for i in range(120)]
    store.create_shards(EPOCH, 7, rows)
    assert store.shards() == {r.id: r for r in rows} | {A: ROW}


@pytest.mark.parametrize(("epoch", "committed"), [(LATER, 7), (EARLIER, 7), (EPOCH, 6), (EPOCH, 8)])
def test_no_row_is_made_by_another_epoch_or_at_another_batch(store: CheckpointStore, epoch: Epoch, committed: int) -> None:
    """A row made late would join a batch that was planned without it."""
    with pytest.raises(Fenced):
        store.create_shards(epoch, committed, [ShardRow(B, TRIM_HORIZON, TRIM_HORIZON)])
    assert store.shards() == {A: ROW}


# -- bind --------------------------------------------------------------------------------------------------------------------------


def test_a_bind_fixes_the_range(store: CheckpointStore) -> None:
    """Everything the range is, and who read it; what the last range had besides is gone."""
    assert store.bind(EPOCH, 8, BOUND, READER) is None
    expected = replace(
        ROW, batch=8, start=FIRST, end=SECOND, first="101", records=12, read_to=99, readers={"4.1.0": 11}, size=1000, behind=5, note=None,
        calls={"kinesis/GetRecords": 2}, iterator="AAAA",
    )  # fmt: skip
    assert row(store) == expected


def test_an_empty_range_is_bound_too(store: CheckpointStore) -> None:
    """It has no first record."""
    assert store.bind(EPOCH, 8, Range(A, FIRST, FIRST), READER) is None
    assert (row(store).batch, row(store).first, row(store).records) == (8, None, 0)


def test_the_end_of_a_shard_comes_with_its_children(store: CheckpointStore) -> None:
    """In one write, so that neither is known without the other."""
    children = (Child(B, frozenset({A})),)
    assert store.bind(EPOCH, 8, replace(BOUND, end=END, children=children), READER) is None
    assert (row(store).end, row(store).children) == (END, children)


def test_a_bind_whose_reply_was_lost_has_succeeded(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    """It finds its own attempt and its own range."""
    assert CheckpointStore(repeats(store.table)).bind(EPOCH, 8, BOUND, READER) is None
    assert row(store).readers == {"4.1.0": 11}


def test_the_second_of_two_binds_replays_the_first(store: CheckpointStore) -> None:
    """Another attempt, or the same with another range: the row says what the batch holds."""
    store.bind(EPOCH, 8, BOUND, READER)
    first = row(store)
    for bound, reader in ((BOUND, TaskAttempt("4.1.0", 12)), (replace(BOUND, end=FIRST), READER), (replace(BOUND, records=1), READER)):
        assert store.bind(EPOCH, 8, bound, reader) == Replay(first)
    assert row(store) == first


def test_a_bind_of_an_earlier_epoch_is_fenced(store: CheckpointStore) -> None:
    """Also one that would fit otherwise."""
    put(store, replace(ROW, generation=5))
    with pytest.raises(Fenced):
        store.bind(EPOCH, 8, BOUND, READER)
    assert row(store) == replace(ROW, generation=5)


def test_a_bind_on_a_row_that_was_not_fenced_yet_fences_it(store: CheckpointStore) -> None:
    """A row may come from an earlier epoch's late write."""
    assert store.bind(LATER, 8, BOUND, READER) is None
    assert (row(store).generation, row(store).batch) == (5, 8)


def test_a_bind_of_a_past_batch_lost_its_race(store: CheckpointStore) -> None:
    """Its work is in good hands."""
    with pytest.raises(LostRace):
        store.bind(EPOCH, 6, BOUND, READER)
    assert row(store) == ROW


def test_a_bind_that_does_not_continue_the_chain_is_a_violation(store: CheckpointStore) -> None:
    """No gap and no overlap: `AFTER 100/3` and `AFTER 100` are different places."""
    with pytest.raises(ProtocolViolation):
        store.bind(EPOCH, 8, replace(BOUND, start=Position.after("100")), READER)
    assert row(store) == ROW


def test_a_bind_on_no_row_is_a_violation(store: CheckpointStore) -> None:
    """And makes none."""
    with pytest.raises(ProtocolViolation):
        store.bind(EPOCH, 8, replace(BOUND, shard_id=B), READER)
    assert list(store.shards()) == [A]


# -- register ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bound(store: CheckpointStore) -> CheckpointStore:
    """The same, with batch 8 bound by attempt 11 of task 4.1.0."""
    store.bind(EPOCH, 8, BOUND, READER)
    return store


def test_the_first_of_a_task_to_register_finds_nobody(bound: CheckpointStore) -> None:
    """It may emit at once."""
    assert bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20)) is None
    assert row(bound).readers == {"4.1.0": 11, "4.2.0": 20}


@pytest.mark.parametrize("attempt", [11, 12])
def test_whoever_finds_another_attempt_is_told_which(bound: CheckpointStore, attempt: int) -> None:
    """It may be alive; its own number too, for a reply may have been lost."""
    assert bound.register(EPOCH, 8, A, TaskAttempt("4.1.0", attempt)) == 11
    assert row(bound).readers == {"4.1.0": attempt}


def test_a_row_counts_who_registered_until_the_next_range_is_bound_or_closed(bound: CheckpointStore) -> None:
    """For metrics: who registers and adds no name to the readers has waited."""
    counts = [row(bound).replays]
    for reader in (TaskAttempt("4.2.0", 20), TaskAttempt("4.2.0", 21)):
        bound.register(EPOCH, 8, A, reader)
        counts.append(row(bound).replays)
    bound.bind(EPOCH, 9, replace(BOUND, start=SECOND), READER)
    counts.append(row(bound).replays)
    bound.register(EPOCH, 9, A, TaskAttempt("4.2.0", 22))
    assert bound.close(EPOCH, 10, row(bound)) == row(bound)
    assert [*counts, row(bound).replays] == [0, 1, 2, 0, 0]


def test_calls_stay_in_the_row_until_the_next_range_is_bound_or_closed(bound: CheckpointStore) -> None:
    """For metrics: they are counted once, with the batch that they were bound in."""
    bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20))
    counts = [row(bound).calls]
    bound.bind(EPOCH, 9, replace(BOUND, start=SECOND, calls={}), READER)
    counts.append(row(bound).calls)
    bound.bind(EPOCH, 10, replace(BOUND, start=SECOND), READER)
    assert bound.close(EPOCH, 11, row(bound)) == row(bound)
    assert [*counts, row(bound).calls] == [{"kinesis/GetRecords": 2}, {}, {}]


def test_an_iterator_stays_until_the_next_range_is_bound_or_closed(bound: CheckpointStore) -> None:
    """One of an earlier range would skip what lies between or read it again."""
    bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20))
    found = [row(bound).iterator]
    bound.bind(EPOCH, 9, replace(BOUND, start=SECOND, iterator=None), READER)
    found.append(row(bound).iterator)
    bound.bind(EPOCH, 10, replace(BOUND, start=SECOND, iterator="BBBB"), READER)
    found.append(row(bound).iterator)
    assert bound.close(EPOCH, 11, row(bound)) == row(bound)
    assert [*found, row(bound).iterator] == ["AAAA", None, "BBBB", None]


def test_an_earlier_attempt_than_the_one_that_registered_lost_its_race(bound: CheckpointStore) -> None:
    """The later one emits."""
    with pytest.raises(LostRace):
        bound.register(EPOCH, 8, A, TaskAttempt("4.1.0", 10))
    assert row(bound).readers == {"4.1.0": 11}


@pytest.mark.parametrize("batch", [7, 9])
def test_nobody_registers_for_another_batch(bound: CheckpointStore, batch: int) -> None:
    """What the row holds is batch 8."""
    with pytest.raises(LostRace):
        bound.register(EPOCH, batch, A, TaskAttempt("4.2.0", 20))


def test_nobody_registers_after_a_later_epoch_took_over(bound: CheckpointStore) -> None:
    """It has to stop."""
    bound.fence(LATER, A)
    with pytest.raises(Fenced):
        bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20))


def test_readers_of_earlier_lives_are_forgotten_and_those_of_this_epoch_are_not(bound: CheckpointStore) -> None:
    """Whoever finds itself there waits; generations never repeat, so nobody finds the others."""
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 1)) is None
    left = bound.forget(LATER, row(bound))
    assert left == row(bound)
    assert (left.readers, left.replays) == ({"5.0.0": 1}, 0)
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 2)) == 1


def test_nothing_is_forgotten_if_somebody_registered_meanwhile(bound: CheckpointStore) -> None:
    """That one would be dropped, too."""
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 1)) is None
    seen = row(bound)
    assert bound.register(LATER, 8, A, TaskAttempt("5.1.0", 2)) is None
    before = row(bound)
    assert bound.forget(LATER, seen) == seen
    assert row(bound) == before


def test_an_earlier_epoch_forgets_nothing(bound: CheckpointStore) -> None:
    """It is fenced."""
    seen = row(bound)
    bound.fence(LATER, A)
    before = row(bound)
    with pytest.raises(Fenced):
        bound.forget(EPOCH, seen)
    assert row(bound) == before


def test_a_later_epoch_registers_on_a_row_that_was_not_fenced_yet(bound: CheckpointStore) -> None:
    """And fences it."""
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 1)) is None
    assert (row(bound).generation, row(bound).readers) == (5, {"4.1.0": 11, "5.0.0": 1})


# -- close -------------------------------------------------------------------------------------------------------------------------


def test_a_close_fixes_that_a_batch_holds_nothing_of_a_shard(store: CheckpointStore) -> None:
    """It stands where it stood, and may be closed again: a lost reply is no loss."""
    closed = store.close(EPOCH, 8, ROW)
    assert closed == row(store) == store.close(EPOCH, 8, ROW)
    assert (closed.batch, closed.start, closed.end, closed.records, closed.first, dict(closed.readers)) == (8, FIRST, FIRST, 0, None, {})
    assert closed.committed_position(7) == closed.committed_position(8) == FIRST


def test_a_close_that_loses_to_a_late_bind_says_so(store: CheckpointStore) -> None:
    """The batch may not be committed by this epoch; an empty bind is a bind too."""
    store.bind(EPOCH, 8, Range(A, FIRST, FIRST), READER)
    before = row(store)
    with pytest.raises(LostRace):
        store.close(EPOCH, 8, ROW)
    assert row(store) == before


def test_a_close_by_an_earlier_epoch_is_fenced(store: CheckpointStore) -> None:
    """A later one has taken over."""
    store.fence(LATER, A)
    with pytest.raises(Fenced):
        store.close(EPOCH, 8, ROW)


def test_a_close_of_a_past_batch_loses(store: CheckpointStore) -> None:
    """Batch 7 has a range."""
    with pytest.raises(LostRace):
        store.close(EPOCH, 7, ROW)
    assert row(store) == ROW


# -- commit ------------------------------------------------------------------------------------------------------------------------


def test_a_commit_moves_every_shard_with_one_write(bound: CheckpointStore) -> None:
    """Where a shard stands follows from it; and it may be said again: a lost reply is no loss."""
    assert row(bound).committed_position(consumer(bound).committed) == FIRST
    bound.commit(EPOCH, 8)
    bound.commit(EPOCH, 8)
    assert row(bound).committed_position(consumer(bound).committed) == SECOND


@pytest.mark.parametrize("batch", [6, 7, 9])
def test_batches_are_committed_one_after_the_other(store: CheckpointStore, batch: int) -> None:
    """None twice by two meanings, none left out."""
    if batch == 7:
        store.commit(EPOCH, 7)  # the last one: only its reply can have been lost
    else:
        with pytest.raises(ProtocolViolation):
            store.commit(EPOCH, batch)
    assert consumer(store) == CONSUMER_ROW


@pytest.mark.parametrize("epoch", [LATER, EARLIER])
def test_only_the_epoch_that_holds_the_lease_commits(store: CheckpointStore, epoch: Epoch) -> None:
    """Any other has to stop."""
    with pytest.raises(Fenced):
        store.commit(epoch, 8)
    assert consumer(store) == CONSUMER_ROW
