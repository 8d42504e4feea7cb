"""Pipelines that processes of tests are given by name: they do what a sink does, and then something goes wrong."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from sluice_consumer import sinks
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import rows
from sluice_consumer.sinks.files import manifest, stores
from sluice_consumer.sinks.iceberg.table import FOR_EVER, IcebergTable
from sluice_consumer.sinks.options import RowArguments, RowOptions

JSON: RowArguments = {"decode": "json", "schema": "id BIGINT, name STRING"}
ROWS = RowOptions(schema=JSON["schema"])
Sink = Callable[..., None]


def gone_after_first(batch: DataFrame, info: BatchInfo) -> None:
    sinks.iceberg(batch, info, table=info.args["table"], **JSON)
    if info.batch == 1:
        batch.sparkSession.sql(f"DROP TABLE {info.args['table']}")


def killed(batch: DataFrame, info: BatchInfo) -> None:
    """The sink writes; then, or while it writes, everything is killed. `args`: `sink`, its `options`, `kills`, `folder` for what has happened."""
    fate = Fate(info)
    if info.replay and info.args.get("expire"):
        expire(batch, info.args["options"]["table"])
    SINKS[info.args["sink"]](fate)(batch, info, **info.args["options"])
    fate.after()


class Fate:
    """Kills each batch's first attempt, until there were as many kills as asked for: by turns after the sink's write and within it."""

    def __init__(self, info: BatchInfo) -> None:
        self._path = Path(info.args["folder"]) / "attempts"
        before = self._path.read_text().splitlines() if self._path.exists() else []
        kills = sum(json.loads(line)["kill"] != "" for line in before)
        wanted = not info.replay and kills < info.args["kills"]
        self._kill = ("within" if kills % 2 and info.args.get("steps") else "after") if wanted else ""
        self._told = {"batch": info.batch, "replay": info.replay, "kill": self._kill}
        if self._kill == "":
            self._tell()

    def within(self) -> None:
        if self._kill == "within":
            self._die()

    def after(self) -> None:
        if self._kill == "after":
            self._die()

    def _tell(self) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(self._told) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _die(self) -> None:
        """The supervisor first, so that nobody releases the lease; then the driver and its JVM, which are one group."""
        self._tell()
        os.kill(os.getppid(), signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)


def expire(batch: DataFrame, table: str) -> None:
    java: Any = IcebergTable.load(batch.sparkSession, table)._table
    java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()


def iceberg(fate: Fate) -> Sink:
    """The real one; killed between what it stages and what it publishes."""
    publish = IcebergTable._publish

    def late(self: IcebergTable, *args: Any) -> None:
        fate.within()
        publish(self, *args)

    IcebergTable._publish = late  # type: ignore[method-assign, assignment]
    return sinks.iceberg


def parquet(fate: Fate) -> Sink:
    """The real one; killed between the files and the manifest."""
    create = stores.S3Store.create

    def late(self: stores.S3Store, path: str, content: bytes) -> bool:
        fate.within()
        return create(self, path, content)

    stores.S3Store.create = late  # type: ignore[method-assign, assignment]
    return sinks.parquet


def delta(_fate: Fate) -> Sink:
    """The real one, which writes in one step."""
    return sinks.delta


def blind_iceberg(_fate: Fate) -> Sink:
    """A sabotage: no look before the append."""

    def sink(batch: DataFrame, _info: BatchInfo, table: str, **_args: Any) -> None:
        rows.rows(batch, ROWS).writeTo(table).append()

    return sink


def late_mark(fate: Fate) -> Sink:
    """A sabotage: the mark is in another commit than the rows."""

    def sink(batch: DataFrame, info: BatchInfo, table: str, **_args: Any) -> None:
        found = IcebergTable.load(batch.sparkSession, table)
        if (mark := found.read_mark(info.consumer)) and mark.batch >= info.batch:
            return
        rows.rows(batch, ROWS).writeTo(table).append()
        fate.after()
        java: Any = found._table
        java.refresh()
        name = f"sluice-{info.consumer}-{info.batch}"
        java.manageSnapshots().createTag(name, java.currentSnapshot().snapshotId()).setMaxRefAgeMs(name, FOR_EVER).commit()

    return sink


def manifest_first(fate: Fate) -> Sink:
    """A sabotage: the manifest is written before the files that it names."""

    def sink(batch: DataFrame, info: BatchInfo, path: str, **_args: Any) -> None:
        made = rows.rows(batch, ROWS)
        found = made.collect()  # the batch has begun: it comes again as a replay
        store, place = stores.hadoop_store(batch.sparkSession, path), manifest.BatchFiles(path, info.consumer, info.batch)
        name = f"{info.consumer}/{info.batch:012d}/one/rows.parquet"
        if not store.create(place.manifest, manifest.to_json(place, [manifest.DataFile(name, 1)])):
            return
        fate.after()
        batch.sparkSession.createDataFrame(found, made.schema).coalesce(1).write.parquet(f"{path}/{name}")

    return sink


SINKS: dict[str, Callable[[Fate], Sink]] = {
    "iceberg": iceberg,
    "delta": delta,
    "parquet": parquet,
    "blind_iceberg": blind_iceberg,
    "late_mark": late_mark,
    "manifest_first": manifest_first,
}
