"""Which rows are folded and deleted, and how many at a time; and that nobody notices (docs/protocol.md, "Folded shards")."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from consuming import S0, S1, S2, Bench, Engine
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import AccessDenied, Fenced, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.memory.table import MemoryTable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.table import Delete
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.folding import FOLD_LIMITS, Folder, FoldLimits, FoldPorts, deletable, foldable
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.shard_rows import ShardRows
from sluice_consumer.streaming import offsets
from sluice_consumer.streaming.offsets import Offset

DAY, NOW = 86_400_000, 1_700_000_000_000
LONG_AGO = NOW - 2 * DAY
ALL = FoldLimits(least=1)


def ended(shard: str, parents: str = "", children: str = "", **more: Any) -> ShardRow:
    """A row at END, read long ago in batch 2."""
    followers = tuple(Child(child, frozenset({shard})) for child in children.split())
    row = ShardRow(shard, TRIM_HORIZON, END, generation=1, batch=2, read_to=LONG_AGO, parents=frozenset(parents.split()), children=followers)
    return replace(row, **more)


def read(shard: str, parents: str = "", **more: Any) -> ShardRow:
    """A row of a shard that goes on, read in batch 5."""
    row = ShardRow(shard, TRIM_HORIZON, Position.after("9"), generation=2, batch=5, read_to=NOW, parents=frozenset(parents.split()))
    return replace(row, **more)


def view(*rows: ShardRow, listed: str = "open child", folded: str = "", at: int = LONG_AGO, committed: int = 5, filled: int | None = 5) -> TableView:
    """What an epoch knows; shards were folded `at` a time."""
    known = ShardRows.of({row.id: row for row in rows}, committed, dict.fromkeys(folded.split(), at))
    return TableView(known, committed, frozenset(listed.split()), filled=filled)


def found(*rows: ShardRow, **more: Any) -> list[str]:
    """Which may be folded."""
    return [row.id for row in foldable(view(*rows, **more))]


def deleted(*rows: ShardRow, group: int = 90, **more: Any) -> list[list[str]]:
    """Which may be deleted, in which transactions, a day's retention before `NOW`."""
    return [[row.id for row in part] for part in deletable(view(*rows, **more), NOW - DAY, group)]


# -- which -------------------------------------------------------------------------------------------------------------------------


def test_a_shard_that_is_over_and_has_left_the_stream_may_be_folded() -> None:
    """Its child goes on."""
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
    "an older version committed last": ([OLD, CHILD], {"filled": None}),
    "it was folded before": ([OLD, CHILD], {"folded": "old"}),
}


@pytest.mark.parametrize(("rows", "more"), KEPT.values(), ids=KEPT)
def test_a_row_stays_if(rows: Sequence[ShardRow], more: dict[str, Any]) -> None:
    """One clause does not hold."""
    assert found(*rows, **more) == []


def test_a_child_that_knows_how_old_it_may_be_has_begun() -> None:
    """Nobody asks for its parents then, though it holds no record yet."""
    assert found(OLD, replace(CHILD, end=TRIM_HORIZON, batch=5)) == ["old"]


def test_a_row_that_tells_its_children_nothing_need_not_wait_for_them() -> None:
    """It knows no time, and nor does its child, which `process` never reads."""
    assert found(replace(OLD, read_to=0), replace(CHILD, end=TRIM_HORIZON, read_to=0, batch=5)) == ["old"]


# Rows at END whose `readTo` does not say when their shards were read: closed before a start at LATEST, or migrated, or empty; or a clock was wrong.
TIMELESS = {"none": {"read_to": 0}, "never bound": {"read_to": 0, "batch": 0}, "in the future": {"read_to": NOW + 300 * DAY}, "now": {"read_to": NOW}}


