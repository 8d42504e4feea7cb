from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.versions import SpecName, Version
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import UntilConfig
from sluice_consumer.driver_report import DriverReport, WarningReason
from sluice_consumer.metrics.progress import Backfill, BatchProgress, spec_versions
from sluice_consumer.metrics.warnings import Warnings


class Bench:
    def __init__(self, *rows: ShardRow, committed: int = 0) -> None:
        self.now = 0.0
        view = TableView({row.id: row for row in rows}, committed, frozenset())
        consumer = cast("Consumer", type("Consumer", (), {"view": view}))
        self.progress = BatchProgress(consumer, 4, Warnings(), clock=lambda: self.now)

    def report(self, *names: str) -> tuple[Any, ...]:
        report = json.loads(self.progress.onto(DriverReport()).text(1))
        return tuple(report.get(name) for name in names)


def row(name: str, **values: Any) -> ShardRow:
    return ShardRow(name, TRIM_HORIZON, values.pop("end", Position.after("7")), **values)


def test_the_report_counts_shards_by_where_they_stand_and_who_holds_them() -> None:
    bench = Bench(row("a", end=END, batch=3, generation=4), row("b", end=END, batch=4, generation=4), row("c", generation=3), committed=3)
    assert bench.report("generation", "batch", "openShards", "endedShards", "heldShards") == (4, 3, 2, 1, 2)


def test_a_batch_is_one_line_for_the_log() -> None:
    line = Bench().progress.add(Committed(7, (row("a", records=3, behind=40), row("b", records=2))), 0.25)
    assert line == "batch 7: 5 records of 2 shards in 0.250 s, 40 ms behind"


def test_a_batch_says_how_many_of_its_records_were_not_read_again() -> None:
    line = Bench().progress.add(Committed(7, (row("a", records=3),), replay=True, unread=3), 0.25)
    assert line == "batch 7: 3 records of 1 shard, 3 of them not read again in 0.250 s, 0 ms behind"


def test_an_ended_shard_is_held_whoever_read_it() -> None:
    """It is not fenced: nobody can move it."""
    bench = Bench(row("a", end=END, batch=3, generation=1), row("b", generation=4), committed=3)
    assert bench.report("endedShards", "heldShards") == (1, 2)


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


def test_the_lag_is_unknown_until_it_is_known() -> None:
    """Not 0: a driver may start after ten hours of suspension, and start again in each of its failures."""
    bench = Bench()
    assert bench.report("millisBehindLatest") == (None,)
    bench.progress.behind = 36_000_000
    assert bench.report("millisBehindLatest") == (36_000_000,)


def test_the_lag_is_that_of_the_last_batch() -> None:
    bench = Bench()
    bench.progress.add(Committed(1, (row("a", behind=5), row("b", behind=9, end=END))), 1.0)
    assert bench.report("millisBehindLatest") == (5,)


GOAL = 10_000_000


def past(name: str, read_to: int) -> ShardRow:
    """Of a shard whose last range ended in front of a record."""
    return row(name, read_to=read_to, behind=1, records=1, readers={"1.0.0": 1}, read_by="1.0.0")


def backfill(*reads: tuple[float, int]) -> list[str]:
    """The lines of a backfill at some seconds, when the second of its three shards was read up to some time; the others are there."""
    lines, now = [], 0.0
    made: Backfill | None = None
    for now, read_to in reads:
        rows = (past("a", GOAL), past("b", read_to), row("c", end=END))
        consumer = cast("Consumer", SimpleNamespace(view=TableView({r.id: r for r in rows}, 1, frozenset())))
        made = made or Backfill(consumer, RunEnd(GOAL))
        made.consumer, made.clock = consumer, lambda now=now: now
        lines.append(made.line())
    return lines


def test_a_backfill_tells_how_far_it_is_and_how_long_it_takes_at_its_pace() -> None:
    assert backfill((0, GOAL - 7_200_000), (60, GOAL - 3_600_000), (90, GOAL - 1_800_000)) == [
        "2 of 3 shards done, 2:00:00 of the stream to go",
        "2 of 3 shards done, 1:00:00 of the stream to go, about 0:01:00 at this pace",
        "2 of 3 shards done, 0:30:00 of the stream to go, about 0:00:30 at this pace",
    ]


def test_a_backfill_promises_nothing_that_it_does_not_know() -> None:
    """A shard that was not read yet has no time; one that stands still, or a child that begins in the past, has no pace."""
    assert backfill((0, 0), (1, GOAL - 1000), (2, GOAL - 1000), (3, GOAL - 2000), (4, GOAL)) == [
        "2 of 3 shards done",
        "2 of 3 shards done, 0:00:01 of the stream to go",
        "2 of 3 shards done, 0:00:01 of the stream to go",
        "2 of 3 shards done, 0:00:02 of the stream to go",
        "3 of 3 shards done",
    ]


