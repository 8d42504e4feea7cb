"""How Spark logs in a driver: without Java's stacks (`log4j2.properties`), unless somebody debugs or has a configuration of log4j of their own."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.logger import PySparkLogger

from sluice_consumer import logs
from sluice_consumer.spark import conf

OWN = Path(__file__).with_name("log4j2.properties")
SPARKS = "org/apache/spark/log4j2-defaults.properties"  # in Spark's jars
DRIVER, EXECUTOR = "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"
OPTIONS = (DRIVER, "spark.driver.extraJavaOptions")
ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
LEVEL = "spark.log.level"
QUERIES = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def folded(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of a session, with what makes its driver log so.

    Executors of the image find the same file in Spark's folder `conf`. They log at INFO as before.
    """
    if _has_own(settings, environment):
        return dict(settings)
    if logs.debugging(environment):
        return _added(settings, f"-Dlog4j2.configurationFile={SPARKS}", DRIVER, EXECUTOR)
    executor = " -Dsluice.executor.level=off" if conf.is_local(settings["spark.master"]) else ""
    given = {key: value for key, value in settings.items() if (key, value) != (LEVEL, conf.LOG_LEVEL)}  # the file says it, without a banner
    return _added(given, f"-Dlog4j2.configurationFile={OWN.as_uri()} -Dsluice.log.level={conf.LOG_LEVEL.lower()}{executor}", DRIVER)


def fold_queries() -> None:
    """PySpark logs a query that it refuses with all of Java's stack, in one line, and raises the same."""
    if not logs.debugging():
        for name in QUERIES:
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _added(settings: Mapping[str, str], option: str, *names: str) -> dict[str, str]:
    return {**settings, **{name: f"{settings.get(name, '')} {option}".strip() for name in names}}


def _has_own(settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether options of the user's, or Spark's folder `conf` have a configuration of log4j that is not a copy of ours."""
    words = [*(str(settings.get(name, "")) for name in OPTIONS), *(environment.get(name, "") for name in ENVIRONMENT)]
    if any("log4j" in text for text in words):
        return True
    home = environment.get("SPARK_HOME") or Path(pyspark.__file__).parent
    folder = Path(environment.get("SPARK_CONF_DIR") or Path(home, "conf"))
    files = [file for file in folder.glob("log4j2*") if file.suffix != ".template" and file.is_file()]
    return any(file.read_bytes() != OWN.read_bytes() for file in files)
