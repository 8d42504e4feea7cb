"""What an example needs around it: emulated Kinesis and DynamoDB, an S3 server with the bucket `lake`, and Spark as the image has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places, spark_lines
from sluice_lab.aws import emulators
from sluice_lab.aws.emulators import S3_ACCESS_KEY, S3_SECRET_KEY
from sluice_lab.lake.storage import REGION, Storage
from sluice_lab.machine import spark_classes
from sluice_lab.scenario import environment
from sluice_lab.scenario.environment import Aws

BUCKET = "lake"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": S3_ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": S3_SECRET_KEY}


@dataclass(frozen=True)
class ExampleSurroundings:
    """Emulated AWS, and an interpreter with Spark.

    Attributes:
        aws: Kinesis and DynamoDB.
        storage: the S3 server; its bucket is `lake`, as in the manifests.
        python: interpreter with the image's line of Spark.
        jars: the jars that the image adds.
    """

    aws: Aws
    storage: Storage
    python: Path
    jars: tuple[Path, ...]

    def spark_settings(self) -> dict[str, str]:
        """Where S3 is, for Spark. Credentials are in the environment."""
        names = {"endpoint": self.storage.endpoint, "endpoint.region": REGION, "path.style.access": "true"}
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in names.items()}

    def environment(self) -> dict[str, str]:
        """Of a program with Spark: the image's settings and jars, the repository's packages, and a JVM that lives for seconds."""
        paths = [str(places.REPO / "consumer"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **CREDENTIALS,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, self.jars))} pyspark-shell",
            "SPARK_CONF_DIR": str(places.REPO / "consumer" / "image" / "conf"),
            "JAVA_TOOL_OPTIONS": spark_classes.TESTED,
        }


@contextmanager
def surroundings() -> Iterator[ExampleSurroundings]:
    """Run emulated AWS while the block lasts.

    Raises:
        LabError: an emulator, the jars or the line of Spark cannot be had; the message says what to install.
    """
    work, line = places.work(), spark_lines.image_line()
    python, jars = spark_lines.python(line), tuple(spark_lines.jars(line))
    with ExitStack() as stack:
        kinesis, dynamodb, s3 = (stack.enter_context(each(work)) for each in (emulators.kinesis_local, emulators.dynamodb_local, emulators.s3))
        yield ExampleSurroundings(environment.aws(kinesis, dynamodb), Storage(s3, BUCKET).create(), python, jars)
