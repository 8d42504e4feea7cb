"""What an example needs around it: emulated Kinesis and DynamoDB, an S3 server with the bucket `lake`, and Spark as the image has it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from pyarrow import fs

from sluice_lab import places, spark_lines
from sluice_lab.aws import emulators
from sluice_lab.aws.emulators import S3_ACCESS_KEY, S3_SECRET_KEY
from sluice_lab.machine import spark_jars
from sluice_lab.scenario import environment
from sluice_lab.scenario.environment import Aws

BUCKET = "lake"
S3_REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": S3_ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": S3_SECRET_KEY}


@dataclass(frozen=True)
class ExampleSurroundings:
    """Emulated AWS, and an interpreter with Spark.

    Attributes:
        aws: Kinesis and DynamoDB.
        s3: endpoint of the S3 server; its bucket is `lake`, as in the manifests.
        python: interpreter with the image's line of Spark.
        jars: the jars that the image adds.
    """

    aws: Aws
    s3: str
    python: Path
    jars: tuple[Path, ...]

    def spark_settings(self) -> dict[str, str]:
        """Where S3 is, for Spark. Credentials are in the environment."""
        names = {"endpoint": self.s3, "endpoint.region": S3_REGION, "path.style.access": "true"}
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in names.items()}

    def delta_options(self) -> dict[str, str]:
        """For the package `deltalake`."""
        keys = {"access_key_id": S3_ACCESS_KEY, "secret_access_key": S3_SECRET_KEY, "region": S3_REGION}
        return keys | {"endpoint": self.s3, "allow_http": "true"}

    def iceberg_properties(self) -> dict[str, str]:
        """For the package `pyiceberg`."""
        return {"s3.endpoint": self.s3, "s3.access-key-id": S3_ACCESS_KEY, "s3.secret-access-key": S3_SECRET_KEY, "s3.region": S3_REGION}

    def files(self) -> fs.FileSystem:
        """For the package `pyarrow`."""
        keys = {"access_key": S3_ACCESS_KEY, "secret_key": S3_SECRET_KEY, "region": S3_REGION}
        return fs.S3FileSystem(**keys, endpoint_override=self.s3, force_virtual_addressing=False)

    def environment(self) -> dict[str, str]:
        """Of a program with Spark: the image's settings and jars, the repository's packages, and a JVM that lives for seconds."""
        paths = [str(places.REPO / "consumer"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **CREDENTIALS,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, self.jars))} pyspark-shell",
            "SPARK_CONF_DIR": str(places.REPO / "consumer" / "image" / "conf"),
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }


@contextmanager
def surroundings() -> Iterator[ExampleSurroundings]:
    """Run emulated AWS while the block lasts.

    Raises:
        LabError: an emulator, the jars or the line of Spark cannot be had; the message says what to install.
    """
    work, line = places.work(), image_line()
    python, jars = spark_lines.python(line), tuple(spark_jars.cached(work, line))
    with ExitStack() as stack:
        kinesis, dynamodb, s3 = (stack.enter_context(each(work)) for each in (emulators.kinesis_local, emulators.dynamodb_local, emulators.s3))
        keys = {"aws_access_key_id": S3_ACCESS_KEY, "aws_secret_access_key": S3_SECRET_KEY, "region_name": S3_REGION}
        boto3.client("s3", endpoint_url=s3, **keys).create_bucket(Bucket=BUCKET)
        yield ExampleSurroundings(environment.aws(kinesis, dynamodb), s3, python, jars)


def image_line() -> str:
    """The line of Spark that the consumer image has by default."""
    (line,) = re.findall(r"^ARG SPARK_LINE=(\S+)$", (places.REPO / "Dockerfile").read_text(), re.MULTILINE)
    return str(line)
