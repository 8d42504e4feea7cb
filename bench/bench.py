"""`make bench`: the consumer beside its peers in one run; printed, never asserted. Names of tables as arguments choose among them.

Everything is real but AWS: DynamoDB Local has the table, and a canned Kinesis of our own (`canned`) costs so little that the consumer is what is
measured. Absolute times are this machine's; the ratios are what counts. `--keep docs/bench` keeps the figures for the pages (`make generate`).
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import catch_up
import click
import compare
import into_lake
import start
import tip
import tip_lines
from consumer_run import CREDENTIALS

from sluice_consumer.config import BatchConfig
from sluice_lab import places, spark_lines
from sluice_lab.aws import emulators
from sluice_lab.site import bench as tables

SIZES = (200, 1000)
SHARDS = (4, 64)
LINE = spark_lines.image_line()
LINES = sorted({LINE, max([spark_lines.default(), *spark_lines.others()])})  # and the newest
LOAD = round(os.getloadavg()[0], 2)  # before the first of them, whose own load is not that of others
ALIKE = {"lines": ("lines", "lines-catch-up")}


class Measurement:
    def __init__(self, dynamodb: str, rounds: int, jar: Path | None, images: Mapping[str, str]) -> None:
        self.dynamodb, self.rounds, self.jar, self.images = dynamodb, rounds, jar, images

    def catch_up(self) -> tuple[Mapping[str, Any], Any]:
        settings = {
            "shards": catch_up.SHARDS,
            "records of each shard a batch": f"{catch_up.RECORDS:,}",
            "batches of warm-up": catch_up.WARM_UP,
            "batches measured": catch_up.BATCHES,
            "rounds": self.rounds,
        }
        return settings, {str(size): catch_up.rounds(size, self.dynamodb, self.rounds, self.jar) for size in SIZES}

    def backlog(self) -> tuple[Mapping[str, Any], Any]:
        settings = {"shards": f"{catch_up.SHARDS}, at 2 MiB and five calls a second", "all else": "defaults of each"}
        return settings, {str(size): catch_up.by_defaults(size, self.dynamodb, self.jar) for size in SIZES}

    def tip(self) -> tuple[Mapping[str, Any], Any]:
        settings = {
            "records a second and shard": f"{tip.RATE:g}, of {tip.SIZE} B",
            "seconds from batch to batch": tip.INTERVAL,
            "shards a task": tip.SHARDS_PER_TASK,
            "batches of warm-up": tip.WARM_UP,
            "batches measured": tip.BATCHES,
        }
        return settings, {str(shards): tip.waits(shards, self.dynamodb) for shards in SHARDS}

    def quiet(self) -> tuple[Mapping[str, Any], Any]:
        fast = [tip.Quiet(shards, share) for shards in SHARDS for share in (None, 0.2, 1.0)]
        usual = [tip.Quiet(4, share, BatchConfig().interval_seconds, 1 / 60, 20, 4) for share in (None, 0.2)]
        settings = {"batches of warm-up": f"{fast[0].warm_up} ({usual[0].warm_up})", "batches measured": f"{fast[0].batches} ({usual[0].batches})"}
        return settings, [asdict(way) | asdict(tip.quiet(self.dynamodb, way)) for way in (*fast, *usual)]

    def lines(self) -> tuple[Mapping[str, Any], Any]:
        settings = {
            "records a second and shard": f"{tip_lines.RATE:g}, of {tip_lines.SIZE} B",
            "pause between batches": "none",
            "shards a task": tip_lines.SHARDS_PER_TASK,
            "batches of warm-up": tip_lines.WARM_UP,
            "batches measured": tip_lines.BATCHES,
            "rounds": self.rounds,
        }
        return settings, {str(shards): list(tip_lines.rounds(LINES, shards, self.dynamodb, self.rounds, self.images)) for shards in SHARDS}

    def lines_catch_up(self) -> tuple[Mapping[str, Any], Any]:
        settings = {
            "shards": catch_up.SHARDS,
            "records of each shard a batch": f"{catch_up.RECORDS:,}, of {SIZES[-1]:,} B, in CBOR",
            "batches of warm-up": catch_up.WARM_UP,
            "batches measured": catch_up.BATCHES,
        }
        return settings, catch_up.on_lines(LINES, SIZES[-1], self.dynamodb)

    def start(self) -> tuple[Mapping[str, Any], Any]:
        settings = {"shards": start.SHARDS, "records": f"{start.RECORDS:,} of each shard, of {start.SIZE:,} B", "rounds": self.rounds}
        rounds = start.rounds(self.dynamodb, self.rounds, self.jar)
        return settings, {"rounds": rounds, "timeline": start.timeline(self.dynamodb)}

    def compare(self) -> tuple[Mapping[str, Any], Any]:
        return compare.SETTINGS, compare.figures(self.dynamodb)

    def extremes(self) -> tuple[Mapping[str, Any], Any]:
        return {"seconds from batch to batch": f"{tip.INTERVAL} (idle), 1 (at the limits)"}, {
            "idle": asdict(tip.idle(self.dynamodb)),
            "held": asdict(tip.at_limits(self.dynamodb)),
        }

    def lake(self) -> tuple[Mapping[str, Any], Any]:
        settings = {
            "shards": into_lake.SHARDS,
            "records of each shard a batch": f"{into_lake.RECORDS:,}",
            "batches of warm-up": into_lake.WARM_UP,
            "batches measured": into_lake.BATCHES,
        }
        return settings, {str(size): {kind: self._stored(kind, size) for kind in into_lake.KINDS} for size in SIZES}

    def _stored(self, kind: str, size: int) -> dict[str, Any]:
        floor, consumer = into_lake.pair(kind, size, self.dynamodb)
        return {tables.FLOOR: asdict(floor), tables.SLUICE: asdict(consumer)}


def run() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "line": LINE,
        "spark": spark_lines.pins_of(spark_lines.FOLDER / f"spark-{LINE}.txt")["pyspark"],
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB",
        "load": LOAD,
    }


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted({*tables.TABLES} - tables.ON_A_CLUSTER)))
@click.option("--rounds", default=2, show_default=True, help="how often what is compared closely is measured, in turns")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="a folder for the figures, a file a table")
@click.option("--peer-jar", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="the awslabs connector, to be measured beside")
@click.option("--image", "images", multiple=True, metavar="LINE=TAG", help="a consumer's image of a line of Spark, to be measured beside in `lines`")
def main(names: tuple[str, ...], rounds: int, keep: Path | None, peer_jar: Path | None, images: tuple[str, ...]) -> None:
    """Measure and print; a table as soon as it is full."""
    os.environ.update(CREDENTIALS)
    click.echo(f"Spark {run()['spark']}, the line of the image ({LINE}); {run()['machine']}, load {run()['load']}\n")
    with emulators.dynamodb_local(places.work()) as dynamodb:
        tags = {line: tag for line, _, tag in (image.partition("=") for image in images)}
        measurement = Measurement(dynamodb, rounds, peer_jar.resolve() if peer_jar else None, tags)
        for name in itertools.chain.from_iterable(
            ALIKE.get(name, (name,)) for name in names or sorted({*tables.TABLES} - {"lines-catch-up"} - tables.ON_A_CLUSTER)
        ):
            measure: Callable[[], tuple[Mapping[str, Any], Any]] = getattr(measurement, name.replace("-", "_"))
            begun = run()
            settings, figures = measure()
            found = {"run": begun, "settings": settings, "figures": figures}
            click.echo(tables.shown(name, found) + "\n")
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
