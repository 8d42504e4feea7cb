from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluice_lab import places
from sluice_lab.machine import spark_classes


@pytest.mark.spark
def test_the_archive_fits_the_spark_of_the_tests(spark: SparkSession) -> None:
    """Else nothing fails: everything only starts slowly."""
    archive = spark_classes.place(places.work())
    if not archive.exists():
        pytest.skip("not run: the archive is not built; `python -m sluice_lab build` does it")
    context: Any = spark.sparkContext
    assert str(archive) in Path(f"/proc/{context._gateway.proc.pid}/maps").read_text()
