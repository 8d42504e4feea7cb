"""What the URL of a queue says, and what a message of a letter is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_consumer.letters.services import address, request

LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", "49", 0, 1_700_000_000_123, "k\x00é", b"\xff", 7, 3, "ValueError: \ufffe")
FIFO = "https://sqs.eu-west-1.amazonaws.com/123456789012/letters.fifo"


@pytest.mark.parametrize(
    ("queue", "region", "endpoint"),
    [
        (FIFO, "eu-west-1", None),
        ("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/letters", "cn-north-1", None),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/1/q", "us-gov-west-1", None),
        ("https://eu-west-1.queue.amazonaws.com/1/q", "eu-west-1", None),
        ("https://queue.amazonaws.com/1/q", "us-east-1", None),
        ("https://vpce-0a-b.sqs.us-east-2.vpce.amazonaws.com/1/q", "us-east-2", "https://vpce-0a-b.sqs.us-east-2.vpce.amazonaws.com"),
        ("http://127.0.0.1:4566/000000000000/q", None, "http://127.0.0.1:4566"),
        ("https://sqs.amazonaws.com.example.org/1/q", "amazonaws", "https://sqs.amazonaws.com.example.org"),
    ],
)
def test_a_queue_is_asked_where_its_url_says(queue: str, region: str | None, endpoint: str | None) -> None:
    """At AWS's own hosts botocore's settings say where that is, so that AWS_ENDPOINT_URL_SQS counts."""
    assert address(queue) == (region, endpoint)


def test_a_letter_that_is_written_again_has_the_same_deduplication_id() -> None:
    """Its attempts and its error may be others; another record has another id, and another shard another group."""
    message, again = request(FIFO, LETTER), request(FIFO, replace(LETTER, attempts=9, batch=8, error="other"))
    assert again["MessageDeduplicationId"] == message["MessageDeduplicationId"]
    others = [
        replace(LETTER, sub=1),
        replace(LETTER, sequence="50"),
        replace(LETTER, shard="s"),
        replace(LETTER, consumer="c"),
        replace(LETTER, stream="t"),
    ]
    assert len({request(FIFO, other)["MessageDeduplicationId"] for other in (LETTER, *others)}) == 1 + len(others)
    assert message["MessageGroupId"] == "c-1/shardId-000000000000"


def test_a_standard_queue_gets_neither_group_nor_id() -> None:
    """It refuses an id."""
    assert set(request(FIFO.removesuffix(".fifo"), LETTER)) == {"QueueUrl", "MessageBody", "MessageAttributes"}


def test_the_body_is_the_letter_in_characters_that_sqs_takes() -> None:
    body = request(FIFO, LETTER)["MessageBody"]
    assert body.isascii()
    assert body.isprintable()
    assert DeadLetter.from_json(body, "message") == LETTER
    assert json.loads(body) == json.loads(LETTER.to_json())
