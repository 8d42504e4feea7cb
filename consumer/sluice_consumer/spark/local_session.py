"""A local Spark session, for tests and for `dev`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark import conf, spark_home

ANY = Config(StreamConfig("test", "us-east-1"), CheckpointsConfig("test"), PipelineConfig("test:process"), name="test")


def local_session(**settings: str) -> contextlib.AbstractContextManager[SparkSession]:
    """The session that is there; or one of two cores, which is stopped at the end.

    Args:
        settings: of Spark, beside those of a consumer; they have no effect on a session that is there.
    """
    return session_with(conf.settings(ANY, None, "local[2]") | {"spark.log.level": "ERROR"} | settings)


@contextlib.contextmanager
def session_with(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """The session that is there; or one with these settings and no others, which is stopped at the end.

    Workers import what this process can import, as its `sys.path` is now.
    """
    if there := SparkSession.getActiveSession():
        yield there
        return
    paths = os.pathsep.join(path for path in sys.path if path)
    worker = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    with environment(worker | spark_home.lean({**os.environ, **worker})):
        session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables of the environment for a while: the JVM and its workers have those of the moment at which it starts."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
