"""A stream that is named by its ARN, as `kubectl sluice` shows it."""

from __future__ import annotations

from typing import Any

from sluice_kubectl.views.consumer import consumer
from sluice_kubectl.views.letters import letters_place

ARN = "arn:aws:kinesis:eu-west-1:444455556666:stream/orders"
BODY: dict[str, Any] = {
    "metadata": {"namespace": "shop", "name": "orders"},
    "spec": {"stream": {"arn": ARN}, "onError": {"deadLetter": {"path": "s3a://lake/letters"}}},
}


def test_the_arn_is_shown_and_its_region_is_the_tables() -> None:
    """Of two accounts, both may have a stream of that name."""
    found = consumer(BODY)
    assert (found.stream, found.region) == (ARN, "eu-west-1")
    named = consumer({**BODY, "spec": {"stream": {"name": "orders", "region": "eu-west-2"}}})
    assert (named.stream, named.region) == ("orders", "eu-west-2")


def test_dead_letters_are_looked_for_in_that_region() -> None:
    assert letters_place(BODY).region == "eu-west-1"
    assert letters_place({**BODY, "spec": {**BODY["spec"], "stream": {}}}).region is None
