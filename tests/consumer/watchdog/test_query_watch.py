"""A batch of a streaming query that does not end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from sluice_consumer.watchdog.batch_watch import BatchLimits
from sluice_consumer.watchdog.query_watch import QueryPorts, QueryWatch


@dataclass
class Query:
    """A query, in virtual time, and what its watch did. `rests`: from when on it waits for its next trigger."""

    time: float = 0.0
    batch: int | None = 3
    rests: float = math.inf
    stops: bool = True
    moves: Iterator[int] = field(default_factory=lambda: iter([]))
    done: list[str] = field(default_factory=list)

    def watch(self) -> QueryWatch:
        ports = QueryPorts(
            open=lambda: self.batch,
            working=lambda: self.time < self.rests,
            progress=lambda: (next(self.moves, 0),),
            stop=self.stop,
            give_up=lambda: self.done.append("given up"),
        )
        return QueryWatch(BatchLimits(300, 1200), ports, lambda: self.time)

    def stop(self) -> bool:
        self.done.append("stopped")
        return self.stops

    def looked_at(self, watch: QueryWatch, *moments: float) -> None:
        for self.time in moments:
            watch.tick()


def test_a_batch_that_does_not_end_stops_its_query_once() -> None:
    query = Query()
    watch = query.watch()
    query.looked_at(watch, 0, 299, 301, 303)
    assert query.done == ["stopped"]
    assert str(watch.error).startswith("batch 3 has not ended after 301 s (batch.maxSeconds)")


def test_a_query_that_does_not_stop_loses_its_lease() -> None:
    """A function of foreachBatch blocks: another run may take over, and this one's writes are fenced."""
    query = Query(stops=False)
    query.looked_at(query.watch(), 0, 301)
    assert query.done == ["stopped", "given up"]


def test_a_query_that_waits_for_its_next_trigger_is_left_alone() -> None:
    """With a trigger of an hour, Spark says only then that the batch is done."""
    query = Query(rests=200.0)
    watch = query.watch()
    query.looked_at(watch, 0, 199, 3599)
    query.rests = math.inf
    query.looked_at(watch, 3601)
    assert not query.done


def test_a_batch_that_moves_is_warned_about_until_the_second_limit() -> None:
    query = Query(moves=iter(range(1, 99)))
    watch = query.watch()
    query.looked_at(watch, 0, 295, 301, 309, 1199)
    assert not query.done
    query.looked_at(watch, 1200)
    assert query.done == ["stopped"]


def test_the_next_batch_has_a_time_of_its_own() -> None:
    query = Query()
    watch = query.watch()
    query.looked_at(watch, 0, 200)
    query.batch = 4
    query.looked_at(watch, 202, 400)
    assert not query.done
