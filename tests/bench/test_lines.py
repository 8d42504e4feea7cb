"""What Python costs a batch on the line of Spark that the image has, beside the newest: a cost that comes with each task or plan is seen here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import tip_lines

from sluice_lab import spark_lines

pytestmark = [pytest.mark.slow, pytest.mark.spark]
SHORT = tip_lines.Length(warm_up=10, batches=40)  # Python needs no compiler's warm-up
SHARDS = 4
ROOM = 1.6  # of a tenth of a second in all, by a clock of ten milliseconds, beside other tests
KINDS = ("workers", "driver")


def archives(line: str) -> dict[str, str]:
    """The environment of a session that somebody else made: Spark's home is the installed package, with its archives."""
    found = next((spark_lines.python(line).parents[1] / "lib").glob("python*/site-packages/pyspark"))
    assert list(found.glob("python/lib/*.zip"))
    return {"SPARK_HOME": str(found)}


def test_python_costs_a_batch_on_the_images_line_what_it_costs_on_the_newest(credentials: None, dynamodb_endpoint: str) -> None:  # noqa: ARG001 - set for all
    """With Spark 4.1 and an archive on the path of its workers, which nothing lets go of, it is many times as much."""
    image, newest = spark_lines.image_line(), max([spark_lines.default(), *spark_lines.others()])
    measure = tip_lines.batch(newest, SHARDS, dynamodb_endpoint, SHORT)
    shipped = tip_lines.batch(image, SHARDS, dynamodb_endpoint, SHORT)
    of_others = tip_lines.batch(image, SHARDS, dynamodb_endpoint, SHORT, archives(image))
    for kind in KINDS:
        assert shipped[kind] / measure[kind] < ROOM
        assert of_others[kind] / measure[kind] < ROOM
