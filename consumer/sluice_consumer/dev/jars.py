"""Iceberg and Delta for a Spark that pip installed, in the versions of the consumer image. Spark fetches them from Maven Central, once. Pure.

A test compares the coordinates with the image's (consumer/image/jars/pom.xml). S3A is not among them: there is no S3 in `dev`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.class_path import ClassPath

PACKAGES = "spark.jars.packages"
IMAGE_LINE = "4.1"


@dataclass(frozen=True)
class TableFormat:
    """A format of tables whose classes PySpark does not have.

    Attributes:
        asked: finds it in settings of Spark, and in an entrypoint.
        probe: one of its classes.
        packages: Maven coordinates by line of Spark.
    """

    name: str
    asked: re.Pattern[str]
    probe: str
    packages: Mapping[str, str]


FORMATS = (
    TableFormat(
        "Iceberg",
        re.compile(r"org\.apache\.iceberg\.|sluice_consumer\.sinks:iceberg"),
        "org.apache.iceberg.spark.SparkCatalog",
        {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"},
    ),
    TableFormat(
        "Delta",
        re.compile(r"io\.delta\.|org\.apache\.spark\.sql\.delta\.|sluice_consumer\.sinks:delta"),
        "org.apache.spark.sql.delta.sources.DeltaDataSource",
        {"4.1": "io.delta:delta-spark_4.1_2.13:4.4.0", "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"},
    ),
)


def wanted(entrypoint: str, settings: Mapping[str, str], here: ClassPath, version: str) -> dict[str, str]:
    """Names and coordinates of the formats that a pipeline asks for and this Spark does not have.

    Args:
        entrypoint: of the pipeline.
        settings: of the session.
        here: the class path of its driver. If something else adds to it, nothing is fetched.
        version: of PySpark, as `4.1.4`.

    Raises:
        Refused: the image has such a format on another line of Spark only.
    """
    words = "\n".join([entrypoint, *settings.values()])
    missing = [each for each in FORMATS if each.asked.search(words) and here.has(each.probe) is False]
    line = ".".join(version.split(".")[:2])
    for each in missing:
        if line not in each.packages:
            raise Refused(
                f"sparkConf: asks for {each.name}, which has no release for Spark {version}; "
                f"install the image's line of Spark: pip install 'pyspark=={IMAGE_LINE}.*'"
            )
    return {each.name: each.packages[line] for each in missing}
