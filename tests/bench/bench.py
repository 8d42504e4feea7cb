"""`make bench`: the consumer beside its peers in one run; printed, never asserted. Names of tables as arguments choose among them.

Everything is real but AWS: DynamoDB Local has the table, and a canned Kinesis of our own (`canned`) costs so little that the consumer is what is
measured. Absolute times are this machine's; the ratios are what counts.
"""

from __future__ import annotations

import os
import sys

import catch_up
import into_lake
import tip
from consumer_run import CREDENTIALS
from rich.console import Console
from rich.table import Table

from sluice_lab import places, spark_lines
from sluice_lab.aws import emulators

SIZES = (200, 1000)
FLOOR = "rows made of nothing"


def catching_up(dynamodb: str) -> Table:
    """Catch-up speed of every contestant."""
    table = Table(title=f"Catching up, {catch_up.SHARDS} shards, local[2]: fetch, bind, process (noop), close, commit")
    table.add_column("")
    for size in SIZES:
        for head in (f"{size} B: CPU-s per 1M", "x floor", "records/s"):
            table.add_column(head, justify="right")
    found = {size: catch_up.speeds(size, dynamodb) for size in SIZES}
    for name in found[SIZES[0]]:
        table.add_row(name, *(cell for size in SIZES for cell in _cells(found[size][name], found[size][FLOOR])))
    return table


def _cells(speed: catch_up.Speed, floor: catch_up.Speed) -> tuple[str, str, str]:
    return f"{speed.cpu:.2f}", f"{speed.cpu / floor.cpu:.2f}", f"{1000 / speed.wall:.0f}k"


def at_the_tip(dynamodb: str) -> Table:
    """A batch's cost, and a record's wait."""
    caption = f"medians of {tip.BATCHES} batches after {tip.LONG_WARM_UP}; put to sink: after {tip.WARM_UP}"
    table = Table(title=f"At the tip, 20 records/s/shard, a batch every {tip.INTERVAL} s, local[2]", caption=caption)
    for head in ("shards", "ms a batch", "p90", "CPU-ms a batch", "of the services", "put to sink, ms", "p90"):
        table.add_column(head, justify="right")
    for shards in (4, 64):
        batch, waited = tip.batches(shards, dynamodb), tip.waits(shards, dynamodb)
        table.add_row(str(shards), *(f"{value:.0f}" for value in (batch.median, batch.p90, batch.cpu, batch.services, *waited)))
    return table


def extremes(dynamodb: str) -> Table:
    """Nothing at all, and as much as there can be."""
    table = Table(title="Idle, and at the limits")
    table.add_column("")
    table.add_column("", justify="right")
    idle, held = tip.idle(dynamodb), tip.at_limits(dynamodb)
    table.add_row(f"batches of a stream with 4 records in 20 s, over {idle.seconds:.0f} s", str(idle.batches))
    table.add_row("GetRecords a second and shard meanwhile", f"{idle.calls:.2f}")
    table.add_row("longest wait of a record put on the idle stream, ms", f"{idle.waited:.0f}")
    table.add_row(f"{held.megabytes:.0f} MB/s on 8 shards: ms behind in the first third", f"{held.early:.0f}")
    table.add_row("the same in the last third", f"{held.late:.0f}")
    return table


def into_a_lake(dynamodb: str) -> Table:
    """The sinks beside Spark alone, which writes the same rows without a mark."""
    caption = (
        f"{into_lake.SHARDS} shards, {into_lake.RECORDS:,} records of each a batch; Spark {into_lake.LINE}; S3: versitygw; catalog: Iceberg's REST"
    )
    table = Table(title="Into a lake on S3, local[2]: fetch to commit, and the sink's own", caption=caption)
    table.add_column("")
    for size in SIZES:
        for head in (f"{size} B: CPU-s per 1M", "x floor", "records/s", "x floor's time"):
            table.add_column(head, justify="right")
    for kind in into_lake.KINDS:
        pairs = [_said(kind, size, into_lake.pair(kind, size, dynamodb)) for size in SIZES]
        for which, name in enumerate((f"{kind}: Spark alone", f"{kind}: sluice")):
            table.add_row(name, *(cell for pair in pairs for cell in (*_cells(pair[which], pair[0]), f"{pair[which].wall / pair[0].wall:.2f}")))
    return table


def lines_of_spark(dynamodb: str) -> Table:
    """What a line costs."""
    size = SIZES[-1]
    table = Table(title=f"Catching up on each line of Spark, {size} B, JSON, local[2]")
    for head in ("Spark", "CPU-s per 1M", "x its floor", "records/s", "CPU-s per 1M of the floor"):
        table.add_column(head, justify="right")
    for line in sorted({spark_lines.default(), *spark_lines.others()}):
        floor, consumer = catch_up.on_line(line, size, dynamodb)
        table.add_row(line, *_cells(consumer, floor), f"{floor.cpu:.2f}")
    return table


def _said(kind: str, size: int, pair: tuple[catch_up.Speed, catch_up.Speed]) -> tuple[catch_up.Speed, catch_up.Speed]:
    """A line for each pair as it comes: all of them take a quarter of an hour."""
    floor, consumer = pair
    Console(stderr=True).print(f"{kind}, {size} B: {consumer.wall / floor.wall:.2f} x the time of Spark alone; {floor} {consumer}")
    return pair


def main() -> None:
    """Measures and prints, a table as soon as it is full; names of tables as arguments choose among them."""
    os.environ.update(CREDENTIALS)
    console = Console(width=150)
    tables = {"catch-up": catching_up, "tip": at_the_tip, "extremes": extremes, "lake": into_a_lake, "lines": lines_of_spark}
    with emulators.dynamodb_local(places.work()) as dynamodb:
        for name in sys.argv[1:] or tables:
            console.print(tables[name](dynamodb))


if __name__ == "__main__":
    main()
