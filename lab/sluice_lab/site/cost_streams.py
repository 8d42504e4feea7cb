"""A fleet of streams in money, beside KCL: the tables of docs/cost.md whose prices are those of `prices.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from sluice_lab.generate.markdown import table
from sluice_lab.site import cost_model
from sluice_lab.site.cost_model import MONTH, Consumer, KclApplication, PlannedConsumer, Prices

COUNTS = (12, 40)  # streams
SHARDS = 4  # of each stream
SMALL = PlannedConsumer("", SHARDS, executors=0, driver=1.5, driver_cpu=0.25)  # docs/how-to/scale.md, "Many small streams"
SETUPS: tuple[tuple[str, Consumer], ...] = (
    ("Sluice, a driver and two executors", PlannedConsumer("", SHARDS)),
    ("Sluice, one pod (`executor.inDriver`)", SMALL),
    ("Sluice, one pod, a batch every 30 s", replace(SMALL, interval=30)),
    ("KCL 3, two workers, a checkpoint every 60 s", KclApplication(SHARDS)),
    ("KCL 3, two workers, a checkpoint every 5 s", KclApplication(SHARDS, checkpoint=5)),
    ("KCL 3, one small worker, a checkpoint every 60 s", KclApplication(SHARDS, workers=1, worker_cpu=0.25)),
)


@cache
def price_list() -> tuple[dict[str, Any], ...]:
    """The regions of `prices.toml`, with dates and sources."""
    return tuple(tomllib.loads(Path(__file__).with_name("prices.toml").read_text())["region"])


def listed() -> dict[str, Prices]:
    """The list prices by region."""
    return {each["name"]: Prices(each["writes"], each["reads"], each["vcpu"], each["gib"]) for each in price_list()}


def prices() -> str:
    """The list prices, and when they were read."""
    heading = ("US dollars", "a million write units", "a million read units", "vCPU-hour", "GiB-hour", "DynamoDB's read on", "Fargate's read on")
    figures = ("writes", "reads", "vcpu", "gib")
    rows = [(each["name"], *(f"{each[name]}" for name in figures), f"{each['dynamodb_read']}", f"{each['fargate_read']}") for each in price_list()]
    return table(heading, rows)


def streams(regions: Mapping[str, Prices] | None = None, fan_out: float | None = None) -> str:
    """Each setup for 12 and 40 streams: what it uses, and in each region DynamoDB's requests, the pods, and the sum.

    With `fan_out`, the price of a shard's consumer-hour, KCL's rows are shown with enhanced fan-out, which is then part of the sum.
    """
    regions = regions or listed()
    heading = ("streams of 4 shards", "pods", "vCPU", "GiB", "million writes", "million reads", *(f"{name}, US dollars" for name in regions))
    return table(heading, [_row(count, what, one, regions, fan_out or 0) for count in COUNTS for what, one in SETUPS])


def summary() -> str:
    """Each setup for the fewer streams, in the first region: for README.md."""
    count, (region, each) = COUNTS[0], next(iter(listed().items()))
    heading = (f"streams of {SHARDS} shards, {region}", "pods", "GiB", "US dollars a month: DynamoDB's requests + pods")
    rows = [
        (f"{count}: {what}", f"{count * one.pods}", f"{count * one.memory:g}", _money(count, (each.requests(one), each.pods(one))))
        for what, one in SETUPS
    ]
    return table(heading, rows)


def _row(count: int, what: str, one: Consumer, regions: Mapping[str, Prices], fan_out: float) -> tuple[str, ...]:
    sizes = (f"{count * each:g}" for each in (one.pods, one.cpu, one.memory))
    units = (f"{count * each / 1e6:.1f}" for each in (one.writes, one.reads))
    hours = SHARDS * MONTH / 3600 * fan_out if isinstance(one, KclApplication) else 0
    return f"{count}: {what}", *sizes, *units, *(_money(count, (each.requests(one), each.pods(one), hours)) for each in regions.values())


def _money(count: int, parts: tuple[float, ...]) -> str:
    whole = [round(count * part) for part in parts if part]
    return f"{' + '.join(f'{part:,}' for part in whole)} = {sum(whole):,}"


def kcl() -> str:
    """What KCL's rows are computed by; S open shards, W workers, C seconds from checkpoint to checkpoint."""
    one, month = KclApplication(SHARDS), f"{MONTH:,}"
    scans = cost_model.scan_units(one.shards) + cost_model.scan_units(one.workers)
    queries = one.workers * cost_model.scan_units(1)
    parts = (
        ("renewals of leases, writes", one.shards, cost_model.RENEWAL, "S", "a worker renews each of its leases every third of `failoverTimeMillis`"),
        ("checkpoints, writes", one.shards, one.checkpoint, "S", "your record processor decides when"),
        ("metrics of workers, writes", one.workers, cost_model.WORKER_METRICS, "W", "the leader balances by them"),
        ("lock of the leader, writes", 1, cost_model.LEADER_BEAT, "1", "one worker is the leader"),
        (
            "scans of the leader, reads",
            scans,
            cost_model.ASSIGNMENT,
            "(S + W) / 16",
            "half a unit for 4 KB, which are 8 rows; rounded up for each table",
        ),
        ("leases of a worker, reads", queries, cost_model.DISCOVERY, "W / 2", "a query of the index by owner"),
    )
    rows = [
        (what, f"{month} / {'C' if every == one.checkpoint else f'{every:g}'} · {by}", f"{MONTH * units / every / 1e6:.2f}", why)
        for what, units, every, by, why in parts
    ]
    return table(("a month", "formula", f"million, for S = {SHARDS}, W = {one.workers}, C = {one.checkpoint:g}", "why"), rows)
