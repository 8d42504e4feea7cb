"""The pytest plugin, in a pytest of its own, as somebody who writes a pipeline runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENTED = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
CARELESS = """
def process(batch, info):
    batch.write.mode("append").parquet(info.args["path"])
"""
TESTS = """
import careless
from test_my_pipeline import held


def test_more_than_once(sluice_replay, tmp_path):
    sluice_replay(careless.process, ["a", "b"], sink=lambda n: {"path": f"{tmp_path}/{n}"}, held=held)


def test_workers_import_what_the_tests_import(sluice_spark):
    names = sluice_spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("careless").process.__name__)
    assert names.collect() == ["process"]
"""


@pytest.mark.slow
@pytest.mark.spark
def test_the_documented_tests_pass_and_a_careless_pipeline_fails(tmp_path: Path) -> None:
    for name, text in [*DOCUMENTED, ("careless.py", CARELESS), ("test_careless.py", TESTS)]:
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "consumer")}
    ran = subprocess.run(pytest_of(tmp_path), cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert [name for name, _ in DOCUMENTED] == ["my_pipeline.py", "test_my_pipeline.py"]
    assert "1 failed, 3 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "not each record once after 2 of 3 kills and 1 shortened batch, each followed by a replay" in ran.stdout
    assert "killed after DataFrameWriter.parquet at careless.py:3: 2 too many (b'a', b'b')" in ran.stdout


def pytest_of(folder: Path) -> list[str]:
    """Its own, with the plugin once, whether or not the entry point of this environment is new enough to name it."""
    return [sys.executable, "-m", "pytest", "-p", "no:sluice", "-p", "sluice_consumer.testing.plugin", "-p", "no:cacheprovider", "-q", str(folder)]


def test_other_runs_of_pytest_do_not_wait_for_the_plugin() -> None:
    asked = "import sys, sluice_consumer.testing.plugin; print(sorted({'pyspark', 'pyarrow', 'numpy', 'pandas', 'py4j', 'boto3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout == "[]\n"
