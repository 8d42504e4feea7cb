"""Dead letters in SQS and Kinesis, over emulators: moto has both, kinesis-local is asked where a stream is named without its ARN."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import boto3
import pytest

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.config import DeadLetterConfig, StreamConfig
from sluice_consumer.letters.services import KinesisLetters, SqsLetters
from sluice_consumer.letters.stores import letters_of
from sluice_consumer.sinks.edge import SinkUnavailable
from sluice_consumer.spark.engine import SparkEngine
from sluice_lab.aws import refusals
from sluice_lab.aws.proxy import NORMAL, Behaviour, CallOutcome, Proxy, Upstream, proxy
from sluice_lab.machine.listening import LOOPBACK

REGION = "us-east-1"
LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", "49", 0, 1_700_000_000_123, "k", b"\xff{", 7, 3, "Traceback\nValueError: no")
CONSUMED = StreamIdentity("orders", f"arn:aws:kinesis:{REGION}:000000000000:stream/orders", 0, 86_400_000, "ACTIVE")


@dataclass
class Moments:
    """Time that passes by sleeping; `after` so many sleeps something happens."""

    now: float = 0.0
    slept: int = 0
    after: dict[int, Callable[[], None]] = field(default_factory=dict)

    def sleep(self, seconds: float) -> None:
        self.now, self.slept = self.now + seconds, self.slept + 1
        self.after.get(self.slept, lambda: None)()

    def patience(self) -> Patience:
        return Patience(clock=lambda: self.now, sleep=self.sleep, dice=lambda: 1.0)


@dataclass(frozen=True)
class Queue:
    client: Any
    url: str
    calls: Proxy

    def letters(self, moments: Moments | None = None) -> SqsLetters:
        return SqsLetters(self.calls.endpoint + urlsplit(self.url).path, REGION, (moments or Moments()).patience())

    def messages(self) -> list[Any]:
        return cast(
            "list[Any]", self.client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get("Messages", [])
        )

    def fail(self, outcome: CallOutcome) -> None:
        self.calls.behaviour = Behaviour(outcome)

    def heal(self) -> None:
        self.calls.behaviour = NORMAL


Make = Callable[..., Queue]


@pytest.fixture
def make(moto_endpoint: str) -> Iterator[Make]:
    client = boto3.client("sqs", endpoint_url=moto_endpoint, region_name=REGION)
    with proxy(Upstream(moto_endpoint, refusals.sqs), LOOPBACK) as calls:

        def made(suffix: str = "", **attributes: str) -> Queue:
            fifo = {"FifoQueue": "true"} if suffix else {}
            return Queue(client, client.create_queue(QueueName=f"letters-{uuid4()}{suffix}", Attributes=fifo | attributes)["QueueUrl"], calls)

        yield made


@pytest.mark.parametrize(("suffix", "times"), [(".fifo", 1), ("", 2)], ids=["FIFO", "standard"])
def test_a_letter_that_is_written_twice_is_one_message_of_a_fifo_queue(make: Make, suffix: str, times: int) -> None:
    """In a standard queue it is two of the same position."""
    queue = make(suffix)
    letters = queue.letters()
    letters.write(LETTER)
    letters.write(replace(LETTER, attempts=6))
    found = [DeadLetter.from_json(message["Body"], "message") for message in queue.messages()]
    assert [(letter.shard, letter.sequence, letter.sub) for letter in found] == [(LETTER.shard, "49", 0)] * times
    assert LETTER in found


def test_a_message_says_whose_letter_it_is(make: Make) -> None:
    queue = make()
    queue.letters().write(LETTER)
    (message,) = queue.messages()
    said = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert said == {"consumer": "c-1", "stream": "orders", "shardId": LETTER.shard}


def test_a_letter_that_is_too_large_for_its_queue_is_refused_by_its_record(make: Make) -> None:
    queue = make(MaximumMessageSize="2048")
    with pytest.raises(Refused, match=r"^onError\.deadLetter\.sqs: .* record 49/0 of shardId-000000000000 has \d+ bytes, and 2048 are allowed"):
        queue.letters().write(replace(LETTER, data=b"x" * 2048))
    assert queue.messages() == []


def test_a_letter_that_just_fits_is_stored(make: Make) -> None:
    """A byte more is refused: what is counted is body, and names, types and values of attributes."""
    queue = make(MaximumMessageSize="2048")
    letters = queue.letters()
    with pytest.raises(Refused, match="bytes, and 2048") as told:
        letters.write(replace(LETTER, error="x" * 2048))
    over = int(str(told.value).split(" has ")[1].split(" bytes")[0]) - 2048
    letters.write(replace(LETTER, error="x" * (2048 - over)))
    assert len(queue.messages()) == 1
    with pytest.raises(Refused, match="has 2049 bytes, and 2048"):
        letters.write(replace(LETTER, error="x" * (2049 - over)))


def test_a_queue_that_does_not_exist_is_refused_when_the_driver_starts(moto_endpoint: str) -> None:
    with pytest.raises(Refused, match=r"^onError\.deadLetter\.sqs: .*/none: it does not exist"):
        SqsLetters(f"{moto_endpoint}/123456789012/none", REGION)


def test_a_letter_is_stored_after_two_refusals_for_throttling(make: Make) -> None:
    queue, moments = make(), Moments()
    moments.after[2] = queue.heal
    letters = queue.letters(moments)
    queue.fail(CallOutcome.THROTTLED)
    letters.write(LETTER)
    assert (moments.slept, len(queue.messages())) == (2, 1)


@pytest.mark.parametrize("outcome", [CallOutcome.FAILED, CallOutcome.CUT, CallOutcome.THROTTLED])
def test_a_service_that_stays_down_takes_no_letter_and_the_batch_comes_again(make: Make, outcome: CallOutcome) -> None:
    """An hour of it in no time. The record is not excluded, for `write` does not return."""
    queue, moments = make(), Moments()
    letters = queue.letters(moments)
    queue.fail(outcome)
    with pytest.raises(SinkUnavailable, match=r"^onError\.deadLetter\.sqs: SendMessage on .* no success in \d+ tries over 60 s"):
        letters.write(LETTER)
    assert queue.messages() == []


def test_a_failure_of_something_between_is_an_outage(make: Make) -> None:
    """A load balancer's 500 has no code of the service's."""
    queue, moments = make(), Moments()
    moments.after[1] = queue.heal
    letters = queue.letters(moments)
    queue.calls.upstream = replace(queue.calls.upstream, refuse=refusals.iceberg_rest)
    queue.fail(CallOutcome.FAILED)
    letters.write(LETTER)
    assert (moments.slept, len(queue.messages())) == (1, 1)


def test_a_reply_that_is_lost_leaves_one_message_of_a_fifo_queue(make: Make) -> None:
    queue, moments = make(".fifo"), Moments()
    moments.after[1] = queue.heal
    letters = queue.letters(moments)
    queue.fail(CallOutcome.LOST)
    letters.write(LETTER)
    assert (moments.slept, len(queue.messages())) == (1, 1)


def test_an_outage_keeps_no_driver_from_starting(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    queue, moments = make(), Moments()
    queue.fail(CallOutcome.FAILED)
    with caplog.at_level(logging.WARNING):
        letters = queue.letters(moments)
    assert "onError.deadLetter.sqs" in caplog.text
    assert moments.now <= 10
    with pytest.raises(SinkUnavailable):
        letters.write(LETTER)
    queue.heal()
    letters.write(LETTER)
    assert len(queue.messages()) == 1


@pytest.fixture(params=["name", "ARN"])
def stream(request: pytest.FixtureRequest) -> tuple[Any, str, str]:
    endpoint = request.getfixturevalue("kinesis_local_endpoint" if request.param == "name" else "moto_endpoint")
    client, name = boto3.client("kinesis", endpoint_url=endpoint, region_name=REGION), f"letters-{uuid4()}"
    client.create_stream(StreamName=name, ShardCount=2)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    arn = client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    return client, name, name if request.param == "name" else arn


def consumed(client: Any) -> StreamConfig:
    return StreamConfig("orders", REGION, client.meta.endpoint_url)


def records(client: Any, name: str) -> list[Any]:
    found = []
    for shard in client.list_shards(StreamName=name)["Shards"]:
        place = client.get_shard_iterator(StreamName=name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        found += client.get_records(ShardIterator=place)["Records"]
    return found


def test_a_letter_is_a_record_of_a_stream(stream: tuple[Any, str, str]) -> None:
    """Of the same shard if it is written again: duplicates are found by position."""
    client, name, called = stream
    engine = cast("SparkEngine", SimpleNamespace(stream=consumed(client), identity=CONSUMED))
    letters = letters_of(engine, DeadLetterConfig(kinesis=called))
    letters.write(LETTER)
    letters.write(LETTER)
    assert [DeadLetter.from_json(record["Data"].decode(), name) for record in records(client, name)] == [LETTER, LETTER]
    assert {record["PartitionKey"] for record in records(client, name)} == {"c-1/shardId-000000000000"}


def test_a_letter_that_is_too_large_for_its_stream_is_refused_by_its_record(stream: tuple[Any, str, str]) -> None:
    """Base64 makes more of it."""
    client, name, called = stream
    letters = KinesisLetters(called, consumed(client), CONSUMED)
    with pytest.raises(
        Refused, match=r"^onError\.deadLetter\.kinesis: .* record 49/0 of shardId-000000000000 has \d+ bytes, and 1048576 are allowed"
    ):
        letters.write(replace(LETTER, data=b"x" * 800_000))
    assert records(client, name) == []
    letters.write(replace(LETTER, data=b"x" * 760_000))
    assert len(records(client, name)) == 1


def test_a_stream_that_does_not_exist_is_refused_when_the_driver_starts(stream: tuple[Any, str, str]) -> None:
    client, name, called = stream
    with pytest.raises(Refused, match=r"^onError\.deadLetter\.kinesis: .*: it does not exist"):
        KinesisLetters(called.replace(name, "none"), consumed(client), CONSUMED)


def test_the_stream_that_is_consumed_takes_no_letters(stream: tuple[Any, str, str]) -> None:
    """Also under its ARN: its letters would come as records, and fail again."""
    client, name, called = stream
    arn = client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    with pytest.raises(Refused, match=r"onError\.deadLetter\.kinesis: .*this is the stream that is consumed"):
        KinesisLetters(called, consumed(client), replace(CONSUMED, arn=arn))


def test_kinesis_that_stays_down_takes_no_letter(stream: tuple[Any, str, str]) -> None:
    client, name, called = stream
    with proxy(Upstream(client.meta.endpoint_url), LOOPBACK) as calls:
        letters = KinesisLetters(called, replace(consumed(client), kinesis_endpoint=calls.endpoint), CONSUMED, Moments().patience())
        calls.behaviour = Behaviour(CallOutcome.THROTTLED)
        with pytest.raises(SinkUnavailable, match=r"^onError\.deadLetter\.kinesis: PutRecord on .* no success in \d+ tries"):
            letters.write(LETTER)
    assert records(client, name) == []
