"""`python bench/scale.py`: the growth from 64 shards to 4,000, and 100,000 ended ones. Part of `make bench`.

Asserts nothing. Ratios in one run are what counts; absolute times are this machine's.
"""

from __future__ import annotations

import os

import ended_shards
import growth
from consumer_run import CREDENTIALS
from rich.console import Console
from rich.table import Table

from sluice_lab import places
from sluice_lab.aws import emulators


def growing(dynamodb: str) -> Table:
    """From 64 shards to 4,000: what a batch costs, and a start. `x linear` is against as much a shard as with the fewest."""
    caption = "first batch: from the start of the program; x linear: above 1 it grows faster than the shards"
    table = Table(title="Growth: a record every 2 s on each shard, a batch at once after the last, local[2]", caption=caption)
    for head in ("shards", "batches", "first batch, s", "ms a batch", "x linear", "CPU-ms a batch", "x linear", "tasks", "bytes sent to tasks"):
        table.add_column(head, justify="right")
    first: growth.Grown | None = None
    for shards in growth.SHARDS:
        found = growth.batches(shards, dynamodb)
        first = first or found
        linear = (f"{found.millis / first.millis * first.shards / shards:.2f}", f"{found.cpu / first.cpu * first.shards / shards:.2f}")
        cells = (f"{found.batches}", f"{found.first:.1f}", f"{found.millis:.0f}", linear[0], f"{found.cpu:.0f}", linear[1])
        table.add_row(f"{shards:,}", *cells, f"{found.tasks}", f"{found.sent:,}")
    return table


def driver_alone(_dynamodb: str) -> Table:
    """The driver's own part, over a table in memory that takes 4 ms a call."""
    table = Table(
        title="Growth, the driver alone: each call on the table takes 4 ms; CPU-ms", caption="a batch in which nobody reads: all rows are closed"
    )
    for head in ("shards", "take-over, s", "CPU-ms", "plan, CPU-ms", "close and commit, s", "CPU-ms", "a round of probes, CPU-ms"):
        table.add_column(head, justify="right")
    for shards in (*growth.SHARDS, 10_000):
        found = growth.alone(shards)
        table.add_row(f"{shards:,}", *(f"{value:.1f}" for value in found))
    return table


def main() -> None:
    os.environ.update(CREDENTIALS)
    with emulators.dynamodb_local(places.work()) as dynamodb:
        for table in (growing, driver_alone, lambda _: ended_shards.compared()):
            Console().print(table(dynamodb))


if __name__ == "__main__":
    main()
