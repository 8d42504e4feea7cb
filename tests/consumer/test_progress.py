from __future__ import annotations

from typing import Any, cast

from sluice_checkpoints.model import END, TRIM_HORIZON, Position, ShardRow
from sluice_consumer.life import Committed, Consumer
from sluice_consumer.planner import View
from sluice_consumer.progress import WARNINGS, Progress


class Bench:
    """A progress in virtual time over some rows."""

    def __init__(self, *rows: ShardRow, committed: int = 0) -> None:
        self.now = 0.0
        view = View({row.id: row for row in rows}, committed, frozenset())
        consumer = cast("Consumer", type("Consumer", (), {"view": view}))
        self.progress = Progress(consumer, 4, clock=lambda: self.now)

    def report(self, *names: str) -> tuple[Any, ...]:
        """Some fields of the report."""
        report = self.progress.report()
        return tuple(report[name] for name in names)


def row(name: str, **values: Any) -> ShardRow:
    """A shard's row."""
    return ShardRow(name, TRIM_HORIZON, values.pop("end", Position.after("7")), **values)


def test_the_report_counts_shards_by_where_they_stand_and_who_holds_them() -> None:
    """A shard whose END is not committed is open."""
    bench = Bench(row("a", end=END, batch=3, generation=4), row("b", end=END, batch=4, generation=4), row("c", generation=3), committed=3)
    assert bench.report("generation", "batch", "openShards", "endedShards", "heldShards") == (4, 3, 2, 1, 2)


def test_a_batch_is_one_line_for_the_log() -> None:
    """Number, records, shards, seconds, and how far behind."""
    line = Bench().progress.add(Committed(7, (row("a", records=3, behind=40), row("b", records=2))), 0.25)
    assert line == "batch 7: 5 records of 2 shards in 0.250 s, 40 ms behind"


def test_a_possible_loss_is_in_the_line_and_in_the_report() -> None:
    """Never a silent skip; the last few are kept."""
    bench = Bench()
    lines = [bench.progress.add(Committed(n, (row("a", note=f"lost {n}"),)), 0.1) for n in range(WARNINGS + 2)]
    assert lines[0].endswith("; a: lost 0")
    assert bench.report("warnings") == ([f"DataLossSuspected: a: lost {n}" for n in range(2, WARNINGS + 2)],)


def test_the_rate_is_taken_over_the_recent_batches() -> None:
    """Of a consumer that was slow for an hour and is fast now, now counts."""
    bench = Bench()
    assert bench.report("recordsPerSecond", "records") == (0.0, 0)
    for seconds, records in [(10.0, 50), (20.0, 150)]:
        bench.now = seconds
        bench.progress.add(Committed(1, (row("a", records=records),)), 1.0)
    assert bench.report("recordsPerSecond", "records") == (10.0, 200)
    bench.now = 3600.0
    for _ in range(40):
        bench.now += 1.0
        bench.progress.add(Committed(1, (row("a", records=100),)), 1.0)
    assert bench.report("recordsPerSecond", "records") == (100.0, 4200)


def test_the_lag_is_that_of_the_last_batch() -> None:
    """An ended shard is behind nobody."""
    bench = Bench()
    bench.progress.add(Committed(1, (row("a", behind=5), row("b", behind=9, end=END))), 1.0)
    assert bench.report("millisBehindLatest") == (5,)
