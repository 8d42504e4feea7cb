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
from sluice_lab.generate import markdown
from sluice_lab.site import cost, cost_model, cost_streams

REPO = Path(__file__).parents[3]
PAGE, README = (REPO / "docs" / "cost.md").read_text(), (REPO / "README.md").read_text()


def test_the_tables_are_what_the_formulas_give() -> None:
    """Else: make generate."""
    assert cost.filled(PAGE) == PAGE
    assert cost.filled(README) == README
    assert sorted(name for page in (PAGE, README) for _, name, _ in markdown.PART.findall(page) if name in cost.PARTS) == sorted(cost.PARTS)
    assert {name for _, name, _ in markdown.PART.findall(PAGE)} <= cost.PARTS.keys()


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
        assert counted["write"] == cost_model.writes_a_batch(shards - idle), counted
        assert counted["batch_get"] + counted["get"] == cost_model.reads_a_batch(shards - idle), counted
        assert counted["scan"] == 0


def test_the_figures_follow_from_the_parts() -> None:
    """By hand, for 64 shards at the defaults: 5 s, and a lease of 20 s."""
    assert (BatchConfig.interval_seconds, Config.lease_duration_seconds, BEATS_A_LEASE) == (5, 20, 3)
    big = cost_model.PlannedConsumer("", 64)
    assert big.writes == 518_400 * 65 + 388_800
    assert big.reads == 518_400 * 128
    assert cost_model.PlannedConsumer("", 64, busy=0).writes == 388_800 + 720 * 65
    many = cost_model.PlannedConsumer("", 1000, active=10)
    assert many.writes == 518_400 * 11 + 720 * 990 + 388_800
    assert many.reads == 518_400 * 20 + 720 * 990 * 2
    assert cost_model.PlannedConsumer("", 4, executors=0).memory == 2


def test_the_examples_are_printed_in_money() -> None:
    run = CliRunner().invoke(cost.main, ["--prices", "0.625", "0.125"])
    assert run.exit_code == 0
    (line,) = [line for line in run.output.splitlines() if line.startswith("| 64 shards |")]
    expected = (518_400 * 65 + 388_800) * 0.625 / 1e6 + 518_400 * 128 * 0.125 / 1e6
    assert line.endswith(f"| {expected:.2f} |")
    assert CliRunner().invoke(cost.main, []).output == cost.examples() + "\n"


def test_a_row_of_money_follows_from_the_price_list() -> None:
    """By hand, for twelve streams in Frankfurt: a driver of 0.5 vCPU and two executors of 1, each of 2 GiB, for 720 hours."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith("| 12: Sluice, a driver and two executors |")]
    writes, reads = 518_400 * 5 + 388_800, 518_400 * 8
    requests = 12 * (writes * 0.7625 + reads * 0.1525) / 1e6
    pods = 12 * 720 * (2.5 * 0.04656 + 6 * 0.00511)
    assert line.split(" | ")[1:7] == ["36", "30", "72", f"{12 * writes / 1e6:.1f}", f"{12 * reads / 1e6:.1f}", "29 + 1,105 = 1,134"]
    assert line.split(" | ")[7] == f"{requests:.0f} + {pods:,.0f} = {round(requests) + round(pods):,}" == "35 + 1,271 = 1,306"


def test_a_row_of_kcl_follows_from_its_intervals() -> None:
    """By hand, for four shards and two workers: a renewal every 10 s / 3 - 25 ms, a checkpoint a minute; half a unit for a scan of 8 rows."""
    one = cost_model.KclApplication(4)
    month = 2_592_000
    assert abs(cost_model.RENEWAL - (10 / 3 - 0.025)) < 0.001
    assert one.writes == pytest.approx(4 * month / 3.308 + 4 * month / 60 + 2 * month / 30 + month / 30)
    assert one.reads == pytest.approx(2 * 0.5 * month / 20 + 2 * 0.5 * month / 9.975)
    assert cost_model.scan_units(8) == 0.5
    assert cost_model.scan_units(9) == 1.0
    (line,) = [line for line in PAGE.splitlines() if line.startswith("| 40: KCL 3, two workers, a checkpoint every 60 s |")]
    requests, pods = 40 * (one.writes * 0.625 + one.reads * 0.125) / 1e6, 40 * 720 * (2 * 0.5 * 0.04048 + 2 * 1 * 0.004445)
    assert f"| {requests:.0f} + {pods:,.0f} = {round(requests) + round(pods):,} |" in line


def test_a_price_has_its_source_and_date() -> None:
    found = cost_streams.price_list()
    assert [each["name"] for each in found] == ["us-east-1", "eu-central-1", "ap-northeast-1"]
    for each in found:
        for service, offer in (("dynamodb", "AmazonDynamoDB"), ("fargate", "AmazonECS")):
            assert each[f"{service}_read"].isoformat() in cost_streams.prices()
            assert each[f"{service}_source"].endswith(f"/{offer}/current/{each['name']}/index.json")


def test_streams_are_printed_with_prices_of_your_own() -> None:
    run = CliRunner().invoke(cost.main, ["--region", "mine", "0", "0", "0.01", "0", "--fan-out", "0.015"])
    assert run.exit_code == 0, run.output
    ours, kcl = (next(line for line in run.output.splitlines() if line.startswith(f"| 12: {who}")) for who in ("Sluice", "KCL"))
    assert ours.endswith(f"| {12 * 720 * 2.5 * 0.01:.0f} = 216 |")
    assert kcl.endswith(f"| {12 * 720 * 0.01:.0f} + {12 * 720 * 4 * 0.015:.0f} = 604 |")
