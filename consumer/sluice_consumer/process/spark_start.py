"""Starts Spark in two steps: its JVM beside the supervisor's checks, its session once Spark may start (docs/performance.md, "A driver's start").

A JVM without a session asks no cluster for anything, and knows no table and no stream. It may fetch the jars and files that `sparkConf` names.
It ends with the driver's process group, or when the driver's end of its pipe closes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from sluice_consumer import logs
from sluice_consumer.config import Config, configuration
from sluice_consumer.process import configmap_code, pod
from sluice_consumer.spark import conf, java, spark_home, spark_logs

SINKS = "sluice_consumer.sinks"


def settings(config: Config, here: conf.PodAddress | None, master: str | None) -> dict[str, str]:
    """Every setting of the session. `here`: the pod, if its executors are to be pods.

    Raises:
        Refused: an option of the sink is wrong.
    """
    asked = dict[str, str]()
    if config.pipeline.entrypoint.partition(":")[0] == SINKS:
        from sluice_consumer import sinks  # noqa: PLC0415 - 0.14 s of CPU, for which no other JVM waits

        asked = sinks.settings(config.pipeline.entrypoint, config.pipeline.args)
    return spark_logs.folded(conf.settings(config, here, master, asked))


def session(config: Config, master: str | None) -> SparkSession:
    """Starts Spark in one step, in no pod: it asks no cluster for executors.

    Raises:
        Refused: there is no Java for it.
    """
    java.check(os.environ)
    return session_of(settings(config, None, master))


def session_of(asked: Mapping[str, str]) -> SparkSession:
    """Starts Spark in one step, with these settings."""
    _prepare()
    return _session(asked)


def _prepare() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.update(spark_home.lean(os.environ))


def _session(asked: Mapping[str, str]) -> SparkSession:
    spark_logs.fold_queries()
    logs.say(f"starting Spark on {asked['spark.master']}")
    spark = SparkSession.builder.config(map=dict[str, Any](asked)).getOrCreate()
    for module in configmap_code.modules(os.environ):
        spark.sparkContext.addPyFile(str(module))
    return spark


class SparkStart:
    """A start of Spark whose JVM has begun to boot, in a thread.

    The thread imports nothing: two threads that import parts of PySpark at the same time may each find the other's half.
    """

    def __init__(self, path: Path, master: str | None) -> None:
        """`path`: of the configuration. With a wrong one no JVM is started; the supervisor's checks refuse it."""
        self._master = master
        self._failed: Exception | None = None
        try:
            asked = settings(configuration(path), pod.from_environment(), master)
        except Exception as error:  # noqa: BLE001 - `session` raises it, too
            logs.log.debug("no JVM is started ahead: %s", error)
            asked = {}
        self._thread = threading.Thread(target=self._boot, args=(asked,), name="jvm", daemon=True)
        self._thread.start()

    def session(self, config: Config, environment: Mapping[str, str]) -> SparkSession:
        """Starts Spark, once its JVM answers; in a pod, executors come while the driver continues. Raises what kept either from starting.

        Args:
            config: the driver's.
            environment: of Python workers, beside the JVM's: what the checks found came after the JVM had begun.
        """
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        asked = settings(config, pod.from_environment(), self._master)
        return _session(asked | {f"spark.executorEnv.{name}": value for name, value in environment.items()})

    def _boot(self, asked: Mapping[str, str]) -> None:
        _prepare()
        if not asked:
            return
        try:
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(asked.items())))  # noqa: SLF001 - a session finds it there
        except Exception as error:  # noqa: BLE001 - raised where the JVM is waited for
            self._failed = error
