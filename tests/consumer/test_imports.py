"""What processes import that a driver's start waits for: each library costs a tenth of a second or more, in each of them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "pandas", "pyarrow", "pyspark", "rich", "boto3", "botocore", "urllib3", "kubernetes"}
OF_PLANNING = "pyspark.sql.worker.plan_data_source_read, pyspark.sql.worker.create_data_source"


def imported(modules: str) -> set[str]:
    look = f"import sys, {modules}; print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "consumer")}
    said = subprocess.run([sys.executable, "-c", look], env=environment, check=True, capture_output=True, text=True).stdout
    return set(said.split())


def test_a_supervisor_imports_neither_spark_nor_what_reads_records() -> None:
    assert imported("sluice_consumer.__main__") & HEAVY <= {"boto3", "botocore", "urllib3"}


@pytest.mark.spark
def test_a_worker_that_plans_a_batch_imports_no_more_than_pysparks_own() -> None:
    """It says which shards go to which task; the tasks read them. Two such workers start one after the other: 33 modules, 25 ms in each."""
    more = imported(f"{OF_PLANNING}, sluice_consumer.spark.data_source") - imported(OF_PLANNING)
    assert not more & HEAVY
    assert len(more) <= 35


@pytest.mark.parametrize("module", ["sluice_consumer", "sluice_consumer.sinks", "sluice_consumer.testing"])
def test_a_person_completes_the_public_names_alone(module: str) -> None:
    found = importlib.import_module(module)
    assert dir(found) == sorted(found.__all__)
