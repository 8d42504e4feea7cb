"""Writes dead letters into an SQS queue: one message a record (docs/dead-letters.md, "Where dead letters go")."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_consumer.letters.service import LetterService, client, document

FIELD = "onError.deadLetter.sqs"
RIGHTS = "sqs:SendMessage and sqs:GetQueueAttributes on the queue"
FIFO = ".fifo"
OF_AWS = re.compile(r"\.amazonaws\.com(\.cn)?$")
LEGACY = {"queue.amazonaws.com": "us-east-1"}  # a host without a region
REGION = re.compile(r"(?:^|\.)(?:sqs|sqs-fips)\.([a-z0-9-]+)\.|^([a-z0-9-]+)\.queue\.")
ATTRIBUTES = {"consumer": "consumer", "stream": "stream", "shardId": "shard"}  # of a message, to filter by: fields of a dead letter


class SqsLetters:
    """A queue of dead letters. In a FIFO queue a dead letter that is written again within five minutes is the same message."""

    def __init__(self, queue: str, region: str, patience: Patience | None = None) -> None:
        """`queue` is its URL, and `region` counts if the URL names none.

        Raises:
            Refused: there is no such queue, or the driver's account may not use it.
        """
        named, endpoint = address(queue)
        self._service = LetterService(client("sqs", named or region, endpoint), FIELD, queue, RIGHTS, patience or Patience())
        self._most = self._service.checked(_most)

    def write(self, letter: DeadLetter) -> None:
        """See `DeadLetters`.

        Raises:
            Refused: the dead letter is too large, or the queue is gone. SinkUnavailable: SQS did not take it.
        """
        self.check(letter)
        self._service.call("SendMessage", "send_message", request(self._service.place, letter))

    def check(self, letter: DeadLetter) -> None:
        """See `Queue`.

        Raises:
            Refused: the dead letter is too large. SinkUnavailable: SQS did not say what it takes.
        """
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
    found = REGION.search(host)
    region = (found[1] or found[2]) if found else LEGACY.get(host)
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
