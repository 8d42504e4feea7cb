"""What an error of a boto3 call means: try again, or one that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from sluice_checkpoints.aws.credentials import unavailable
from sluice_checkpoints.aws.retry import EXPIRED_ADVICE, EXPIRED_TOKEN, Again

T = TypeVar("T")
ONLY_TOKEN = frozenset({EXPIRED_TOKEN})


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


def passing(error: ClientError, transient: AbstractSet[str], expired: AbstractSet[str] = ONLY_TOKEN) -> Again | None:
    """`Again` for an answer with one of these codes, or of the service's own failure; None for any other answer.

    Args:
        error: the answer.
        transient: codes that may pass.
        expired: codes that say that credentials have expired.
    """
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if code in transient | expired or error.response["ResponseMetadata"].get("HTTPStatusCode", 0) >= 500:
        return Again(f"{code}: {message}" + (f"; {EXPIRED_ADVICE}" if code in expired else ""), cause=code)
    return None
