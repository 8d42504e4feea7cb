"""The session that a driver starts for a sink."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from conftest_process import Consuming
from conftest_sinks import has_class
from pyspark.sql import SparkSession

from sluice_consumer.sinks.delta.table import PROVIDER

SUBMIT = "PYSPARK_SUBMIT_ARGS"
pytestmark = [pytest.mark.spark, pytest.mark.lake]


def test_the_delta_sink_needs_no_setting_of_deltas(
    spark: SparkSession, consuming: Consuming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sparkConf` is empty, and so is what spark-submit is told but for the jars: the driver sets both settings."""
    if not has_class(spark, PROVIDER):
        pytest.skip("not run: this Spark has no Delta")
    monkeypatch.setenv(SUBMIT, re.sub(r"--conf spark\.sql\.\S+", "", os.environ[SUBMIT]))
    args = {"path": f"file://{tmp_path}/orders", "create": True, "decode": "json", "schema": "id BIGINT, name STRING"}
    consumer = consuming(range(6), "sluice_consumer.sinks:delta", args, {})
    ended = consumer.run()
    assert ended.code == 0, (tmp_path / "stderr").read_text()[-2000:]
    assert sorted(row.id for row in spark.read.format("delta").load(str(args["path"])).collect()) == list(range(6))