def test_a_far_end_has_no_pace() -> None:
    """A year or more is not worth a line, and a date beyond the last one would end the driver."""
    for end in ("2100-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        made = Backfill(cast("Consumer", SimpleNamespace(view=None)), RunEnd.of(UntilConfig(timestamp=end), 0) or RunEnd(0))
        for now in (0, 5):
            view = TableView({"a": row("a", read_to=1_700_000_000_000 + now)}, 1, frozenset())
            made.consumer, made.clock = cast("Consumer", SimpleNamespace(view=view)), lambda now=now: now
            assert "to go" in made.line()
            assert "pace" not in made.line()


def test_of_a_run_that_has_ended_all_shards_are_done() -> None:
    waits, ended = row("b", parents=frozenset({"a"})), row("c", end=END)
    beyond = row("d", read_to=GOAL + 500_000, records=1, readers={"1.0.0": 1}, read_by="1.0.0")
    for rows, line in (
        ((past("a", GOAL), waits, ended), "3 of 3 shards done"),
        ((past("a", GOAL), waits, ended, beyond), "3 of 4 shards done, 0:00:00 of the stream to go"),
    ):
        consumer = cast("Consumer", SimpleNamespace(view=TableView({r.id: r for r in rows}, 1, frozenset())))
        assert Backfill(consumer, RunEnd(GOAL)).line() == line


def test_the_counts_name_dead_letters_and_possible_losses() -> None:
    """They are in the exit message, which stays when the last report is lost."""
    bench = Bench(row("a"))
    bench.progress.add(Committed(7, (row("a", records=3),)), 0.25)
    assert bench.progress.counts() == "3 records in 1 batch of 1 shard, up to batch 0"
    bench.progress.add(Committed(8, (row("a", records=1, excluded=2),)), 0.25)
    for number in range(3):
        bench.progress.warnings.keep(WarningReason.DATA_LOSS_SUSPECTED, f"a: lost {number}")
    bench.progress.warnings.keep(WarningReason.POISON_EXCLUDED, "left out")
    counts = "4 records in 2 batches of 1 shard, up to batch 0; 2 more in the dead letters; records may be missing: a: lost 1; a: lost 2"
    assert bench.progress.counts() == counts


def test_records_that_were_left_out_are_counted_where_somebody_leaves_any_out() -> None:
    bench = Bench()
    assert bench.report("deadLetters") == (None,)
    bench.progress.dead_letters = lambda: 3
    assert bench.report("deadLetters") == (3,)


def test_the_report_names_the_shard_that_is_farthest_behind_and_how_far_the_others_are() -> None:
    """So that one hot shard is told from a stream that is too much. None is named at the tip."""
    here = Position.after("7")
    rows = [ShardRow(name, TRIM_HORIZON, here, generation=4, batch=1, behind=behind) for name, behind in (("a", 300), ("b", 9000), ("c", 20))]
    assert Bench(*rows, committed=1).report("farthestShard", "millisBehindOthers") == ("b", 300)
    assert Bench(rows[1], committed=1).report("farthestShard", "millisBehindOthers") == ("b", 0)
    tip = Bench(ShardRow("a", TRIM_HORIZON, here, generation=4, batch=1, behind=0), committed=1).progress.onto(DriverReport())
    assert (tip.farthest_shard, tip.millis_behind_others) == (None, 0)


def test_the_report_says_how_busy_the_epoch_is() -> None:
    bench = Bench()
    bench.progress.load.begin()
    bench.now = 10
    bench.progress.load.end()
    bench.progress.add(Committed(1, (row("a", records=3), row("b"))), 10.0)
    bench.now = 20
    assert bench.report("busy", "activeShards") == (0.5, 1)


def test_the_last_ten_versions_are_reported_the_newest_first() -> None:
    bench = Bench()
    assert bench.report("versions") == (None,)
    listed = [Version(SpecName("h", "i"), first, 1, 1_795_633_554_000, reset="r") for first in range(1, 13)]
    bench.progress.versions = spec_versions([*listed, Version(SpecName(), 13, 1, 10**20)])
    (found,) = bench.report("versions")
    assert [version["firstBatch"] for version in found] == [13, 12, 11, 10, 9, 8, 7, 6, 5, 4]
    assert found[:2] == [{"firstBatch": 13}, {"firstBatch": 12, "since": "2026-11-25T19:05:54+00:00", "hash": "h", "image": "i", "reset": "r"}]
