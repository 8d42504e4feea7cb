"""The emulators of `dev` are in the account of the stream that a manifest names by its ARN."""

from __future__ import annotations

import boto3

from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.dev.emulator import emulators

ACCOUNT = "444455556666"
ARN = f"arn:aws:kinesis:eu-west-1:{ACCOUNT}:stream/orders"


def test_a_stream_of_dev_has_the_arn_that_the_manifest_names() -> None:
    """So positions and rows are as they will be; without a role, for no policy is known there."""
    with emulators(ACCOUNT) as started:
        endpoint = started()
        client = boto3.client("kinesis", endpoint_url=endpoint, region_name="eu-west-1")
        client.create_stream(StreamName="orders", ShardCount=1)
        identity = BotoStreamCatalog(StreamAddress("orders", "eu-west-1", endpoint, arn=ARN)).describe()
    assert identity.arn == ARN
