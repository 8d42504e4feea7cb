"""Puts dead letters into a Kinesis stream: one record a record (docs/dead-letters.md, "Where dead letters go")."""

from __future__ import annotations

from typing import Any

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.config import StreamConfig
from sluice_consumer.letters.service import LetterService, client, document

FIELD = "onError.deadLetter.kinesis"
RIGHTS = "kinesis:PutRecord and kinesis:DescribeStreamSummary on the stream"
KIB = 1024
USUAL_KIB = 1024  # of a stream whose service does not say (emulators): the limit that every stream has unless it was raised


class KinesisLetters:
    """A stream of dead letters. A dead letter that is written again is another record, of the same partition key."""

    def __init__(self, stream: str, consumed: StreamConfig, identity: StreamIdentity, patience: Patience | None = None) -> None:
        """`stream`: name or ARN; a name is one of the consumed stream's region and endpoint.

        Raises:
            Refused: there is no such stream, it is the consumed one, or the driver's account may not use it.
        """
        self._stream, self._consumed = named(stream), identity
        region = stream.split(":")[3] if "StreamARN" in self._stream else consumed.region
        endpoint = consumed.kinesis_endpoint if region == consumed.region else None
        self._service = LetterService(client("kinesis", region, endpoint), FIELD, stream, RIGHTS, patience or Patience())
        self._most = self._service.checked(self._asked)

    def write(self, letter: DeadLetter) -> None:
        """See `DeadLetters`.

        Raises:
            Refused: the dead letter is too large, or the stream is gone. SinkUnavailable: Kinesis did not take it.
        """
        self.check(letter)
        key, data = _record(letter)
        self._service.call("PutRecord", "put_record", {**self._stream, "PartitionKey": key, "Data": data})

    def check(self, letter: DeadLetter) -> None:
        """See `Queue`.

        Raises:
            Refused: the dead letter is too large. SinkUnavailable: Kinesis did not say what it takes.
        """
        self._most = self._most or self._asked(self._service)
        self._service.fitting(letter, sum(map(len, _record(letter))), self._most)

    def _asked(self, service: LetterService) -> int:
        """The bytes that a record may have in this stream, its partition key included."""
        summary: dict[str, Any] = service.call("DescribeStreamSummary", "describe_stream_summary", self._stream)["StreamDescriptionSummary"]
        if summary["StreamARN"] == self._consumed.arn:
            raise service.refused("this is the stream that is consumed: its dead letters would come as records; name another stream")
        return int(summary.get("MaxRecordSizeInKiB", USUAL_KIB)) * KIB


def named(stream: str) -> dict[str, str]:
    """How a call names a stream."""
    return {"StreamARN" if stream.startswith("arn:") else "StreamName": stream}


def _record(letter: DeadLetter) -> tuple[str, bytes]:
    """Partition key and data."""
    return f"{letter.consumer}/{letter.shard}", document(letter).encode()
