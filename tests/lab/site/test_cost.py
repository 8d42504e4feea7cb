"""docs/cost.md: its tables are computed, and what they are computed by is counted over a real consumer and a table in memory."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.append(str(Path(__file__).parents[2] / "consumer"))

from consuming import Bench, Engine

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.lease_keeper import BEATS_A_LEASE
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import BatchConfig, Config
from sluice_lab.site import cost
from sluice_operator.generate import markdown

PAGE = (Path(__file__).parents[3] / "docs" / "cost.md").read_text()


def test_the_tables_are_what_the_formulas_give() -> None:
    """Else: make generate."""
    assert cost.filled(PAGE) == PAGE
    assert {name for _, name, _ in markdown.PART.findall(PAGE)} == set(cost.PARTS)


@pytest.mark.parametrize(("shards", "idle"), [(1, 0), (3, 0), (8, 0), (8, 5)])
@pytest.mark.parametrize("with_records", [0, 1])
def test_a_batch_writes_and_reads_as_often_as_the_page_says(shards: int, idle: int, with_records: int) -> None:
    """Whether a shard of it brings records or not: it is bound or closed. A batch_get counts a read for each of its rows."""
    bench = Bench(shards)
    consumer = bench.begin()
    names = sorted(bench.store.shards())[idle:]
    left_out = frozenset(bench.store.shards()) - frozenset(names)
    counted: Counter[str] = Counter()

    def hook(when: str, operation: str, argument: object) -> None:
        if when == "before":
            counted[operation] += len(argument) if operation == "batch_get" and isinstance(argument, (list, tuple)) else 1

    def tasks(plan: BatchPlan) -> None:
        """One task reads all rows, as in `spark.batch_reader`, and binds those with records."""
        bench.store.read(names)
        for name in names if with_records else names[:1]:
            bench.bind(consumer, name, Position.after(str(plan.number)))(plan)
            counted["batch_get"] -= 1  # the helper reads the row once more

    for _ in range(3):
        plan = consumer.plan(left_out)
        assert plan is not None
        counted.clear()
        bench.table.hook = hook
        consumer.run(plan, Engine(tasks))
        bench.table.hook = lambda *_: None
        assert counted["write"] == cost.writes_a_batch(shards - idle), counted
        assert counted["batch_get"] + counted["get"] == cost.reads_a_batch(shards - idle), counted
        assert counted["scan"] == 0


def test_the_figures_follow_from_the_parts() -> None:
    """By hand, for 64 shards at the defaults: 5 s, and a lease of 20 s."""
    assert (BatchConfig.interval_seconds, Config.lease_duration_seconds, BEATS_A_LEASE) == (5, 20, 3)
    big = cost.PlannedConsumer("", 64)
    assert big.writes == 518_400 * 65 + 388_800
    assert big.reads == 518_400 * 128
    assert cost.PlannedConsumer("", 64, busy=0).writes == 388_800 + 720 * 65
    many = cost.PlannedConsumer("", 1000, active=10)
    assert many.writes == 518_400 * 11 + 720 * 990 + 388_800
    assert many.reads == 518_400 * 20 + 720 * 990 * 2
    assert cost.PlannedConsumer("", 4, executors=0).memory == 2


def test_the_examples_are_printed_in_money() -> None:
    """Of the requests only; the page itself names no price, for they differ by region and change."""
    run = CliRunner().invoke(cost.main, ["--prices", "0.625", "0.125"])
    assert run.exit_code == 0
    (line,) = [line for line in run.output.splitlines() if line.startswith("| 64 shards |")]
    expected = (518_400 * 65 + 388_800) * 0.625 / 1e6 + 518_400 * 128 * 0.125 / 1e6
    assert line.endswith(f"| {expected:.2f} |")
    assert CliRunner().invoke(cost.main, []).output == cost.examples() + "\n"


def test_a_price_below_zero_is_refused() -> None:
    """Naming the option."""
    run = CliRunner().invoke(cost.main, ["--prices", "-1", "0.1"])
    assert run.exit_code == 2
    assert "--prices" in run.output
