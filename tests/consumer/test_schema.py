"""The columns of a batch, exported for those who write pipelines."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

import sluice_consumer
from sluice_consumer.spark.arrow import SCHEMA as ARROW


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_the_text_the_type_and_what_tasks_deliver_are_one_schema(spark: SparkSession, request: pytest.FixtureRequest, kind: str) -> None:
    """As Spark itself reads the text, and as it takes Arrow's columns; whatever the session calls a TIMESTAMP."""
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.timestampType"))
    spark.conf.set("spark.sql.timestampType", kind)
    assert spark.createDataFrame([], sluice_consumer.DDL).schema == sluice_consumer.SCHEMA
    assert spark.createDataFrame(ARROW.empty_table()).schema == sluice_consumer.SCHEMA


def test_the_package_is_imported_without_pyspark() -> None:
    text = "import sys, sluice_consumer; sluice_consumer.DDL; assert 'pyspark' not in sys.modules"
    asked = f"{text}; sluice_consumer.SCHEMA; assert 'pyspark' in sys.modules"
    subprocess.run([sys.executable, "-c", asked], check=True)


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="SCHEME"):
        _ = sluice_consumer.SCHEME