@pytest.mark.parametrize("row", TIMELESS.values(), ids=TIMELESS)
@pytest.mark.parametrize("child", [CHILD, replace(CHILD, read_to=0), replace(CHILD, end=END, children=())], ids=["open", "no time", "ended"])
def test_a_row_without_a_time_is_as_old_as_its_id(row: dict[str, Any], child: ShardRow) -> None:
    """What its children say does not matter. So it goes a retention after it was folded."""
    old = replace(OLD, **row)
    assert "old" in found(old, child)
    assert deleted(old, child, folded="old", at=NOW - DAY) == []
    assert deleted(old, child, folded="old", at=NOW - DAY - 1) == [["old"]] if row["read_to"] != NOW else True


def test_a_row_is_deleted_a_retention_after_its_shard_was_read() -> None:
    """Though it was folded only now."""
    assert deleted(OLD, CHILD, folded="old", at=NOW) == [["old"]]
    assert deleted(replace(OLD, read_to=NOW - DAY), CHILD, folded="old", at=NOW) == []


def test_a_row_whose_shard_is_listed_again_stays() -> None:
    """The listing that lacked it was wrong."""
    assert deleted(OLD, CHILD, folded="old", listed="old child") == []


@pytest.mark.parametrize("filled", [None, 2, 5])
def test_a_row_is_deleted_once_a_later_batch_contained_shards(filled: int | None) -> None:
    """An older version may have read the shard again: in the last batch, say, or in one after which only rows tell which was the last."""
    again = replace(OLD, batch=filled or 5)
    assert deleted(again, CHILD, folded="old", filled=filled) == []
    assert deleted(again, CHILD, folded="old", filled=(filled or 5) + 1) == [["old"]]


def test_a_directory_that_lacks_the_batch_of_a_row_that_was_read_again_is_refused() -> None:
    """By that row alone: the others take part in an open batch. No turn deletes it."""
    again, child = replace(OLD, batch=5, read_to=NOW - 2 * DAY), replace(CHILD, start=Position.after("5"), batch=6)
    seen = view(again, child, listed="child", folded="old", filled=None)
    with pytest.raises(Refused):
        offsets.seen_less(seen, Offset("c", 4))
    assert deletable(seen, NOW - DAY) == []


def test_those_go_first_that_were_read_longest_ago() -> None:
    """Parents mostly before their children."""
    rows = [ended("a", read_to=LONG_AGO), ended("b", read_to=LONG_AGO - 2), ended("c", read_to=LONG_AGO - 1), read("open")]
    assert found(*rows) == ["b", "c", "a"]


def test_a_row_is_deleted_when_it_was_folded_and_no_parent_has_a_row() -> None:
    """So no row at END names a child without one."""
    rows = ended("a", children="b"), ended("b", "a", "c"), ended("c", "b"), ended("d", "gone"), ended("e")
    assert deleted(*rows, folded="a b c d gone") == [["a", "d"], ["b"], ["c"]]
    assert deleted(*rows, folded="a b c d gone", group=1) == [["a"], ["d"], ["b"], ["c"]]


def test_a_row_waits_for_all_rows_that_come_before_it() -> None:
    """A merge of a shard and of one that is two splits older; and what comes after a row that stays, stays."""
    rows = (
        ended("a", children="b"),
        ended("b", "a", "d"),
        ended("c", children="d"),
        ended("d", "b c"),
        ended("e", "d stays"),
        read("stays"),
        ended("f", "e"),
    )
    assert deleted(*rows, folded="a b c d e f") == [["a", "c"], ["b"], ["d"]]


def test_a_row_that_a_parent_names_waits_for_it_though_it_does_not_name_the_parent() -> None:
    """An older version goes by the parent's row."""
    assert deleted(ended("a", children="b"), ended("b"), ended("c", children="d"), ended("d"), folded="a b d") == [["a"], ["b"]]


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
        """See `Table`."""
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
    """What folds for an epoch."""
    return Folder(consumer, FoldPorts(consumer.store, **{"clock": lambda: 0.0} | more), limits)


def turns(consumer: Consumer, folder: Folder, count: int = 1) -> None:
    """An audit, and what follows it."""
    for _ in range(count):
        consumer.audit()
        folder.turn()


def test_a_small_table_is_left_alone() -> None:
    """999 rows are 330 KB: no write, whatever they say."""
    bench, consumer = beside(999, table := Counted())
    turns(consumer, folding(consumer), 3)
    assert (table.folds, table.deletes, len(bench.store.shards())) == ([], [], 1000)


