"""The jars that `dev` lets Spark fetch are those of the image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.dev import jars
from sluice_consumer.sinks.class_path import ClassPath

ROOT = Path(__file__).parents[3]
LINES = ("4.1", "4.2", "4.3")
NOTHING = ClassPath(())
CATALOG = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}
ICEBERG, DELTA = "sluice_consumer.sinks:iceberg", "sluice_consumer.sinks:delta"


def of_image(line: str) -> set[str]:
    rows = (ROOT / "constraints" / "hashes" / f"jars-{line}.txt").read_text().splitlines()
    paths = [Path(row.split("  ", 1)[1]) for row in rows if not row.startswith("#")]
    return {f"{str(path.parents[2]).replace('/', '.')}:{path.parts[-3]}:{path.parts[-2]}" for path in paths}


@pytest.mark.parametrize("line", LINES)
def test_dev_has_the_formats_of_the_image_in_its_versions(line: str) -> None:
    wanted = {each.packages[line] for each in jars.FORMATS if line in each.packages}
    assert wanted == {each for each in of_image(line) if re.search(r":(iceberg-spark-runtime|delta-spark)_?", each)}


def test_the_line_that_is_advised_is_the_images() -> None:
    assert f"ARG SPARK_LINE={jars.IMAGE_LINE}\n" in (ROOT / "Dockerfile").read_text()
    assert all(jars.IMAGE_LINE in each.packages for each in jars.FORMATS)


@pytest.mark.parametrize(
    ("entrypoint", "settings", "wanted"),
    [
        ("orders:process", {}, []),
        ("orders:process", {"spark.sql.shuffle.partitions": "4"}, []),
        (ICEBERG, {}, ["Iceberg"]),
        ("orders:process", CATALOG, ["Iceberg"]),
        (DELTA, {}, ["Delta"]),
        ("orders:process", CATALOG | {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}, ["Iceberg", "Delta"]),
    ],
)
def test_what_a_pipeline_asks_for_is_fetched_and_nothing_else(entrypoint: str, settings: dict[str, str], wanted: list[str]) -> None:
    assert list(jars.wanted(entrypoint, settings, NOTHING, "4.1.4")) == wanted


def test_what_is_there_or_may_be_is_not_fetched() -> None:
    assert jars.wanted(ICEBERG, {}, ClassPath((), complete=False), "4.1.4") == {}


def test_a_line_of_spark_without_the_format_is_refused_with_the_line_to_install() -> None:
    """Spark would only say that there is no such class."""
    with pytest.raises(Refused, match=r"asks for Iceberg, which has no release for Spark 4.3.0; .* pip install 'pyspark==4\.1\.\*'"):
        jars.wanted(ICEBERG, {}, NOTHING, "4.3.0")
