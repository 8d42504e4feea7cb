"""Reads the parquet pipeline's sink, `<path>/<consumerId>/<batch>/part-*.parquet`, in order of delivery."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet

from sluice_lab.scenario.account import Delivered, Record, RecordPosition

COLUMNS = ["data", "shardId", "sequenceNumber", "subSequenceNumber"]


def read(sink: Path) -> list[Delivered]:
    """Every delivery: by batch, then by row in the batch's files. A batch that is not renamed yet does not count."""
    batches = sorted(folder for folder in sink.glob("*/*") if folder.name.isdigit())
    return [delivered for folder in batches for delivered in _batch(folder)]


def _batch(folder: Path) -> Iterator[Delivered]:
    for file in sorted(folder.glob("part-*.parquet")):
        for row in pyarrow.parquet.read_table(file, columns=COLUMNS).to_pylist():
            position = RecordPosition(int(row["sequenceNumber"]), row["subSequenceNumber"])
            yield Delivered(Record(json.loads(row["data"])["n"], row["shardId"], position), int(folder.name))
