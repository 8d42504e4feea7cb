"""What an error of a boto3 call means: try again, or one that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from sluice_checkpoints.aws.credentials import unavailable
from sluice_checkpoints.aws.retry import EXPIRED, EXPIRED_ADVICE, Again, may_pass

T = TypeVar("T")


def attempted(call: Callable[[], T], named: Callable[[ClientError], Exception], refused: Callable[[BotoCoreError], Exception]) -> T:
    """The result of one attempt at a call.

    Args:
        call: makes it.
        named: the error that the service's answer amounts to.
        refused: the same where no call could be made: no credentials, no region, a bad endpoint.

    Raises:
        Again: it may succeed if it is made again. Else what `named` or `refused` give.
    """
    try:
        return call()
    except ClientError as error:
        raise unavailable(error) or named(error) from error
    except (BotoConnectionError, HTTPClientError) as error:
        raise Again(str(error)) from error
    except BotoCoreError as error:
        raise unavailable(error) or refused(error) from error


def passing(error: ClientError) -> Again | None:
    """`Again` for an answer that may pass (`retry.may_pass`); None for any other one."""
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if may_pass(error.response["ResponseMetadata"].get("HTTPStatusCode", 0), code, message):
        return Again(f"{code}: {message}" + (f"; {EXPIRED_ADVICE}" if code in EXPIRED else ""), cause=code)
    return None
