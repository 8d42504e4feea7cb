"""Catching up into a lake: the sinks on a real S3 server, beside Spark alone writing the same rows, on the line of Spark that has them all."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import catch_up
import pyarrow as pa
from canned import Options
from consumer_run import CREDENTIALS, HERE, UNPACED, Plan, kinesis, python_path, run
from peers import SCHEMA, PeerRun
from slab import CBOR, Shape

from sluice_lab import places, spark_lines
from sluice_lab.aws import emulators
from sluice_lab.lake import catalog, readers
from sluice_lab.lake.storage import Storage

LINE = spark_lines.image_line()
KINDS = ("parquet", "iceberg", "delta")
SHARDS, RECORDS = 4, 25_000  # a batch
WARM_UP, BATCHES = 12, 10
TABLE = "lake.db.bench"


@dataclass(frozen=True)
class Place:
    target: str
    spark: dict[str, str]


@contextmanager
def lake(kind: str) -> Iterator[Place]:
    with emulators.s3(places.work()) as endpoint:
        storage = Storage(endpoint, "bench").create()
        if kind != "iceberg":
            yield Place(f"s3a://{storage.bucket}/rows", storage.hadoop())
            return
        with catalog.iceberg_catalog(places.work(), storage) as found:
            table = readers.catalog(found, storage)
            table.create_namespace("db")
            table.create_table("db.bench", schema=pa.schema(list(SCHEMA)))
            yield Place(TABLE, catalog.spark("lake", found, storage))


def pair(kind: str, size: int, dynamodb: str) -> tuple[catch_up.Speed, catch_up.Speed]:
    with lake(kind) as place:
        floor = spark_alone(kind, size, place)
    with lake(kind) as place:
        return floor, consumer(kind, size, place, dynamodb)


def spark_alone(kind: str, size: int, place: Place) -> catch_up.Speed:
    """Prebuilt rows, appended as one does without Sluice."""
    asked = PeerRun("nothing", "", SHARDS, RECORDS, size, WARM_UP + BATCHES, kind, place.target, place.spark)
    command = [str(spark_lines.python(LINE)), str(HERE / "peers.py"), json.dumps(asdict(asked))]
    environment = os.environ | CREDENTIALS | {"PYTHONPATH": python_path()} | jars()
    said = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return speed([json.loads(line.removeprefix("MARK ")) for line in said.splitlines() if line.startswith("MARK ")])


def consumer(kind: str, size: int, place: Place, dynamodb: str) -> catch_up.Speed:
    batch = {"intervalSeconds": 0, "maxRecordsPerShard": RECORDS, "maxBytesPerShard": 2**31}
    into = {"table" if kind == "iceberg" else "path": place.target} | ({"create": True} if kind == "delta" else {})
    args = {"sink": kind, "into": into}
    with kinesis(Options(SHARDS, Shape(RECORDS * (WARM_UP + BATCHES + 2), size, catch_up.START_MILLIS), (CBOR,))) as endpoint:
        made = Plan(endpoint, dynamodb, "lake", batch, WARM_UP + BATCHES + 1, 900.0, place.spark, UNPACED, LINE, jars(), args)
        return speed(list(run(made).marks))


def jars() -> dict[str, str]:
    return {"PYSPARK_SUBMIT_ARGS": spark_lines.submitted(LINE)}


def speed(marks: list[dict[str, Any]]) -> catch_up.Speed:
    first, last = marks[-1 - BATCHES], marks[-1]
    millions = (last["batch"] - first["batch"]) * SHARDS * RECORDS / 1e6
    return catch_up.Speed((last["cpu"] - first["cpu"]) / millions, (last["at"] - first["at"]) / millions)
