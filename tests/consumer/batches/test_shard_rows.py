"""Rows of shards that are over are known, and never walked: a batch costs the same beside 100,000 of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from consuming import S0, S1, S2, Bench, Engine
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_consumer.batches import planner, retention
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.shard_rows import ShardRows
from sluice_consumer.driver_report import DriverReport
from sluice_consumer.metrics.progress import BatchProgress
from sluice_consumer.metrics.rows import RowFigures
from sluice_consumer.metrics.warnings import Warnings
from sluice_lab.fakes.stream import MemoryStream

NAMES = [f"s{number}" for number in range(6)]
NOW = 1_700_000_000_000


class NotWalked(dict[str, ShardRow]):
    def _walked(self) -> NoReturn:
        raise AssertionError("rows that are over were walked")

    def __iter__(self) -> Iterator[str]:
        self._walked()

    def keys(self) -> Any:
        self._walked()

    def values(self) -> Any:
        self._walked()

    def items(self) -> Any:
        self._walked()


def row(shard: str, end: Position, parents: str = "", **more: Any) -> ShardRow:
    return ShardRow(shard, TRIM_HORIZON, end, parents=frozenset(parents.split()), batch=5, generation=3, read_to=NOW, **more)


def test_rows_that_are_over_are_looked_up_and_counted_and_not_walked() -> None:
    over = NotWalked({"parent": row("parent", END, children=(Child("child", frozenset({"parent"})),))})
    live = {"child": row("child", Position.after("1"), "parent"), "other": row("other", Position.after("2"))}
    view = TableView(ShardRows(live, over), 5, frozenset(live))
    assert [taken.id for taken in planner.next_batch(view).rows] == ["child", "other"]
    assert len(planner.may_be_left_out(view, NOW)) == 2
    assert planner.missing_children(view, 3) == planner.unaccounted(view, [Child("parent", frozenset())], 3) == ()
    assert not planner.needs_audit(view)
    assert not planner.waits_for_number(view)
    assert (planner.held(view, 3), planner.held(view, 4)) == (3, 1)
    assert retention.near(view, 86_400_000, NOW) is None
    assert retention.behind(view, NOW, 0) == 0
    consumer = cast("Consumer", SimpleNamespace(view=view, epoch=SimpleNamespace(generation=3), identity=MemoryStream("s").describe()))
    report = BatchProgress(consumer, 3, Warnings()).onto(DriverReport())
    assert (report.open_shards, report.ended_shards, report.held_shards) == (2, 1, 3)
    assert len(list(RowFigures(consumer).collect())) == 6
    assert dict(ShardRows(live, over).known([replace(live["other"], note="n")], 6).live) == live | {"other": replace(live["other"], note="n")}


def test_folded_shards_are_counted_whether_their_rows_are_gone_or_not() -> None:
    rows = {shard: row(shard, END) for shard in ("one", "two", "three")} | {"live": row("live", Position.after("1"))}
    unfolded = ShardRows.of(rows, 5)
    folded = unfolded.fold({"one", "two"})
    deleted = folded.without({"one", "two"}).known([row("live", Position.after("2"))], 5)
    again = ShardRows.of(dict(deleted), 5, deleted.folded)
    for found in (unfolded, folded, folded.without({"one"}), deleted, again):
        consumer = cast("Consumer", SimpleNamespace(view=TableView(found, 5, frozenset()), epoch=SimpleNamespace(generation=3), identity=None))
        report = BatchProgress(consumer, 3, Warnings()).onto(DriverReport())
        assert (report.open_shards, report.ended_shards, report.held_shards) == (1, 3, 4)
        figures = {
            sample.labels["state"]: sample.value for metric in RowFigures(consumer).collect() for sample in metric.samples if "state" in sample.labels
        }
        assert figures == {"open": 1, "ended": 3, "held": 4}


def test_an_ended_row_is_over_when_its_end_is_committed_and_all_its_children_have_rows() -> None:
    """Until then a plan has to see it."""
    bench = Bench()
    consumer = bench.begin()
    assert isinstance(consumer.view.rows, ShardRows)
    bench.split(consumer)
    assert (set(consumer.view.live), len(consumer.view.rows)) == ({S0}, 1), "its children have no rows yet"
    plan = consumer.plan()
    assert plan is not None
    assert (set(consumer.view.live), len(consumer.view.rows)) == ({S1, S2}, 3)
    assert consumer.view.rows[S0].end == END
    consumer.run(plan, Engine())
    assert consumer.view.rows == bench.store.shards()
    heir = bench.begin()
    assert set(heir.view.live) == {S1, S2}
    assert heir.view.rows == bench.store.shards()


ROWS = st.builds(
    lambda shard, ended, batch, parents, children, generation: ShardRow(
        shard,
        TRIM_HORIZON,
        END if ended else Position.after("1"),
        batch=batch,
        generation=generation,
        parents=frozenset(parents),
        children=tuple(Child(child, frozenset({shard})) for child in children) if ended else None,
    ),
    shard=st.sampled_from(NAMES),
    ended=st.booleans(),
    batch=st.integers(3, 6),
    parents=st.sets(st.sampled_from(NAMES), max_size=2),
    children=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    generation=st.integers(1, 2),
)


def answers(rows: Mapping[str, ShardRow]) -> tuple[Any, ...]:
    view = TableView(rows, 5, frozenset(NAMES))
    left_out = planner.may_be_left_out(view, NOW)
    return planner.next_batch(view), left_out, planner.missing_children(view, 2), planner.held(view, 2), planner.waits_for_number(view)


@given(st.lists(ROWS, max_size=6), st.lists(ROWS, max_size=3))
def test_a_plan_is_the_same_whether_rows_that_are_over_are_kept_apart(before: list[ShardRow], after: list[ShardRow]) -> None:
    """Also when some become known later. Rows that are over never change, so of those no later one is drawn."""
    whole = {row.id: row for row in before}
    apart = ShardRows.of(whole, 5)
    later = [row for row in after if row.id not in apart.over]
    whole |= {row.id: row for row in later}
    apart = apart.known(later, 5)
    assert apart == whole
    assert answers(apart) == answers(whole)
