"""The pytest plugin, in a pytest of its own, as somebody who writes a pipeline runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONSUMER = Path(__file__).parents[3] / "consumer"
PIPELINE = """
def process(batch, info):
    batch.write.mode("overwrite").parquet(f"{info.args['path']}/{info.batch}")


def careless(batch, info):
    batch.write.mode("append").parquet(info.args["path"])
"""
TESTS = """
import pyarrow.parquet as pq
from my_pipeline import careless, process
from sluice_consumer.testing import info


def held(args):
    return pq.read_table(args["path"])["data"].to_pylist()


def test_it_writes(sluice_batch, tmp_path):
    process(sluice_batch([{"id": 1}, "two"]), info(path=str(tmp_path)))
    assert held({"path": tmp_path / "1"}) == [b'{"id": 1}', b"two"]


def test_once(sluice_replay, tmp_path):
    verdict = sluice_replay(process, ["a", "b"], sink=lambda n: {"path": f"{tmp_path}/{n}"}, held=held)
    assert len(verdict.points) == 3


def test_more_than_once(sluice_replay, tmp_path):
    sluice_replay(careless, ["a", "b"], sink=lambda n: {"path": f"{tmp_path}/{n}"}, held=held)


def test_workers_import_what_the_tests_import(sluice_spark):
    import my_pipeline

    names = sluice_spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("my_pipeline").process.__name__)
    assert names.collect() == [my_pipeline.process.__name__]
"""


@pytest.mark.spark
def test_the_fixtures_of_the_plugin_pass_a_right_pipeline_and_fail_a_careless_one(tmp_path: Path) -> None:
    """The failure says where it was killed, and what is too many."""
    (tmp_path / "my_pipeline.py").write_text(PIPELINE)
    (tmp_path / "test_my_pipeline.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": str(CONSUMER)}
    ran = subprocess.run(pytest_of(tmp_path), cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "1 failed" in ran.stdout
    assert "not each record once after 2 of 3 kills, each followed by a replay" in ran.stdout
    assert "killed after DataFrameWriter.parquet at my_pipeline.py:7: 2 too many (b'a', b'b')" in ran.stdout


def pytest_of(folder: Path) -> list[str]:
    """Its own, with the plugin once, whether or not the entry point of this environment is new enough to name it."""
    return [sys.executable, "-m", "pytest", "-p", "no:sluice", "-p", "sluice_consumer.testing.plugin", "-p", "no:cacheprovider", "-q", str(folder)]


def test_other_runs_of_pytest_do_not_wait_for_the_plugin() -> None:
    """It imports neither Spark nor Arrow, nor anything else of a consumer."""
    asked = "import sys, sluice_consumer.testing.plugin; print(sorted({'pyspark', 'pyarrow', 'numpy', 'pandas', 'py4j', 'boto3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout == "[]\n"
