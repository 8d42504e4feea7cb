"""A Spark for take-overs; makes `takeover`, what these tests share, importable by its own name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "consumer" / "reading"))  # its encoder of aggregates
sys.path.insert(0, str(Path(__file__).parent))

from pyspark import SparkContext
from pyspark.sql import SparkSession
from takeover.consuming import REGION, configuration

from sluice_consumer import spark_conf
from sluice_consumer.config import Stream


@pytest.fixture(scope="session", autouse=True)
def signed_in(credentials: None) -> None:
    """Whatever asks for credentials finds some."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests, with a driver's settings: another test's if it still runs, else one that leaves no JVM behind."""
    if running := SparkSession.getActiveSession():
        yield running
        return
    settings = spark_conf.settings(configuration(Stream("any", REGION), "any", "any"), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # a JVM of a minute: a third less CPU
        session = SparkSession.builder.config(map=dict[str, Any](settings | {"spark.master": "local[2]", "spark.log.level": "OFF"})).getOrCreate()
        yield session
        session.stop()
        _end_the_jvm()


def _end_the_jvm() -> None:
    """The next Spark of this process starts with its own environment."""
    if gateway := SparkContext._gateway:
        gateway.shutdown()
        gateway.proc.stdin.close()  # what PySpark's JVM takes as the end of its parent
        gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None
