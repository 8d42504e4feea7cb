"""What the driver's settings make of a JVM that starts with them. In a process of its own: this one's JVM may have started with others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest_spark import configuration

from sluice_consumer import spark_conf
from sluice_consumer.config import Stream

pytestmark = pytest.mark.spark

LOOK = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.config(map=json.loads(sys.argv[1])).getOrCreate()
memory, vector = spark._jvm.org.apache.arrow.memory, spark._jvm.org.apache.arrow.vector
print("FOUND", memory.BoundsChecking.BOUNDS_CHECKING_ENABLED, vector.NullCheckingForGet.NULL_CHECKING_ENABLED)
spark.stop()
"""


def test_arrow_reads_without_looking_at_bounds_and_still_looks_for_null() -> None:
    """The property is read once, by a JVM that starts: a session's setting would come too late."""
    settings = spark_conf.settings(configuration(Stream("s", "us-east-1"), "a:b"), None)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "consumer")}
    said = subprocess.run([sys.executable, "-c", LOOK, json.dumps(settings)], env=environment, check=True, capture_output=True, text=True).stdout
    assert "FOUND False True" in said
