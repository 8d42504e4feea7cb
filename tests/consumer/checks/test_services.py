"""Checks of services: what a person reads when nobody answers."""

from __future__ import annotations

import pytest

from sluice_checkpoints.aws.retry import Again
from sluice_consumer.checks import services

SILENT = Again("no answer from https://kinesis.eu-wets-1.amazonaws.com/: [Errno -2] Name or service not known")


@pytest.mark.parametrize(
    ("endpoint", "advice"),
    [
        (None, "check stream.region (eu-wets-1) and this machine's network: DNS, routes, proxy, VPC endpoint"),
        ("http://kinesis.example", "check stream.kinesisEndpoint"),
    ],
)
def test_a_service_that_nobody_answers_for_is_said_with_the_setting_that_names_it(endpoint: str | None, advice: str) -> None:
    """A region that does not exist has no address: it looks like a network that is down."""
    said = str(services.silent(SILENT, "kinesisEndpoint", endpoint, "eu-wets-1"))
    assert said == f"{SILENT}; {advice}"


def test_a_service_that_answers_is_quoted() -> None:
    throttled = Again("ThrottlingException: slow down", cause="ThrottlingException")
    assert services.silent(throttled, "kinesisEndpoint", None, "eu-west-1") is throttled
