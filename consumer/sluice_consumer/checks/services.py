"""AWS: credentials, and what it means when a service does not answer."""

from __future__ import annotations

import re

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from sluice_checkpoints.aws.credentials import MISSING, unavailable
from sluice_checkpoints.aws.retry import NO_ANSWER, Again
from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.facts import StartFacts
from sluice_consumer.checks.model import CheckFinding, CheckOutcome

SHOWN = 4  # characters of an access key's end
WORDY = re.compile(r".*Failed to establish a new connection: ")


def credentials(_facts: StartFacts) -> CheckFinding:
    """Finds credentials, and renews those that have to be. Whether AWS takes them shows at the stream.

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
    return CheckFinding(CheckOutcome.OK, f"access key …{str(held.access_key)[-SHOWN:]}, found by {source.method}")


def silent(error: Again, setting: str, endpoint: str | None) -> Again:
    """The same, in the words of a person who has to find out why nobody answers."""
    if error.cause != NO_ANSWER:
        return error
    said = WORDY.sub("", str(error))
    nobody = re.match(r"no answer from \S+", str(error))
    if nobody and nobody[0] not in said:
        said = f"{nobody[0]} {said}"
    advice = f"check stream.{setting}" if endpoint else "check this machine's network: DNS, routes, proxy, VPC endpoint"
    return Again(f"{said}; {advice}")


def misconfigured(error: ValueError) -> Refused:
    """What botocore says of an endpoint in its environment variables or files."""
    return Refused(f"AWS's own settings: {error}; is AWS_ENDPOINT_URL, or its like in a profile, without http:// or https://?")
