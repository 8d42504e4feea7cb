from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import cast

import pytest
from consuming import READS, S0, S1, S2, Bench, Engine, Twice
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import Fenced, LostRace
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.store import CheckpointStore, TaskAttempt
from sluice_checkpoints.protocol.table import Table
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader as Source
from sluice_lab.fakes.kinesis import MemoryKinesis


def test_a_batch_moves_every_shard_with_one_write() -> None:
    bench = Bench(2)
    consumer = bench.begin()
    plan = consumer.plan()
    assert plan is not None
    committed = consumer.run(plan, Engine(bench.bind(consumer, S0, Position.after("5"))))
    rows = bench.store.shards()
    assert (committed.number, committed.records) == (1, 1)
    assert (rows[S0].end, rows[S0].batch) == (Position.after("5"), 1)
    assert (rows[S1].start, rows[S1].end, rows[S1].batch, rows[S1].readers) == (TRIM_HORIZON, TRIM_HORIZON, 1, {})
    assert consumer.view.committed == 1
    assert consumer.view.rows == rows


def test_a_batch_that_fails_is_not_committed() -> None:
    bench = Bench(2)
    consumer = bench.begin()
    plan = consumer.plan()
    assert plan is not None

    def fail(plan: BatchPlan) -> None:
        bench.bind(consumer, S1, Position.after("5"))(plan)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consumer.run(plan, Engine(fail))
    replay = bench.begin().plan()
    assert replay is not None
    assert (replay.number, [row.id for row in replay.rows], replay.replay) == (1, [S1], True)


def test_a_late_bind_between_the_read_and_the_close_ends_the_epoch() -> None:
    """The batch was processed without it."""
    bench = Bench()
    consumer = bench.begin()
    plan = consumer.plan()
    assert plan is not None

    def hook(when: str, operation: str, argument: object) -> None:
        if when == "before" and operation == "write":
            bench.table.hook = lambda *_: None
            bench.bind(consumer, S0, Position.after("5"))(plan)
            assert "shard" in str(argument)

    bench.table.hook = hook
    with pytest.raises(LostRace):
        consumer.run(plan, Engine())
    assert bench.store.consumer().committed == 0  # type: ignore[union-attr]  # it is there


def test_a_fenced_epoch_cannot_commit() -> None:
    bench = Bench()
    consumer = bench.begin()
    plan = consumer.plan()
    assert plan is not None

    def act(plan: BatchPlan) -> None:
        bench.bind(consumer, S0, Position.after("5"))(plan)
        bench.take()

    with pytest.raises(Fenced):
        consumer.run(plan, Engine(act))


def test_children_join_the_next_batch_of_an_epoch_that_has_committed() -> None:
    bench = Bench()
    consumer = bench.begin()
    bench.split(consumer)
    plan = consumer.plan()
    assert plan is not None
    assert (plan.number, [(row.id, row.joins, row.generation) for row in plan.rows]) == (2, [(S1, 2, 1), (S2, 2, 1)])


def test_children_wait_one_batch_after_a_take_over_and_an_empty_one_is_committed_for_them() -> None:
    """What an earlier epoch may have issued must not change; a number that nobody takes part in needs no Spark."""
    bench = Bench()
    bench.split(bench.begin())
    plan = bench.begin().plan()
    assert plan is not None
    assert (plan.number, [(row.id, row.joins) for row in plan.rows]) == (3, [(S1, 3), (S2, 3)])
    assert bench.store.consumer().committed == 2  # type: ignore[union-attr]  # it is there


def test_the_merge_of_two_shards_waits_for_both() -> None:
    """Order within a shard means: parents before children."""
    bench = Bench(2)
    consumer = bench.begin()
    bench.stream.merge(S0, S1)
    children = bench.stream.list_shards().children_of(S0)
    taking = []
    for shard in (S0, S1):
        plan = consumer.plan()
        assert plan is not None
        taking.append([row.id for row in plan.rows])
        consumer.run(plan, Engine(bench.bind(consumer, shard, END, children)))
    plan = consumer.plan()
    assert plan is not None
    assert [*taking, [row.id for row in plan.rows]] == [[S0, S1], [S1], [S2]]


def test_an_audit_gives_a_row_to_a_shard_that_nobody_accounts_for() -> None:
    bench = Bench()
    consumer = bench.begin()
    bench.stream.split(S0)
    consumer.audit()
    plan = consumer.plan()
    assert plan is not None
    assert {row.id: row.joins for row in bench.store.shards().values()} == {S0: 1, S1: 2, S2: 2}
    assert [row.id for row in plan.rows] == [S0]


def test_the_phases_of_a_batch_are_told_in_their_order() -> None:
    bench = Bench()
    seen: list[str] = []
    consumer = Consumer(bench.store, bench.stream, bench.take().epoch, seen.append)
    consumer.begin()
    plan = consumer.plan()
    assert plan is not None
    consumer.run(plan, Engine(lambda _plan: seen.append("(the engine runs)")))
    assert seen == ["plan", "process", "(the engine runs)", "close", "commit", "rest"]


