"""The Spark session of all tests: a JVM is started once, when the first test asks for one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark import conf, spark_home

REGION = "us-east-1"
IMPORTED = [Path(__file__).parent / "contract" / folder for folder in ("spark", "sinks")]  # functions that are sent to workers by name
ENDED_EARLY = ExitStack()
"""Ends the session before the first test of a cluster, which needs the memory."""
ANY = Config(StreamConfig("any", REGION), CheckpointsConfig("any"), PipelineConfig("any:process"), name="any")


@pytest.fixture(scope="session")
def spark(credentials: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:  # noqa: ARG001 - set for all
    """A session in local mode with the settings of a driver. Its workers have the environment of this moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join([*map(str, IMPORTED), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        for name, value in spark_home.lean(os.environ).items():
            patch.setenv(name, value)
        ours = {"spark.master": "local[2]", "spark.log.level": "OFF", "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
        session = SparkSession.builder.config(map=dict[str, Any](conf.settings(ANY, None) | ours)).getOrCreate()
    ENDED_EARLY.callback(_end, session)
    yield session
    ENDED_EARLY.close()


def _end(session: SparkSession) -> None:
    """The JVM too: its memory is free again, and a Spark that is started later has its own environment."""
    session.stop()
    if gateway := SparkContext._gateway:
        gateway.shutdown()
        gateway.proc.stdin.close()  # what PySpark's JVM takes as the end of its parent
        gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None
