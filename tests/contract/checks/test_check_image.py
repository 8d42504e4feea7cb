"""The jars of the consumer image, as Maven resolves them for its default line of Spark."""

from __future__ import annotations

import pytest

from sluice_consumer.sinks import needs
from sluice_consumer.sinks.class_path import ClassPath
from sluice_consumer.sinks.delta.table import PROVIDER
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS
from sluice_lab.machine import spark_jars

DEFAULT_LINE = "4.1"


@pytest.mark.lake
def test_the_image_has_the_classes_that_the_built_in_sinks_are_checked_for() -> None:
    """Else a check would refuse a consumer that works."""
    image = ClassPath(tuple(spark_jars.fetched(DEFAULT_LINE)))
    assert all(image.has(name) for name in (CATALOG_CLASS, PROVIDER, needs.FILE_SYSTEMS["s3a"]))
    assert image.has(needs.FILE_SYSTEMS["gs"]) is False
