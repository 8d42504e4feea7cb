"""Which rows are folded and deleted, and how many at a time; and that nobody notices (docs/protocol.md, "Folded shards")."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from consuming import S0, S1, S2, Bench, Engine
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import AccessDenied, Fenced, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.table import Delete
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.folding import FOLD_LIMITS, Folder, FoldLimits, FoldPorts, foldable
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.shard_rows import ShardRows
from sluice_consumer.streaming import offsets
from sluice_consumer.streaming.offsets import Offset
from sluice_lab.fakes.table import MemoryTable

DAY, NOW = 86_400_000, 1_700_000_000_000
LONG_AGO = NOW - 2 * DAY
ALL = FoldLimits(least=1)


def ended(shard: str, parents: str = "", children: str = "", **more: Any) -> ShardRow:
    followers = tuple(Child(child, frozenset({shard})) for child in children.split())
    row = ShardRow(shard, TRIM_HORIZON, END, generation=1, batch=2, read_to=LONG_AGO, parents=frozenset(parents.split()), children=followers)
    return replace(row, **more)


def read(shard: str, parents: str = "", **more: Any) -> ShardRow:
    row = ShardRow(shard, TRIM_HORIZON, Position.after("9"), generation=2, batch=5, read_to=NOW, parents=frozenset(parents.split()))
    return replace(row, **more)


def view(*rows: ShardRow, listed: str = "open child", folded: str = "", committed: int = 5, filled: int = 5) -> TableView:
    """What an epoch knows."""
    known = ShardRows.of({row.id: row for row in rows}, committed, frozenset(folded.split()))
    return TableView(known, committed, frozenset(listed.split()), filled=filled)


def found(*rows: ShardRow, **more: Any) -> list[str]:
    return [row.id for row in foldable(view(*rows, **more))]


# -- which -------------------------------------------------------------------------------------------------------------------------


def test_a_shard_that_is_over_and_has_left_the_stream_may_be_folded() -> None:
    assert found(ended("old", children="child"), read("child", "old")) == ["old"]


CHILD = read("child", "old")
OLD = ended("old", children="child")
KEPT: dict[str, tuple[Sequence[ShardRow], dict[str, Any]]] = {
    "it stands before END": ([replace(OLD, end=Position.after("9"), children=None), CHILD], {}),
    "its END is in an open batch": ([replace(OLD, batch=6), CHILD], {}),
    "its child has no row": ([OLD, read("open")], {}),
    "its child has not begun": ([OLD, replace(CHILD, end=TRIM_HORIZON, read_to=0, batch=0), read("open")], {}),
    "its child's first range is in an open batch": ([OLD, replace(CHILD, batch=6), read("open")], {}),
    "one of its children has not begun": (
        [ended("old", children="child open"), CHILD, replace(CHILD, id="open", end=TRIM_HORIZON, read_to=0, batch=0)],
        {},
    ),
    "the stream still lists it": ([OLD, CHILD], {"listed": "old child"}),
    "its batch is the newest that is committed": ([replace(OLD, batch=5), replace(CHILD, batch=5)], {}),
    "all later batches are open": ([replace(OLD, batch=5), replace(CHILD, start=Position.after("1"), batch=6)], {}),
    "all later batches contained no shards": ([OLD, CHILD], {"filled": 2}),
    "it was folded before": ([OLD, CHILD], {"folded": "old"}),
}


@pytest.mark.parametrize(("rows", "more"), KEPT.values(), ids=KEPT)
def test_a_row_stays_if(rows: Sequence[ShardRow], more: dict[str, Any]) -> None:
    assert found(*rows, **more) == []


def test_a_child_that_knows_how_old_it_may_be_has_begun() -> None:
    """Nobody asks for its parents then, though it holds no record yet."""
    assert found(OLD, replace(CHILD, end=TRIM_HORIZON, batch=5)) == ["old"]


def test_a_row_that_tells_its_children_nothing_need_not_wait_for_them() -> None:
    """It knows no time, and nor does its child, which `process` never reads."""
    assert found(replace(OLD, read_to=0), replace(CHILD, end=TRIM_HORIZON, read_to=0, batch=5)) == ["old"]


# -- turns -------------------------------------------------------------------------------------------------------------------------


class Counted(MemoryTable):
    """Counts what a driver folds and deletes; `error` is raised instead of the writes that are named by `step`. `each` comes before each."""

    def __init__(self) -> None:
        super().__init__()
        self.each: Callable[[], None] = lambda: None
        self.folds: list[int] = []
        self.deletes: list[int] = []
        self.error: Exception | None = None
        self.step = ""

    def transact(self, members: Any) -> Any:
        deletes = [member for member in members if isinstance(member, Delete)]
        ids = [member for member in members if member.key.startswith("ended/")]
        if deletes or ids:
            self.each()
        if self.error and ((deletes and self.step == "delete") or (ids and self.step == "fold")):
            raise self.error
        if deletes:
            self.deletes.append(len(deletes))
        if ids:
            self.folds.append(len(ids[0].item["shards"]))
        return super().transact(members)


def beside(count: int, table: MemoryTable | None = None) -> tuple[Bench, Consumer]:
    """An epoch of a stream of one shard, whose table has so many rows of shards that ended long ago; a later batch is committed."""
    bench = Bench(table=table)
    bench.now += 3 * DAY
    consumer = bench.begin()
    for number in range(count):
        row = ended(f"old-{number:05d}", batch=1, read_to=bench.now - 2 * DAY)
        bench.table.rows[row.key] = row.to_item()
    plan = consumer.plan()
    assert plan is not None
    consumer.run(plan, Engine())
    plan = consumer.plan()
    assert plan is not None
    consumer.run(plan, Engine())
    return bench, bench.begin()


def folding(consumer: Consumer, limits: FoldLimits = FOLD_LIMITS, **more: Any) -> Folder:
    return Folder(consumer, FoldPorts(consumer.store, **{"clock": lambda: 0.0} | more), limits)


def turns(consumer: Consumer, folder: Folder, count: int = 1) -> None:
    for _ in range(count):
        consumer.audit()
        folder.fold()


def test_a_small_table_is_left_alone() -> None:
    """999 rows are 330 KB: no write, whatever they say."""
    bench, consumer = beside(999, table := Counted())
    turns(consumer, folding(consumer), 3)
    assert (table.folds, table.deletes, len(bench.store.shards())) == ([], [], 1000)


def test_so_many_are_folded_after_an_audit_and_deleted_after_the_next() -> None:
    bench, consumer = beside(1500, table := Counted())
    folder = folding(consumer)
    turns(consumer, folder)
    assert (table.folds, table.deletes, len(bench.store.shards())) == ([90] * 4, [], 1501)
    turns(consumer, folder)
    assert (table.folds, table.deletes, len(bench.store.shards())) == ([90] * 8, [90] * 4, 1141)
    turns(consumer, folder, 3)
    assert (table.folds, table.deletes, len(bench.store.shards())) == ([90] * 8, [90] * 8, 781)
    assert len(bench.store.contents().all) == 1501


def test_what_an_earlier_epoch_folded_is_deleted() -> None:
    bench, consumer = beside(5)
    turns(consumer, folding(consumer, ALL))
    heir = bench.begin()
    assert len(bench.store.shards()) == 6
    turns(heir, folding(heir, ALL))
    assert set(bench.store.shards()) == set(heir.view.rows) == {S0}


def test_a_driver_that_may_not_delete_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """Its role is that of an earlier version."""
    _, consumer = beside(5, table := Counted())
    table.error, table.step = AccessDenied("DynamoDB denies access (AccessDeniedException: dynamodb:DeleteItem)"), "delete"
    folder = folding(consumer, FoldLimits(least=1, group=1, writes=2))
    with caplog.at_level(logging.WARNING):
        turns(consumer, folder, 4)
    (record,) = caplog.records
    assert "dynamodb:DeleteItem" in record.getMessage()
    assert (table.folds, table.deletes) == ([1, 1], [])
    assert consumer.plan() is not None


NO_PERMISSION = [ServiceUnavailable("no answer"), SluiceError("TransactWriteItems was refused: ValidationException"), Refused("there is no table")]


@pytest.mark.parametrize("error", NO_PERMISSION, ids=str)
@pytest.mark.parametrize("step", ["fold", "delete"])
def test_a_table_that_refuses_for_another_reason_is_left_alone_for_a_while(step: str, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    bench, consumer = beside(5, table := Counted())
    folder = folding(consumer, FoldLimits(least=1, rests=3))
    table.error, table.step = error, step
    with caplog.at_level(logging.WARNING):
        turns(consumer, folder, 2)
    (record,) = caplog.records
    assert str(error) in record.getMessage()
    assert "grant" not in record.getMessage()
    table.error = None
    rests = 2 if step == "delete" else 1
    turns(consumer, folder, rests)
    assert (len(bench.store.shards()), table.deletes) == (6, [])
    turns(consumer, folder, 2)
    assert set(bench.store.shards()) == {S0}


def test_a_turn_ends_when_its_time_is_over() -> None:
    """A table with few write units needs a second for each transaction; a batch waits meanwhile."""
    _, consumer = beside(1500, table := Counted())
    now = [0.0]
    table.each = lambda: now.__setitem__(0, now[0] + 0.8)
    folder = folding(consumer, clock=lambda: now[0])
    turns(consumer, folder)
    assert (table.folds, now[0]) == ([90] * 3, pytest.approx(2.4))
    turns(consumer, folder)
    assert (table.folds, table.deletes) == ([90] * 3, [90] * 3)


def test_a_driver_that_is_to_drain_begins_no_further_transaction() -> None:
    _, consumer = beside(1500, table := Counted())
    folder = folding(consumer, stops=lambda: len(table.folds) == 2)
    turns(consumer, folder)
    assert table.folds == [90] * 2


def test_a_later_epoch_ends_it() -> None:
    bench, consumer = beside(5)
    folder = folding(consumer, ALL)
    bench.begin()
    with pytest.raises(Fenced):
        folder.fold()
    assert not bench.store.contents().folded


def test_a_row_that_somebody_changed_by_hand_stays(caplog: pytest.LogCaptureFixture) -> None:
    """It is named once, and stops no other. Its shard is over all the same."""
    bench, consumer = beside(5)
    folder = folding(consumer, ALL)
    turns(consumer, folder)
    bench.table.rows["shard/old-00003"]["end"] = {"at": "AFTER", "sequence": "1"}
    with caplog.at_level(logging.WARNING):
        turns(consumer, folder, 3)
    (record,) = caplog.records
    assert "old-00003" in record.getMessage()
    assert {key for key in bench.table.rows if key.startswith("shard/")} == {"shard/old-00003", f"shard/{S0}"}
    assert set(bench.begin().view.rows) == {S0}


def test_a_real_lineage_folds_away() -> None:
    bench = Bench()
    consumer = bench.begin()
    folder = folding(consumer, ALL)
    bench.split(consumer)
    _read_children(bench, consumer)
    turns(consumer, folder)
    assert not bench.store.contents().folded
    bench.now += 2 * DAY
    bench.stream.expire_shard(S0)
    turns(consumer, folder)
    assert bench.store.contents().folded.keys() == {S0}
    bench.now += 2 * DAY
    turns(consumer, folder)
    assert set(bench.store.shards()) == {S1, S2}
    assert {row.id for row in planner.next_batch(consumer.view).rows} == {row.id for row in planner.next_batch(bench.begin().view).rows} == {S1, S2}


def _read_children(bench: Bench, consumer: Consumer) -> None:
    plan = consumer.plan()
    assert plan is not None

    def act(_plan: Any) -> None:
        for shard in (S1, S2):
            bench.bind(consumer, shard, Position.after("7"))(plan)

    consumer.run(plan, Engine(act))


def test_a_listing_that_names_a_folded_shard_gives_it_no_row() -> None:
    """A machine of the service is late."""
    _, consumer = beside(5)
    turns(consumer, folding(consumer, ALL), 2)
    listed = [Child("old-00000", frozenset()), Child("new", frozenset({"old-00001"}))]
    (made,) = planner.unaccounted(consumer.view, listed, 2)
    assert made.id == "new"
    assert planner.is_read_to_end(consumer.view, made, "old-00001")


# -- nobody notices ----------------------------------------------------------------------------------------------------------------

NAMES = [f"s{number}" for number in range(6)]
BEGUN = st.builds(
    lambda shard, end, batch, parents, children: ShardRow(
        shard,
        TRIM_HORIZON,
        end,
        batch=batch,
        generation=2,
        read_to=LONG_AGO,
        parents=frozenset(parents) - {shard},
        children=tuple(Child(child, frozenset({shard})) for child in children if child != shard) if end == END else None,
    ),
    shard=st.sampled_from(NAMES),
    end=st.sampled_from([END, END, Position.after("1")]),
    batch=st.integers(1, 6),
    parents=st.sets(st.sampled_from(NAMES), max_size=2),
    children=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
)


def answers(seen: TableView) -> list[Any]:
    plan = planner.next_batch(seen)
    planned = [plan, planner.missing_children(seen, 2), planner.waits_for_number(seen), planner.needs_audit(seen), seen.opened]
    return planned + [_outcome(seen, batch) for batch in range(8)]


def _outcome(seen: TableView, batch: int) -> Any:
    try:
        return offsets.seen_less(seen, Offset("c", batch)), offsets.of_committed(seen, batch)
    except Refused as refused:
        return str(refused)


@given(st.lists(BEGUN, min_size=1, max_size=6, unique_by=lambda row: row.id), st.sets(st.sampled_from(NAMES), max_size=2), st.sampled_from([4, 5]))
def test_no_answer_changes_when_rows_are_folded_and_deleted(rows: list[ShardRow], listed: set[str], filled: int) -> None:
    """One after the other. A later batch has its shards in an open one now, if any."""
    newest = max((row.batch for row in rows if row.batch <= 5), default=0)
    later = max(filled, newest) if any(row.batch > 5 for row in rows) else newest
    seen = view(*rows, listed=" ".join(listed), filled=later)
    seen = replace(seen, asked=frozenset(seen.live))
    wanted = answers(seen)
    folded = {row.id for row in foldable(seen)}
    assert isinstance(seen.rows, ShardRows)
    now = seen.rows.fold(folded)
    assert answers(replace(seen, rows=now)) == wanted
    for shard in sorted(folded):
        now = now.without({shard})
        assert answers(replace(seen, rows=now)) == wanted
