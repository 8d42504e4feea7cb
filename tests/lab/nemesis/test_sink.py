"""The pipeline of the nemesis, with Spark in this process: what is stored, and what is seen."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.spark.arrow import SCHEMA
from sluice_lab.nemesis import history, sink
from sluice_lab.scenario import delivered
from sluice_lab.scenario.account import RecordPosition

INFO = BatchInfo("id", 7, replay=False, stream="s", shards=("a", "b"))


def batch(*places: tuple[str, int]) -> pa.RecordBatch:
    rows = [
        {"shardId": shard, "sequenceNumber": str(number), "subSequenceNumber": 0, "data": json.dumps({"n": number}).encode()}
        for shard, number in places
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def test_pieces_hold_every_record_once_in_order() -> None:
    found = batch(*(("a", n) for n in range(10)), ("b", 99), *(("a", n) for n in (10, 11)))
    cut = [(shard, [int(number) for number, _ in sink.positions(piece)]) for shard, piece in sink.pieces(found)]
    assert cut == [("a", [0, 1, 2]), ("a", [3, 4, 5]), ("a", [6, 7, 8]), ("a", [9]), ("b", [99]), ("a", [10]), ("a", [11])]
    assert list(sink.pieces(batch())) == []


@pytest.mark.spark
def test_a_batch_is_seen_and_stored_and_stored_only_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("seen", "stored"):
        (tmp_path / name).mkdir()
    (tmp_path / sink.PACE).write_text("0")
    monkeypatch.setenv("SLUICE_POD_NAME", "n-driver-1")
    frame = spark.createDataFrame(pa.Table.from_batches([batch(("a", 1), ("a", 2), ("b", 1))])).coalesce(1)
    info = replace(INFO, args={"home": str(tmp_path)})
    for _ in range(2):
        sink.process(frame, info)
    found = history.parse(line for file in (tmp_path / "seen").iterdir() for line in file.read_text().splitlines())
    assert [(invocation.epoch, invocation.batch) for invocation in found.invocations] == [("n-driver-1", 7)] * 2
    assert {read.shard: read.positions for read in found.reads} == {"a": (RecordPosition(1, 0), RecordPosition(2, 0)), "b": (RecordPosition(1, 0),)}
    assert [each.record.n for each in delivered.read(tmp_path / "stored")] == [1, 2, 1]
