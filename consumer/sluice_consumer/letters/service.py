"""Calls to a service that keeps dead letters (SQS, Kinesis): patience, size limits, and errors that name the field."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.boto_clients import attempted, kept_client, passing
from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.plurals import counted
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

    def checked(self, look: Callable[[LetterService], int]) -> int | None:
        """What `look` finds when the driver starts. None, and a line in the log: the service does not answer now.

        Raises:
            Refused: as `look` does.
        """
        try:
            return look(replace(self, patience=replace(self.patience, limit=min(self.patience.limit, CHECK_SECONDS))))
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