def test_an_idle_consumer_has_no_batch() -> None:
    bench = Bench()
    consumer = bench.begin()
    bench.split(consumer)
    for shard in (S1, S2):
        plan = consumer.plan()
        assert plan is not None
        consumer.run(plan, Engine(bench.bind(consumer, shard, END, ())))
    assert consumer.plan() is None
    assert bench.store.consumer().committed == 3  # type: ignore[union-attr]  # it is there


def test_a_lost_reply_of_a_creation_is_repaired_by_the_next_epoch() -> None:
    bench = Bench()
    consumer = bench.begin()
    bench.split(consumer)

    def hook(when: str, operation: str, _argument: object) -> None:
        if (when, operation) == ("after", "transact"):
            raise ConnectionError

    bench.table.hook = hook
    with pytest.raises(ConnectionError):
        consumer.plan()
    bench.table.hook = lambda *_: None
    heir = bench.begin()
    plan = heir.plan()
    assert plan is not None
    assert (plan.number, {row.id: row.joins for row in plan.rows}) == (2, {S1: 2, S2: 2})
    assert {row.generation for row in plan.rows} == {2}


def test_a_late_creation_of_an_earlier_epoch_is_refused() -> None:
    bench = Bench()
    consumer = bench.begin()
    bench.split(consumer)
    bench.take()
    with pytest.raises(Fenced):
        consumer.plan()
    assert set(bench.store.shards()) == {S0}


@given(before=READS, after=READS, closed=st.booleans())
def test_the_waits_of_a_batch_are_those_that_happened(before: list[tuple[str, bool]], after: list[tuple[str, bool]], *, closed: bool) -> None:
    """Carried by the row: whatever attempts read it, in whatever order, in this epoch or before. A lost reply may count once more."""
    bench = Bench()
    bench.stream.put(b"x")
    attempts, waited = count(1), list[float]()

    def read(consumer: Consumer, reads: list[tuple[str, bool]]) -> None:
        for key, lost in reads:
            reader = TaskAttempt(f"{consumer.epoch.generation}.{key}", next(attempts))
            task = Task(consumer.epoch, 1, reader, Limits(10, 10), 7.0, waited.append)
            store = CheckpointStore(cast("Table", Twice(bench.table))) if lost else bench.store
            read_shard(store, Source(MemoryKinesis(bench.stream), bench.stream, bench.stream.describe()), task, bench.store.read([S0])[S0])

    read(bench.begin(), before)
    waited.clear()
    consumer = bench.begin()
    plan = consumer.plan()
    assert plan is not None
    after = [] if closed else after
    committed = consumer.run(plan, Engine(lambda _plan: read(consumer, after)))
    lost = sum(lost for _, lost in after)
    assert len(waited) <= committed.waits <= len(waited) + lost
    assert committed.replay == bool(before)


def test_a_committed_batch_tells_how_far_behind_it_is_and_what_may_be_lost() -> None:
    bench = Bench(2)
    rows = bench.begin().view.rows
    batch = Committed(1, (replace(rows[S0], behind=7, records=2, note="n"), replace(rows[S1], behind=9, end=END, records=1)))
    assert (batch.records, batch.behind_millis, batch.notes) == (3, 7, (f"{S0}: n",))


def test_a_replay_counts_the_records_that_nobody_read_again() -> None:
    """`process` said by its return that they are dealt with."""
    bench = Bench()
    former = bench.begin()
    plan = former.plan()
    assert plan is not None
    bench.bind(former, S0, Position.after("1"))(plan)
    heir = bench.begin()
    again = heir.plan()
    assert again is not None
    committed = heir.run(again, Engine())
    assert (committed.records, committed.unread, bench.store.consumer().committed) == (1, 1, 1)  # type: ignore[union-attr]  # it is there


def test_a_replay_without_records_is_empty_and_a_first_issue_is_not() -> None:
    """What a first issue contains is only known when it was read."""
    row = replace(Bench().begin().view.rows[S0], batch=1)
    assert BatchPlan(1, (row,), replay=True).is_empty_replay
    assert not BatchPlan(1, (row,)).is_empty_replay
    assert not BatchPlan(1, (replace(row, records=1),), replay=True).is_empty_replay


def test_a_number_that_a_shard_waits_for_passes_without_spark_while_the_others_are_idle() -> None:
    bench = Bench(2)
    bench.split(bench.begin())
    heir = bench.begin()
    plan = heir.plan(frozenset({S1}))
    assert plan is not None
    assert (plan.number, [row.id for row in plan.rows]) == (3, ["shardId-000000000002", "shardId-000000000003"])
    assert bench.store.shards()[S1].batch == 1


def test_what_an_earlier_epoch_has_bound_is_no_word_of_this_one() -> None:
    bench = Bench()
    former = bench.begin()
    plan = former.plan()
    assert plan is not None
    bench.bind(former, S0, Position.after("1"))(plan)
    heir = bench.begin()
    assert heir.view.inherited == 1
    again = heir.plan()
    assert again is not None
    heir.run(again, Engine())
    assert [row.batch > heir.view.inherited for row in heir.view.rows.values()] == [False]
