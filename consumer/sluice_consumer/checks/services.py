"""AWS: credentials, and what it means when a service does not answer."""

from __future__ import annotations

import re

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from sluice_checkpoints.aws.credentials import MISSING, unavailable
from sluice_checkpoints.aws.retry import NETWORK, NO_ANSWER, Again
from sluice_checkpoints.aws.role_sessions import credentials_of
from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, StartFacts

SHARE = 0.9  # of the check's time
SHOWN = 4  # characters of an access key's end
WORDY = re.compile(r".*Failed to establish a new connection: ")


def credentials(facts: StartFacts) -> CheckFinding:
    """Finds credentials, and renews those that have to be. Whether AWS takes them shows at the stream, or at the role that is assumed with them.

    Raises:
        Refused: there are none, or they cannot be right. Again: their provider does not give any now.
    """
    try:
        source = Session().get_credentials()
        if source is None:
            raise Refused(MISSING)
        held = source.get_frozen_credentials()
    except (BotoCoreError, ClientError) as error:
        raise unavailable(error) or Refused(f"AWS credentials: {error}; correct the profile or the variables that name them") from error
    if re.search(r"\s", f"{held.access_key}{held.secret_key}"):
        raise Refused("AWS credentials: there is a blank or a line break in the access key or the secret key; set them without")
    message = f"access key …{str(held.access_key)[-SHOWN:]}, found by {source.method}"
    return CheckFinding(CheckOutcome.OK, message + _assumed(facts))


def _assumed(facts: StartFacts) -> str:
    stream = facts.given.stream
    if stream.role is None:
        return ""
    session = credentials_of(stream.role, stream.region)
    session.begun(facts.seconds * SHARE)
    try:
        session.current()
    except Refused as error:
        raise type(error)(f"stream.roleArn: {error}") from error
    return f"; session {stream.role.session_name} of {stream.role.arn}"


def silent(error: Again, setting: str, endpoint: str | None, region: str) -> Again:
    """The same, in the words of a person who has to find out why nobody answers. A region that does not exist has no address, either."""
    if error.cause != NO_ANSWER:
        return error
    message = WORDY.sub("", str(error))
    nobody = re.match(r"no answer from \S+", str(error))
    if nobody and nobody[0] not in message:
        message = f"{nobody[0]} {message}"
    advice = f"check stream.{setting}" if endpoint else f"check stream.region ({region}) and this machine's {NETWORK}"
    return Again(f"{message}; {advice}")


def misconfigured(error: ValueError) -> Refused:
    """What botocore says of an endpoint in its environment variables or files."""
    return Refused(f"AWS's own settings: {error}; is AWS_ENDPOINT_URL, or its like in a profile, without http:// or https://?")
