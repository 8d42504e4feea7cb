"""Reads the sink `sluice_consumer.sinks:parquet` on a disk, in order of delivery: the files that manifests name."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet

from sluice_lab.scenario.account import Delivered, Record, RecordPosition

COLUMNS = ["data", "shardId", "sequenceNumber", "subSequenceNumber"]


def read(sink: Path) -> list[Delivered]:
    """Every delivery: by batch, then by row in the batch's files. A file that no manifest names does not count."""
    return [delivered for manifest in sorted(sink.glob("_sluice/*/*.json")) for delivered in _batch(sink, manifest)]


def _batch(sink: Path, manifest: Path) -> Iterator[Delivered]:
    for file in json.loads(manifest.read_text())["files"]:
        for row in pyarrow.parquet.read_table(sink / file["path"], columns=COLUMNS).to_pylist():
            position = RecordPosition(int(row["sequenceNumber"]), row["subSequenceNumber"])
            yield Delivered(Record(json.loads(row["data"])["n"], row["shardId"], position), int(manifest.stem))
