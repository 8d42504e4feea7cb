"""How to reach the S3 server: a bucket, and its settings in the words of each client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import boto3
from pyarrow import fs

from sluice_lab.aws.emulators import S3_ACCESS_KEY, S3_SECRET_KEY

REGION = "us-east-1"


@dataclass(frozen=True)
class Storage:
    """A bucket of the S3 server at `endpoint`, e.g. `http://127.0.0.1:9000`."""

    endpoint: str
    bucket: str

    def create(self) -> Storage:
        """Create the bucket."""
        keys = {"aws_access_key_id": S3_ACCESS_KEY, "aws_secret_access_key": S3_SECRET_KEY, "region_name": REGION}
        boto3.client("s3", endpoint_url=self.endpoint, **keys).create_bucket(Bucket=self.bucket)
        return self

    def at(self, endpoint: str) -> Storage:
        """The same bucket, over another endpoint: that of a proxy."""
        return Storage(endpoint, self.bucket)

    def files(self) -> fs.S3FileSystem:
        """For pyarrow."""
        return fs.S3FileSystem(
            access_key=S3_ACCESS_KEY, secret_key=S3_SECRET_KEY, endpoint_override=self.endpoint, region=REGION, force_virtual_addressing=False
        )

    def delta(self) -> dict[str, str]:
        """Options of deltalake."""
        keys = {"AWS_ACCESS_KEY_ID": S3_ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": S3_SECRET_KEY, "AWS_REGION": REGION}
        return keys | {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true", "aws_conditional_put": "etag"}

    def iceberg(self) -> dict[str, str]:
        """Properties of pyiceberg."""
        keys = {"s3.access-key-id": S3_ACCESS_KEY, "s3.secret-access-key": S3_SECRET_KEY, "s3.region": REGION}
        return keys | {"s3.endpoint": self.endpoint, "s3.force-virtual-addressing": "false"}

    def iceberg_java(self) -> dict[str, str]:
        """Properties of Iceberg's S3FileIO."""
        keys = {"s3.access-key-id": S3_ACCESS_KEY, "s3.secret-access-key": S3_SECRET_KEY, "client.region": REGION}
        return keys | {"s3.endpoint": self.endpoint, "s3.path-style-access": "true", "io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}

    def hadoop(self) -> dict[str, str]:
        """Settings of Spark for `s3a://`."""
        settings: dict[str, Any] = {
            "endpoint": self.endpoint,
            "endpoint.region": REGION,
            "access.key": S3_ACCESS_KEY,
            "secret.key": S3_SECRET_KEY,
            "path.style.access": "true",
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}
