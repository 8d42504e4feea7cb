"""A dead letter, as value and as JSON (docs/dead-letters.md, "What is in a dead letter"). Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from sluice_checkpoints.errors import Refused

FORMAT = "sluice-dead-letter/1"
LONGEST = 16_000  # characters of an exception in a dead letter


def writable(text: str, longest: int = LONGEST) -> str:
    """Text that any store takes: lone surrogates as escapes, its middle left out if it is too long."""
    cut = text if len(text) <= longest else f"{text[: longest // 2]}\n…\n{text[-longest // 2 :]}"
    return cut.encode("utf-8", "backslashreplace").decode()


TRACEBACK = "Traceback (most recent call last):\n"
MODULE = re.compile(r"^(\w+\.)+(?=\w+(:|$))")
NAME = re.compile(r"(?P<folder>.*?)(?P<sequence>\d+)-(?P<sub>\d+)\.json")


class DeadLetters(Protocol):
    """Where final dead letters are kept."""

    def write(self, letter: DeadLetter) -> None:
        """Returns once the dead letter is stored for good. Written again, it is the same dead letter.

        Raises:
            Refused: it is too large, or its destination is gone. SinkUnavailable: it was not taken.
        """
        ...


Place = tuple[str, str, int]  # shard, sequence number, index in an aggregate


def order(name: str) -> tuple[str, int, int, str]:
    """Sorts names of dead letters as their records are in their shards. A name that is not a dead letter's comes first in its folder."""
    match = NAME.fullmatch(name)
    return (match["folder"], int(match["sequence"]), int(match["sub"]), name) if match else (name.rpartition("/")[0], -1, -1, name)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that `process` cannot deal with. Its key is (stream, shard, sequence, sub): a dead letter that is written twice is one.

    Attributes:
        sequence: of the Kinesis record; sub: its index in an aggregate.
        arrival_millis: epoch milliseconds.
        attempts: how often `process` failed with it. error: its exception, with the trace.
    """

    consumer: str
    stream: str
    shard: str
    sequence: str
    sub: int
    arrival_millis: int
    partition_key: str
    data: bytes
    batch: int
    attempts: int
    error: str

    @property
    def path(self) -> str:
        """Where it is below the folder of all dead letters."""
        return f"{self.consumer}/{self.name}"

    @property
    def name(self) -> str:
        """Where it is below its consumer's folder."""
        return f"{self.shard}/{self.sequence}-{self.sub}.json"

    @property
    def place(self) -> Place:
        """Which record it is of."""
        return self.shard, self.sequence, self.sub

    @property
    def cause(self) -> str:
        """Its exception in a line: what follows the frames of the last traceback, before any stack of Java's. Without a traceback its first line."""
        _, trace, words = self.error.rpartition(TRACEBACK)
        lines = [line for line in words.splitlines() if line.strip()] or ["no words"]
        return MODULE.sub("", next((line for line in lines if not line[0].isspace()), lines[-1])) if trace else lines[0]

    def document(self) -> dict[str, Any]:
        """What is in it, by the names of docs/dead-letters.md."""
        arrival = datetime.fromtimestamp(self.arrival_millis / 1000, UTC).isoformat(timespec="milliseconds")
        return {
            "format": FORMAT,
            "consumer": self.consumer,
            "stream": self.stream,
            "shardId": self.shard,
            "sequenceNumber": self.sequence,
            "subSequenceNumber": self.sub,
            "approximateArrivalTimestamp": arrival,
            "partitionKey": self.partition_key,
            "data": base64.b64encode(self.data).decode(),
            "batch": self.batch,
            "attempts": self.attempts,
            "error": writable(self.error),
        }

    def to_json(self) -> str:
        """The file's content."""
        return json.dumps(self.document(), ensure_ascii=False, indent=1) + "\n"

    @staticmethod
    def from_json(text: str, name: str) -> DeadLetter:
        """Reads a file's content; `name` is the file's, for errors.

        Raises:
            Refused: it is not a dead letter of this version's.
        """
        try:
            values = json.loads(text)
            if values.get("format") != FORMAT:
                raise Refused(f"{name}: format {values.get('format')!r} is not known to this version, which knows {FORMAT}; use a newer version")
            return DeadLetter(
                consumer=values["consumer"],
                stream=values["stream"],
                shard=values["shardId"],
                sequence=values["sequenceNumber"],
                sub=int(values["subSequenceNumber"]),
                arrival_millis=round(datetime.fromisoformat(values["approximateArrivalTimestamp"]).timestamp() * 1000),
                partition_key=values["partitionKey"],
                data=base64.b64decode(values["data"], validate=True),
                batch=int(values["batch"]),
                attempts=int(values["attempts"]),
                error=values["error"],
            )
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise Refused(f"{name}: is not a dead letter of Sluice ({type(error).__name__}: {error})") from error
