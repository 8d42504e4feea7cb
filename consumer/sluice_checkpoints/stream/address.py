"""Where a stream is, and as whom it is read. Pure, and light: planning workers of Spark import it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.errors import Refused

STREAM_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")  # Kinesis API reference
STREAM_ARN = re.compile(r"arn:aws[a-z-]*:kinesis:(?P<region>[a-z0-9][a-z0-9-]{0,30}[a-z0-9]):[0-9]{12}:stream/(?P<name>[a-zA-Z0-9_.-]{1,128})")
AN_ARN = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders"


@dataclass(frozen=True)
class StreamAddress:
    """Which stream, where, and the role that reads it.

    Attributes:
        name, region: of the stream, whether or not it has an `arn`.
        endpoint: another address than AWS's own, for emulators and private endpoints.
        deadline_seconds: bounds the retries of one call to read.
        arn: given if calls are to name the stream by it, as those to another account have to.
        role: that calls to Kinesis are made as; None: with the process' own credentials.
    """

    name: str
    region: str
    endpoint: str | None = None
    deadline_seconds: float = 60.0
    arn: str | None = None
    role: AssumedRole | None = None

    @property
    def stream(self) -> dict[str, str]:
        """How a call names the stream."""
        return {"StreamARN": self.arn} if self.arn else {"StreamName": self.name}

    @property
    def stream_arn(self) -> dict[str, str]:
        """What a call has beside an iterator or a token, which name the stream already."""
        return {"StreamARN": self.arn} if self.arn else {}

    def check(self, answered: str) -> None:
        """Makes sure that a service speaks of this stream, and not of one of the same name in another account.

        Raises:
            Refused: `answered`, the ARN in its reply, is another one.
        """
        if self.arn and self.arn != answered:
            raise Refused(f"{self.arn}: the service answers with the stream {answered}; correct the ARN, the role, or the endpoint of Kinesis")


def located(arn: str, field: str) -> tuple[str, str]:
    """Name and region of a stream.

    Raises:
        Refused: it is not the ARN of a stream.
    """
    match = STREAM_ARN.fullmatch(arn)
    if not match:
        raise Refused(f"{field}: {arn!r} is not the ARN of a stream, such as {AN_ARN}")
    return match["name"], match["region"]
