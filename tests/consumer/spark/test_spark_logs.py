"""Which configuration of log4j a driver's JVM starts with. What it then prints: tests/contract/spark/test_last_words.py."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from pyspark.logger import PySparkLogger

from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark import conf, spark_logs

CONFIG = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), name="orders")
LOCAL, CLUSTER = conf.settings(CONFIG, None), conf.settings(CONFIG, None, "k8s://api")
FILE = f"-Dlog4j2.configurationFile={spark_logs.OWN.as_uri()}"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "conf").mkdir()
    return {"SPARK_HOME": str(tmp_path)}


def test_a_driver_logs_as_sluice_wants_it_and_keeps_its_other_options(home: dict[str, str]) -> None:
    """The level comes from the file: Spark prints a line for a setting."""
    told = spark_logs.folded(CLUSTER, home)
    assert told[spark_logs.DRIVER] == f"{conf.JVM} {FILE} -Dsluice.log.level=warn"
    assert told[spark_logs.EXECUTOR] == CLUSTER[spark_logs.EXECUTOR]
    assert spark_logs.LEVEL not in told
    assert spark_logs.folded(CLUSTER | {spark_logs.LEVEL: "INFO"}, home)[spark_logs.LEVEL] == "INFO"


def test_a_driver_that_is_its_own_executor_does_not_say_twice_what_a_task_raised(home: dict[str, str]) -> None:
    """Elsewhere an executor's log is the executor's."""
    assert "-Dsluice.executor.level=off" in spark_logs.folded(LOCAL, home)[spark_logs.DRIVER]


@pytest.mark.parametrize("key", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_a_configuration_of_log4j_in_the_users_settings_wins(key: str, home: dict[str, str]) -> None:
    for option in ("-Dlog4j2.configurationFile=file:/mine.xml", "-Dlog4j.configurationFile=file:/mine.xml"):
        assert spark_logs.folded(LOCAL | {key: option}, home) == LOCAL | {key: option}
    assert spark_logs.folded(LOCAL, home | {"JDK_JAVA_OPTIONS": "-Dlog4j2.configurationFile=file:/mine.xml"}) == LOCAL


@pytest.mark.parametrize("name", ["log4j2.properties", "log4j2.xml", "log4j2-test.yaml"])
def test_a_configuration_of_log4j_in_sparks_folder_wins(name: str, home: dict[str, str], tmp_path: Path) -> None:
    """An image that was built on Sluice's brings it there."""
    (tmp_path / "conf" / name).write_text("mine")
    assert spark_logs.folded(LOCAL, home) == LOCAL
    assert spark_logs.folded(LOCAL, {"SPARK_CONF_DIR": str(tmp_path / "conf")}) == LOCAL


def test_a_template_and_a_copy_of_sluices_own_file_are_nobodys_configuration(home: dict[str, str], tmp_path: Path) -> None:
    """Spark ships the one, the image the other."""
    (tmp_path / "conf" / "log4j2.properties.template").write_text("Spark's")
    shutil.copy(spark_logs.OWN, tmp_path / "conf")
    assert FILE in spark_logs.folded(LOCAL, home)[spark_logs.DRIVER]


def test_whoever_debugs_sees_all_that_spark_says(home: dict[str, str]) -> None:
    told = spark_logs.folded(CLUSTER, home | {"SLUICE_LOG_LEVEL": "debug"})
    for key in (spark_logs.DRIVER, spark_logs.EXECUTOR):
        assert told[key].endswith(f"-Dlog4j2.configurationFile={spark_logs.SPARKS}")
    assert told[spark_logs.LEVEL] == "WARN"


def test_a_query_that_spark_refuses_is_not_logged_beside_the_exception_that_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark writes it with Java's stack in one line of 8 KB."""
    monkeypatch.delenv("SLUICE_LOG_LEVEL", raising=False)
    spark_logs.fold_queries()
    assert not any(PySparkLogger.getLogger(name).isEnabledFor(logging.CRITICAL) for name in spark_logs.QUERIES)
    assert PySparkLogger.getLogger("of the user's").isEnabledFor(logging.ERROR)


def test_the_image_has_the_file_where_executors_find_it() -> None:
    """Theirs is a JVM that the driver's settings only reach with options."""
    dockerfile = (Path(__file__).parents[3] / "Dockerfile").read_text()
    (line,) = (line for line in dockerfile.splitlines() if line.startswith("COPY consumer/image/conf/"))
    assert line.split()[2:] == ["consumer/sluice_consumer/spark/log4j2.properties", "/opt/sluice/spark/conf/"]