def test_so_many_are_folded_after_an_audit_and_deleted_after_the_next() -> None:
    """360 in groups of 90, as long as there are a thousand."""
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
    """It died in between."""
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
    """Nobody is told to grant anything. The rows stay until the next try."""
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


def test_a_row_that_cannot_go_stops_no_other() -> None:
    """It is listed for ever, and 400 shards come after it, one out of another: those wait for it. A thousand others do not."""
    bench, consumer = beside(1000)
    lineage = [f"late-{number:03d}" for number in range(400)]
    for shard, parent, child in zip(lineage, ["", *lineage], [*lineage[1:], ""], strict=False):
        row = ended(shard, parent, child, batch=1, read_to=bench.now - 2 * DAY)
        bench.table.rows[row.key] = row.to_item()
    consumer = bench.begin()
    consumer.audit()
    listed = consumer.view.listed | {lineage[0]}
    folder = folding(consumer, FoldLimits(least=1))
    for _ in range(12):
        consumer.view = replace(consumer.view, listed=listed)
        folder.turn()
    assert {shard for shard in bench.store.shards() if shard.startswith("old")} == set()
    assert {shard for shard in bench.store.shards() if shard.startswith("late")} == set(lineage)


def test_rows_without_a_time_go_a_retention_after_they_were_folded() -> None:
    """A chain of them, whose last child is read all the time. An earlier driver folded them."""
    bench, consumer = beside(0)
    for shard, parent, child in (("a", "", "b"), ("b", "a", S0)):
        bench.table.rows[f"shard/{shard}"] = ended(shard, parent, child, batch=0, read_to=0).to_item()
    consumer = bench.begin()
    turns(consumer, folding(consumer, ALL), 2)
    assert bench.store.contents().folded == {"a": bench.now // 1000 * 1000, "b": bench.now // 1000 * 1000}
    assert set(bench.store.shards()) == {"a", "b", S0}
    bench.now += DAY + 3_700_000
    heir = bench.begin()
    turns(heir, folding(heir, ALL))
    assert set(bench.store.shards()) == {S0}


def test_a_row_whose_shard_is_listed_again_holds_those_that_come_after_it() -> None:
    """Though all were to be deleted one after the other."""
    bench, consumer = beside(0)
    for shard, parent, child in (("a", "", "b"), ("b", "a", "c"), ("c", "b", "")):
        row = ended(shard, parent, child, batch=1, read_to=bench.now - 2 * DAY)
        bench.table.rows[row.key] = row.to_item()
    consumer = bench.begin()
    folder = folding(consumer, FoldLimits(least=1, writes=1))
    turns(consumer, folder, 2)
    assert set(bench.store.shards()) == {"b", "c", S0}
    for _ in range(3):
        consumer.view = replace(consumer.view, listed=consumer.view.listed | {"b"})
        folder.turn()
    assert set(bench.store.shards()) == {"b", "c", S0}
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
    """It may have been told in the middle of a turn."""
    _, consumer = beside(1500, table := Counted())
    folder = folding(consumer, stops=lambda: len(table.folds) == 2)
    turns(consumer, folder)
    assert table.folds == [90] * 2


def test_a_later_epoch_ends_it() -> None:
    """As any write does."""
    bench, consumer = beside(5)
    folder = folding(consumer, ALL)
    bench.begin()
    with pytest.raises(Fenced):
        folder.turn()
    assert not bench.store.contents().folded


def test_a_row_that_somebody_changed_by_hand_stays(caplog: pytest.LogCaptureFixture) -> None:
    """It is named once. The next epoch reads it."""
    bench, consumer = beside(5)
    folder = folding(consumer, ALL)
    turns(consumer, folder)
    bench.table.rows["shard/old-00003"]["end"] = {"at": "AFTER", "sequence": "1"}
    with caplog.at_level(logging.WARNING):
        turns(consumer, folder, 3)
    (record,) = caplog.records
    assert "old-00003" in record.getMessage()
    assert set(bench.store.shards()) == {"old-00003", S0}
    assert bench.begin().view.rows["old-00003"].end == Position.after("1")


def test_parents_go_first_though_a_transaction_fails() -> None:
    """At no moment a row at END names a child that has none."""
    bench, consumer = beside(0, table := Counted())
    names = ["a", "b", "c", "d"]
    for shard, parent, child in zip(names, ["", *names], [*names[1:], ""], strict=False):
        row = ended(shard, parent, child, batch=1, read_to=bench.now - 2 * DAY)
        bench.table.rows[row.key] = row.to_item()
    consumer = bench.begin()
    folder = folding(consumer, FoldLimits(least=1, rests=0))
    turns(consumer, folder)

    def each() -> None:
        rows = bench.store.shards()
        assert not [child.id for row in rows.values() for child in row.children or () if child.id not in rows]
        table.error, table.step = (ServiceUnavailable("no answer"), "delete") if len(rows) == 4 and not table.error else (None, "")

    table.each = each
    turns(consumer, folder, 2)
    assert set(bench.store.shards()) == {S0}


def test_what_comes_after_a_row_that_somebody_changed_stays() -> None:
    """Its parent's row may name it."""
    bench, consumer = beside(0)
    for shard, parent, child in (("a", "", "b"), ("b", "a", "c"), ("c", "b", ""), ("d", "", "")):
        row = ended(shard, parent, child, batch=1, read_to=bench.now - 2 * DAY)
        bench.table.rows[row.key] = row.to_item()
    consumer = bench.begin()
    folder = folding(consumer, ALL)
    turns(consumer, folder)
    bench.table.rows["shard/b"]["batch"] = 2
    turns(consumer, folder, 3)
    assert set(bench.store.shards()) == {"b", "c", S0}


def test_a_real_lineage_folds_away() -> None:
    """A shard that was split goes once its children are read, the stream has forgotten it and a later batch is committed."""
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
    """What a plan is made of, and what a query of Structured Streaming is answered."""
    plan = planner.next_batch(seen)
    planned = [plan, planner.missing_children(seen, 2), planner.waits_for_number(seen), planner.needs_audit(seen), seen.opened]
    return planned + [_outcome(seen, batch) for batch in range(8)]


def _outcome(seen: TableView, batch: int) -> Any:
    try:
        return offsets.seen_less(seen, Offset("c", batch)), offsets.of_committed(seen, batch)
    except Refused as refused:
        return str(refused)


def _removed(seen: TableView, shards: Iterable[str]) -> TableView:
    assert isinstance(seen.rows, ShardRows)
    return replace(seen, rows=seen.rows.fold(frozenset(shards), LONG_AGO).without(set(shards)))


@given(
    st.lists(BEGUN, min_size=1, max_size=6, unique_by=lambda row: row.id), st.sets(st.sampled_from(NAMES), max_size=2), st.sampled_from([None, 4, 5])
)
def test_no_answer_changes_when_rows_are_folded_and_deleted(rows: list[ShardRow], listed: set[str], filled: int | None) -> None:
    """One after the other, and in an older version too, as far as it is deleted in order. A later batch has its shards in an open one now, if any."""
    newest = max((row.batch for row in rows if row.batch <= 5), default=0)
    later = max(filled or 0, newest) if any(row.batch > 5 for row in rows) else newest
    seen = view(*rows, listed=" ".join(listed), filled=filled and later)
    seen = replace(seen, asked=frozenset(seen.live))
    wanted = answers(seen)
    folded = frozenset(row.id for row in foldable(seen))
    assert isinstance(seen.rows, ShardRows)
    now = replace(seen, rows=seen.rows.fold(folded, LONG_AGO))
    assert answers(now) == wanted
    while isinstance(now.rows, ShardRows) and (leaving := deletable(now, NOW - DAY)):
        now = _removed(now, [row.id for row in leaving[0]])
        assert answers(now) == wanted
        older = replace(now, rows=ShardRows.of(dict(now.rows), now.committed))
        assert planner.missing_children(older, 2) == planner.missing_children(seen, 2)
