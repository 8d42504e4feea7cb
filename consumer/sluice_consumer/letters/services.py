"""Services that keep dead letters: an SQS queue, one message a record, or a Kinesis stream, one record a record (docs/dead-letters.md).

Their calls have patience, and limits of size; their errors name the field.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.boto_clients import attempted, kept_client, passing
from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.names import counted
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.config import StreamConfig
from sluice_consumer.sinks.edge import SinkUnavailable

log = logging.getLogger(__name__)
TIMEOUT_SECONDS = 10
CHECK_SECONDS = 10.0  # of patience when the driver starts: an outage of that service keeps no consumer from working
MISSING = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException"}
DENIED = {
    "AccessDenied",
    "AccessDeniedException",
    "InvalidClientTokenId",
    "KMSAccessDeniedException",
    "KmsAccessDenied",
    "UnrecognizedClientException",
}
SQS = "onError.deadLetter.sqs"
SQS_RIGHTS = "sqs:SendMessage and sqs:GetQueueAttributes on the queue"
FIFO = ".fifo"
OF_AWS = re.compile(r"\.amazonaws\.com(\.cn)?$")
LEGACY = {"queue.amazonaws.com": "us-east-1"}  # a host without a region
REGION = re.compile(r"(?:^|\.)(?:sqs|sqs-fips)\.([a-z0-9-]+)\.|^([a-z0-9-]+)\.queue\.")
ATTRIBUTES = {"consumer": "consumer", "stream": "stream", "shardId": "shard"}  # of a message, to filter by: fields of a dead letter
KINESIS = "onError.deadLetter.kinesis"
KINESIS_RIGHTS = "kinesis:PutRecord and kinesis:DescribeStreamSummary on the stream"
KIB = 1024
USUAL_KIB = 1024  # of a stream whose service does not say (emulators): the limit that every stream has unless it was raised


@dataclass(frozen=True)
class LetterService:
    """One queue or stream, over a boto3 client.

    Attributes:
        setting, place: the field that names it, and its value; for errors.
        rights: the actions that the driver's account needs; for errors.
    """

    client: Any
    setting: str
    place: str
    rights: str
    patience: Patience = field(default_factory=Patience)

    def call(self, action: str, method: str, ask: Mapping[str, Any]) -> Any:
        """The reply to a call of the client's `method`; `action` is its name in the API.

        Raises:
            Refused: there is no such queue or stream, or the service does not accept the call. SinkUnavailable: it did not answer in time.
        """
        try:
            return self.patience.call(f"{action} on {self.place}", lambda: self._attempt(action, method, ask))
        except ServiceUnavailable as error:
            raise SinkUnavailable(f"{self.setting}: {error}; no record is left out without its dead letter, and the batch comes again") from error

    def checked(self, ask: Callable[[LetterService], int]) -> int | None:
        """What `look` finds when the driver starts. None, and a line in the log: the service does not answer now.

        Raises:
            Refused: as `look` does.
        """
        try:
            return ask(replace(self, patience=replace(self.patience, limit=min(self.patience.limit, CHECK_SECONDS))))
        except SinkUnavailable as error:
            log.warning("%s; it is asked again before the first dead letter", error)
            return None

    def fitting(self, letter: DeadLetter, size: int, most: int) -> None:
        """Refuses what the service does not take.

        Raises:
            Refused: the message is larger than the queue or stream allows.
        """
        if size > most:
            raise self.refused(
                f"the dead letter of record {letter.sequence}/{letter.sub} of {letter.shard} has {counted(size, 'byte')}, "
                f"and {most} are allowed there; "
                f"raise that limit, or keep dead letters in a folder (onError.deadLetter.path)"
            )

    def refused(self, why: str) -> Refused:
        """An error that names the field and its value."""
        return Refused(f"{self.setting}: {self.place}: {why}")

    def _attempt(self, action: str, method: str, ask: Mapping[str, Any]) -> Any:
        return attempted(
            lambda: getattr(self.client, method)(**ask),
            named=lambda error: self._named(action, error),
            refused=lambda error: self.refused(f"{action}: {error}"),
        )

    def _named(self, action: str, error: ClientError) -> Exception:
        if again := passing(error):
            return again
        code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        if code in MISSING:
            return self.refused(f"it does not exist ({message}); make it, or name another one")
        if code in DENIED:
            return self.refused(f"{action} is denied ({code}: {message}); the driver's account needs {self.rights}")
        return self.refused(f"{action} was refused: {code}: {message}")


def client(service: str, region: str, endpoint: str | None) -> Any:
    """A boto3 client without retries of its own. Without an endpoint, botocore's settings say where it calls."""
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=TIMEOUT_SECONDS, read_timeout=TIMEOUT_SECONDS)
    return kept_client(service, region, endpoint, config)


