"""What lies in the sink: the parquet pipeline's `<path>/<consumerId>/<batch>/part-*.parquet`, in order of delivery."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet

from sluice_lab.scenario.ledger import Delivered, Place, Record

COLUMNS = ["data", "shardId", "sequenceNumber", "subSequenceNumber"]


def read(sink: Path) -> list[Delivered]:
    """Everything delivered: batch by batch, and as the rows lie in a batch's files. A batch not yet renamed is none."""
    batches = sorted(folder for folder in sink.glob("*/*") if folder.name.isdigit())
    return [delivered for folder in batches for delivered in _batch(folder)]


def _batch(folder: Path) -> Iterator[Delivered]:
    for file in sorted(folder.glob("part-*.parquet")):
        for row in pyarrow.parquet.read_table(file, columns=COLUMNS).to_pylist():
            place = Place(int(row["sequenceNumber"]), row["subSequenceNumber"])
            yield Delivered(Record(json.loads(row["data"])["n"], row["shardId"], place), int(folder.name))
