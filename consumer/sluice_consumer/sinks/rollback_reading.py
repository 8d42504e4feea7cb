"""Reads what a table or folder holds of a consumer, for `rollback`. Nothing is written."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_consumer.config import Config
from sluice_consumer.sinks import rollback
from sluice_consumer.sinks.delta.history import whole_history
from sluice_consumer.sinks.delta.table import DeltaTable, require
from sluice_consumer.sinks.edge import in_terms_of
from sluice_consumer.sinks.files import stores
from sluice_consumer.sinks.files.manifest import BatchFiles, Store
from sluice_consumer.sinks.foreach import REDRIVE
from sluice_consumer.sinks.iceberg import catalog
from sluice_consumer.sinks.iceberg.table import MAIN, IcebergTable, TableHistory, branch, staging, tag
from sluice_consumer.sinks.rollback import Rollback

SINKS = ("iceberg", "delta", "parquet")
MODULE = "sluice_consumer.sinks"


def sink_of(config: Config) -> str:
    """The kind of sink that a configuration has.

    Raises:
        Refused: it is none that can be rolled back by batch.
    """
    module, _, name = config.pipeline.entrypoint.partition(":")
    if module == MODULE and name in SINKS:
        return name
    raise Refused(
        f"pipeline.entrypoint: {config.pipeline.entrypoint}: Sluice does not know what your function writes. If it calls one of the sinks "
        f"{', '.join(SINKS)}, name it: --sink iceberg --place lake.db.orders"
    )


def place_of(config: Config, sink: str) -> str:
    """The table or path that a configuration names.

    Raises:
        Refused: none.
    """
    args = config.pipeline.args
    place = args.get("table") or args.get("path")
    if not isinstance(place, str):
        raise Refused(f"pipeline.args: names no table and no path of the sink {sink}; give it with --place")
    return place


def read(spark: SparkSession, sink: str, place: str, consumer: str, batch: int) -> Rollback:
    """The statements that take a batch and all later ones out.

    Raises:
        Refused: there is no such table, or it does not show what was in front of the batch. SinkUnavailable: it does not answer.
    """
    with in_terms_of("--place", place):
        return {"iceberg": _iceberg, "delta": _delta, "parquet": _parquet}[sink](spark, place, consumer, batch)


def _iceberg(spark: SparkSession, place: str, consumer: str, batch: int) -> Rollback:
    catalog.require(spark, place)
    if not catalog.exists(spark, place):
        raise Refused(f"--place: {place}: there is no such table")
    java = IcebergTable.load(spark, place).java
    history, parts = TableHistory(java), catalog.parts(spark, place)
    taken = rollback.taken_out(history, rollback.identifier(parts), consumer, batch)
    if taken is None:
        return Rollback("iceberg", place, batch)
    operations = {each.id: str(java.snapshot(each.id).operation()) for each in taken.snapshots}
    redrive = f"{consumer}{REDRIVE}"
    writers = [consumer, redrive] if any(each.consumer == redrive for each in taken.snapshots) else [consumer]
    tags = [tag(writer, each) for writer in writers for each in sorted(history.tags(writer))]
    branches = [name(writer) for writer in writers for name in (branch, staging)]
    refs = {name: (at, "tag" if is_tag else "branch") for name, (at, is_tag) in history.refs.items() if name not in {*tags, *branches, MAIN}}
    statements = rollback.iceberg_statements(parts, taken.back, tags, [name for name in branches if name in history.refs])
    others, stays = rollback.others_of(taken, consumer, operations), rollback.refs_that_stay(history, taken, refs)
    files = "the files of these rows stay until expire_snapshots deletes them"
    return Rollback("iceberg", place, batch, tuple(statements), tuple(others), (*stays, files))


def _delta(spark: SparkSession, place: str, consumer: str, batch: int) -> Rollback:
    require(spark)
    table = DeltaTable("--place", place, named="/" not in place)
    if not table.exists(spark):
        raise Refused(f"--place: {place}: there is no such Delta table")
    history = whole_history(spark, table)
    back = rollback.delta_version(history, place, consumer, batch)
    if back is None:
        return Rollback("delta", place, batch)
    others = tuple(rollback.delta_others(history, consumer, back))
    stays = "earlier versions stay readable (VERSION AS OF), and their files stay, until VACUUM deletes them; so do shallow clones of them"
    return Rollback("delta", place, batch, (f"RESTORE TABLE {table.identifier} TO VERSION AS OF {back}",), others, (stays,))


def _parquet(spark: SparkSession, place: str, consumer: str, batch: int) -> Rollback:
    root = place.rstrip("/")
    store = stores.hadoop_store(spark, root, "--place")
    with_manifest, with_files = _batches(store, f"{root}/_sluice/{consumer}"), _batches(store, f"{root}/{consumer}")
    if not with_manifest | with_files:
        raise Refused(rollback.nothing_of(place, consumer))
    manifests = [_removal(BatchFiles(root, consumer, each).manifest, deep=False) for each in sorted(with_manifest) if each >= batch]
    folders = [_removal(BatchFiles(root, consumer, each).folder, deep=True) for each in sorted(with_files) if each >= batch]
    stays = ["readers that list folders see the rows until the files are deleted; earlier versions in a bucket with versioning stay"]
    if redriven := sorted(_batches(store, f"{root}/_sluice/{consumer}{REDRIVE}")):
        stays.append(f"{counted(len(redriven), 'redrive')} of this consumer's dead letters, in {root}/{consumer}{REDRIVE}")
    return Rollback("parquet", place, batch, (*manifests, *folders), stays=tuple(stays) if manifests or folders else ())


def _batches(store: Store, folder: str) -> set[int]:
    """Numbers of batches that have files there: of those that were given up, too, which have no manifest."""
    names = {path.partition("/")[0].removesuffix(".json") for path, _ in store.files(folder)}
    return {int(name) for name in names if name.isdigit()}


def _removal(path: str, *, deep: bool) -> str:
    return " ".join([*_program(path, deep=deep), shlex.quote(_as_its_program_has_it(path))])


def _program(path: str, *, deep: bool) -> Iterator[str]:
    scheme = urlsplit(path).scheme
    if scheme == "s3a":
        yield from ("aws", "s3", "rm", *(["--recursive"] if deep else []))
    elif scheme == "hdfs":
        yield from ("hdfs", "dfs", "-rm", *(["-r"] if deep else []))
    elif scheme in {"", "file"}:
        yield from ("rm", *(["-r"] if deep else []), "--")
    else:
        raise stores.unconditional("--place", path, scheme)


def _as_its_program_has_it(path: str) -> str:
    parts = urlsplit(path)
    if parts.scheme == "s3a":
        return f"s3{path.removeprefix('s3a')}"
    return path.partition(f"{parts.scheme}:")[2].removeprefix("//") if parts.scheme == "file" else path