def document(letter: DeadLetter) -> str:
    """A dead letter's JSON on one line, in ASCII: SQS takes not every character."""
    return json.dumps(letter.document(), separators=(",", ":"))


class SqsLetters:
    """A queue of dead letters. In a FIFO queue a dead letter that is written again within five minutes is the same message."""

    def __init__(self, queue: str, region: str, patience: Patience | None = None) -> None:
        """`queue` is its URL, and `region` counts if the URL names none.

        Raises:
            Refused: there is no such queue, or the driver's account may not use it.
        """
        named, endpoint = address(queue)
        self._service = LetterService(client("sqs", named or region, endpoint), SQS, queue, SQS_RIGHTS, patience or Patience())
        self._most = self._service.checked(_most)

    def write(self, letter: DeadLetter) -> None:
        self.check(letter)
        self._service.call("SendMessage", "send_message", request(self._service.place, letter))

    def check(self, letter: DeadLetter) -> None:
        self._most = self._most or _most(self._service)
        self._service.fitting(letter, _size(request(self._service.place, letter)), self._most)


def request(queue: str, letter: DeadLetter) -> dict[str, Any]:
    """What SendMessage gets. The group of a FIFO queue is the record's shard, so its dead letters stay in order."""
    attributes = {name: {"DataType": "String", "StringValue": getattr(letter, key)} for name, key in ATTRIBUTES.items()}
    message = {"QueueUrl": queue, "MessageBody": document(letter), "MessageAttributes": attributes}
    if not queue.endswith(FIFO):
        return message
    place = (letter.consumer, letter.stream, letter.shard, letter.sequence, str(letter.sub))
    return message | {
        "MessageGroupId": f"{letter.consumer}/{letter.shard}",
        "MessageDeduplicationId": hashlib.sha256("/".join(place).encode()).hexdigest(),
    }


def address(queue: str) -> tuple[str | None, str | None]:
    """Region and endpoint that the URL of a queue names. An endpoint only for hosts other than AWS's own: emulators, VPC endpoints' own names."""
    parts = urlsplit(queue)
    host = parts.hostname or ""
    match = REGION.search(host)
    region = (match[1] or match[2]) if match else LEGACY.get(host)
    own = OF_AWS.search(host) and ".vpce." not in host
    return region, None if own else f"{parts.scheme}://{parts.netloc}"


def _most(service: LetterService) -> int:
    """The bytes that a message may have in this queue."""
    reply = service.call("GetQueueAttributes", "get_queue_attributes", {"QueueUrl": service.place, "AttributeNames": ["MaximumMessageSize"]})
    return int(reply["Attributes"]["MaximumMessageSize"])


def _size(message: dict[str, Any]) -> int:
    """Bytes that SQS counts: the body, and each attribute's name, type and value."""
    attributes = ((name, *value.values()) for name, value in message["MessageAttributes"].items())
    return len(message["MessageBody"]) + sum(len(text.encode()) for attribute in attributes for text in attribute)


class KinesisLetters:
    """A stream of dead letters. A dead letter that is written again is another record, of the same partition key."""

    def __init__(self, stream: str, consumed: StreamConfig, identity: StreamIdentity, patience: Patience | None = None) -> None:
        """`stream`: name or ARN; a name is one of the consumed stream's region and endpoint.

        Raises:
            Refused: there is no such stream, it is the consumed one, or the driver's account may not use it.
        """
        self._stream, self._consumed = _named(stream), identity
        region = stream.split(":")[3] if "StreamARN" in self._stream else consumed.region
        endpoint = consumed.kinesis_endpoint if region == consumed.region else None
        self._service = LetterService(client("kinesis", region, endpoint), KINESIS, stream, KINESIS_RIGHTS, patience or Patience())
        self._most = self._service.checked(self._asked)

    def write(self, letter: DeadLetter) -> None:
        self.check(letter)
        key, data = _record(letter)
        self._service.call("PutRecord", "put_record", {**self._stream, "PartitionKey": key, "Data": data})

    def check(self, letter: DeadLetter) -> None:
        self._most = self._most or self._asked(self._service)
        self._service.fitting(letter, sum(map(len, _record(letter))), self._most)

    def _asked(self, service: LetterService) -> int:
        """The bytes that a record may have in this stream, its partition key included."""
        summary: dict[str, Any] = service.call("DescribeStreamSummary", "describe_stream_summary", self._stream)["StreamDescriptionSummary"]
        if summary["StreamARN"] == self._consumed.arn:
            raise service.refused("this is the stream that is consumed: its dead letters would come as records; name another stream")
        return int(summary.get("MaxRecordSizeInKiB", USUAL_KIB)) * KIB


def _named(stream: str) -> dict[str, str]:
    return {"StreamARN" if stream.startswith("arn:") else "StreamName": stream}


def _record(letter: DeadLetter) -> tuple[str, bytes]:
    return f"{letter.consumer}/{letter.shard}", document(letter).encode()
