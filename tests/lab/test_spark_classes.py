"""The archive of Spark's classes from which JVMs of tests start: what it is for, and that it fits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluice_lab import places
from sluice_lab.machine import spark_classes


def test_a_jvm_is_started_from_the_archive_once_it_is_there(tmp_path: Path) -> None:
    assert spark_classes.options(tmp_path) == spark_classes.TESTED
    archive = spark_classes.place(tmp_path)
    archive.parent.mkdir()
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in spark_classes.options(tmp_path).split()


def test_another_spark_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {spark_classes.place(tmp_path)}
    monkeypatch.setattr("pyspark.__version__", "5.0.0")
    found.add(spark_classes.place(tmp_path))
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    found.add(spark_classes.place(tmp_path))
    assert len(found) == 3


def test_the_small_job_has_python_workers_of_this_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PATH may name another Python, which has no PySpark."""
    environments: list[dict[str, str]] = []

    def ran(*command: str, env: dict[str, str]) -> None:
        environments.append(env)
        Path(env["SPARK_SUBMIT_OPTS"].split("ArchiveClassesAtExit=")[1].split()[0]).touch()
        assert command[0] == sys.executable

    monkeypatch.setattr(spark_classes, "run", ran)
    spark_classes.build(tmp_path)
    assert environments[0]["PYSPARK_PYTHON"] == sys.executable
    assert spark_classes.place(tmp_path).exists()


@pytest.mark.spark
def test_the_archive_fits_the_spark_of_the_tests(spark: SparkSession) -> None:
    """Else nothing fails: everything only starts slowly."""
    archive = spark_classes.place(places.work())
    if not archive.exists():
        pytest.skip("not run: the archive is not built; `python -m sluice_lab build` does it")
    context: Any = spark.sparkContext
    assert str(archive) in Path(f"/proc/{context._gateway.proc.pid}/maps").read_text()
