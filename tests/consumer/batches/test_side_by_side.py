"""Rows of a plan, fences and closes are written side by side (docs/protocol.md, "Writes side by side")."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import pytest
from consuming import S0, S1, S2, Bench, Engine

from sluice_checkpoints.aws.side_by_side import side_by_side
from sluice_checkpoints.errors import Fenced, LostRace
from sluice_checkpoints.position import Position
from sluice_lab.fakes.table import MemoryTable

T = TypeVar("T")
SECONDS = 20  # until a test fails in which too few writes are under way


class Threads(MemoryTable):
    """A table with eight connections. A write to a shard's row waits until eight are under way."""

    def __init__(self) -> None:
        self._together = threading.Barrier(8)
        super().__init__(hook=self._waits)

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        return side_by_side(calls, 8)

    def _waits(self, when: str, operation: str, argument: object) -> None:
        if (when, operation) == ("before", "write") and "shard/" in str(argument):
            self._together.wait(SECONDS)


def test_rows_of_the_plan_fences_and_closes_are_written_side_by_side() -> None:
    """A stream of ten thousand shards is taken over in seconds. Each write waits here until eight are under way."""
    bench = Bench(24, Threads())
    consumer = bench.begin()
    assert [row.generation for row in consumer.view.rows.values()] == [1] * 24
    plan = consumer.plan()
    assert plan is not None
    assert [(row.id, row.batch) for row in consumer.run(plan, Engine()).rows] == [(row.id, 1) for row in plan.rows]
    assert [row.generation for row in bench.begin().view.rows.values()] == [2] * 24


def test_each_shard_has_one_write_at_a_take_over_and_one_close() -> None:
    bench = Bench(24)
    bench.begin()
    written: list[str] = []
    bench.table.hook = lambda when, operation, what: written.append(what.key) if (when, operation) == ("before", "write") else None  # type: ignore[attr-defined]  # a write
    heir = bench.begin()
    rows = ["consumer", *(f"shard/{shard}" for shard in heir.view.rows)]
    assert sorted(written) == sorted(rows)
    plan, written[:] = heir.plan(), []
    assert plan is not None
    heir.run(plan, Engine())
    assert sorted(written) == sorted(rows)
    assert written[-1] == "consumer"


def test_an_epoch_that_is_overtaken_amid_its_fences_ends_as_fenced_and_reads_nothing() -> None:
    bench = Bench(3)
    bench.begin()
    late = bench.take()
    called: list[str] = []

    def overtakes(when: str, operation: str, _: object) -> None:
        if when == "before":
            called.append(operation)
            bench.table.rows[f"shard/{S1}"]["generation"] = 9 if operation == "write" else 1

    bench.table.hook = overtakes
    with pytest.raises(Fenced, match=f"generation 9 took over {S1}"):
        late.begin()
    assert called.count("scan") == 1  # the one before the fences


@pytest.mark.parametrize("shard", [S0, S1, S2])
def test_a_batch_of_which_one_close_loses_its_race_is_not_committed(shard: str) -> None:
    bench = Bench(3)
    consumer = bench.begin()
    plan = consumer.plan()
    assert plan is not None

    def bind_late(when: str, operation: str, _: object) -> None:
        if (when, operation) == ("before", "write"):
            bench.table.hook = lambda *_: None
            bench.bind(consumer, shard, Position.after("5"))(plan)

    bench.table.hook = bind_late
    with pytest.raises(LostRace, match=shard):
        consumer.run(plan, Engine())
    row = bench.store.consumer()
    assert row is not None
    assert row.committed == 0


def test_rows_that_this_epoch_wrote_are_known_at_once() -> None:
    """One copy of the view for all of them: a batch of thousands that fails copied it once a row."""
    bench = Bench(2)
    consumer = bench.begin()
    before = consumer.view
    first, second = (replace(row, note="n") for row in before.rows.values())
    consumer.know(first, second)
    assert list(consumer.view.rows.values()) == [first, second]
    assert [row.note for row in before.rows.values()] == [None, None]
