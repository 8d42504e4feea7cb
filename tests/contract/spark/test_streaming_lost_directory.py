"""Spark's file sink and a function, both of which skip ids that they know, after the checkpoint directory was lost. Real Spark, emulated services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import page_blocks
import pytest
from conftest_spark import SLOW_RECORDS as RECORDS
from conftest_spark import configuration
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.config import Config, StreamConfig
from sluice_consumer.process import wiring
from sluice_consumer.streaming import stream_source as streaming
from sluice_consumer.streaming.stream_source import Source

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # each query that fails leaves a lease to wait out
NUMBER = "cast(decode(data, 'UTF-8') as bigint)"


@pytest.fixture
def config(slow_stream: StreamConfig) -> Config:
    """A consumer with a table of its own, whose second batch holds number 24."""
    return replace(configuration(slow_stream, "unused:unused", max_records_per_shard=8), lease_duration_seconds=10.0)


def to_files(source: Source, checkpoint: Path, output: Path, *, until: int = RECORDS) -> None:
    rows = source.load().selectExpr(f"if({NUMBER} < {until}, {NUMBER}, raise_error('it dies')) AS number")
    writer = rows.writeStream.format("parquet").option("path", str(output)).option("checkpointLocation", str(checkpoint))
    source.start(writer.trigger(availableNow=True)).awaitTermination()


def committed(config: Config) -> int:
    row = wiring.store(config).consumer()
    assert row is not None
    return row.committed


def test_a_batch_that_the_file_sink_skips_in_a_new_directory_is_refused_until_the_output_is_new_too(
    spark: SparkSession, config: Config, tmp_path: Path
) -> None:
    """Its process died before the sink had it. The sink's log has the id 0, and skips it without a job.

    Of the two tasks one raises, and ends the other one, which may not have said yet what it reads.
    """
    with pytest.raises(PySparkException, match="it dies"), streaming.source(spark, config) as source:
        to_files(source, tmp_path / "a", tmp_path / "out", until=24)
    assert committed(config) == 1
    with (
        pytest.raises(PySparkException, match=r"batch 2 was not committed: (8|16) of its records.*new output path"),
        streaming.source(spark, config) as source,
    ):
        to_files(source, tmp_path / "b", tmp_path / "out")
    assert committed(config) == 1
    with streaming.source(spark, config) as source:
        to_files(source, tmp_path / "c", tmp_path / "new")
    rows = [row.number for name in ("out", "new") for row in spark.read.parquet(str(tmp_path / name)).collect()]
    assert Counter(rows) == Counter(range(RECORDS))


def test_the_function_of_the_page_goes_on_in_a_new_directory(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    sink: dict[tuple[str, int], list[int]] = {}
    (text,) = [block.text for block in page_blocks.of("docs/structured-streaming.md") if "source.stored()" in block.text]

    def keep(source: Source, *, dies: bool) -> Callable[[DataFrame, int], None]:
        def store(batch: DataFrame, *key: Any) -> None:
            sink[key] = [row.number for row in batch.selectExpr(f"{NUMBER} AS number").collect()]
            if dies and source.batch == 2:
                raise RuntimeError("it dies")

        names: dict[str, Any] = {"source": source, "store": store, "known": lambda *key: key in sink}
        exec(text, names)  # noqa: S102 - the page is ours
        function: Callable[[DataFrame, int], None] = names["write"]
        return function

    with pytest.raises(PySparkException, match="it dies"), streaming.source(spark, config) as source:
        run(source, tmp_path / "a", keep(source, dies=True))
    assert committed(config) == 1
    with streaming.source(spark, config) as source:
        run(source, tmp_path / "b", keep(source, dies=False))
    assert Counter(n for batch in sink.values() for n in batch) == Counter(range(RECORDS))
    assert committed(config) >= 3


def run(source: Source, checkpoint: Path, function: Callable[[DataFrame, int], None]) -> None:
    writer = source.load().writeStream.foreachBatch(function).option("checkpointLocation", str(checkpoint))
    source.start(writer.trigger(availableNow=True)).awaitTermination()
