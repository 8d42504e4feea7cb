"""One retry loop with full jitter and a deadline, for calls whose failures say "try again".

Clock, sleep and dice are arguments, so that tests and simulations run in virtual time.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.names import counted

T = TypeVar("T")
log = logging.getLogger(__name__)
SAY_SECONDS = 10.0  # from one line about a call that does not succeed to the next
NO_ANSWER = "NoAnswer"
NETWORK = "network: DNS, routes, proxy, VPC endpoint"  # what to check then


# Credentials that expired may be renewed before the next try, even by another program: a pod's agent, or the writer of a credentials file. The file
# is read again when a service refuses a key (`credentials.REFUSED_KEY`).
EXPIRED_TOKEN = "ExpiredTokenException"  # noqa: S105 - no secret
EXPIRED = frozenset({EXPIRED_TOKEN, "ExpiredToken"})
EXPIRED_ADVICE = "the AWS credentials have expired and were not renewed; renew them, or use a role, whose credentials renew themselves"
# What may pass, of every service: the API references of DynamoDB, Kinesis, SQS and STS, their common errors, and what AWS's own SDKs repeat.
PASSING_STATUS = frozenset({408, 425, 429})
PASSING = EXPIRED | {
    "InternalError",
    "InternalFailure",
    "InternalFailureException",
    "InternalServerError",
    "KMS.ThrottlingException",
    "KMSThrottlingException",
    "KmsThrottled",
    "LimitExceededException",
    "OverLimit",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestExpired",  # a clock that was off; so the two after next
    "RequestInTheFuture",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestTimeTooSkewed",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionConflictException",
    "TransactionInProgressException",
}
SKEWED, OFF = {"InvalidSignatureException", "SignatureDoesNotMatch"}, re.compile("Signature (expired|not yet current)")


def may_pass(status: int, code: str, message: str) -> bool:
    """Whether the same call may succeed later, by a service's answer: its HTTP status, its error code without a prefix, its message."""
    return status >= 500 or status in PASSING_STATUS or code in PASSING or (code in SKEWED and OFF.match(message) is not None)


class Again(Exception):
    """Raised inside a call: it may succeed if it is made again.

    Attributes:
        wait: the least number of seconds to wait, if the service said so.
        cause: the service's error code, or a word of ours where there is none; for metrics.
    """

    def __init__(self, reason: str, wait: float = 0.0, cause: str = NO_ANSWER) -> None:
        super().__init__(reason)
        self.wait, self.cause = wait, cause


class Listener(Protocol):
    """Hears of calls, for metrics. It may not raise, and is called from any thread."""

    def called(self, operation: str) -> None:
        """A call is made, for the first time or again."""
        ...

    def again(self, operation: str, cause: str) -> None:
        """A call failed and is about to be made again."""
        ...


class NoListener:
    """A listener that ignores every call."""

    def called(self, operation: str) -> None:
        """See `Listener`."""

    def again(self, operation: str, cause: str) -> None:
        """See `Listener`."""


NO_LISTENER = NoListener()


@dataclass(frozen=True)
class Patience:
    """How long and how often to try.

    Attributes:
        limit: seconds from the first try after which no further one starts.
        first, cap: the n-th pause is drawn from [0, min(cap, first * 2^n)] seconds (full jitter, AWS Architecture Blog).
        listener: hears of every try and of every pause.
    """

    limit: float = 60.0
    first: float = 0.05
    cap: float = 5.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    dice: Callable[[], float] = random.random
    listener: Listener = NO_LISTENER

    def call(self, what: str, attempt: Callable[[], T]) -> T:
        """Calls `attempt` until it does not raise `Again`.

        Args:
            what: the operation, and on what it is done, such as "GetItem on table orders".
            attempt: one try.

        Raises:
            ServiceUnavailable: it still did at the limit; `what` names the call in the message.
        """
        start, tries, operation, said_at = self.clock(), 0, what.partition(" ")[0], 0.0
        while True:
            self.listener.called(operation)
            try:
                return attempt()
            except Again as again:
                pause = max(again.wait, self.dice() * min(self.cap, self.first * 2.0 ** min(tries, 60)))
                tries += 1
                waited = self.clock() - start
                if waited + pause > self.limit:
                    raise ServiceUnavailable(f"{what}: no success in {counted(tries, 'try')} over {self.limit:g} s: {again}") from again
                if worth_saying(tries, waited - said_at, again.cause):
                    log.warning("%s: no success in %d tries over %.0f s, of %g s: %s", what, tries, waited, self.limit, again)
                    said_at = waited
                self.listener.again(operation, again.cause)
                self.sleep(pause)


def worth_saying(tries: int, seconds: float, cause: str) -> bool:
    """Whether a failed try is reported now: at the second one in a row without an answer, then every `SAY_SECONDS`.

    A single lost connection passes unsaid, and so does throttling that is soon over.

    Args:
        tries: that failed in a row.
        seconds: since the last line, or since the first try.
        cause: see `Again`.
    """
    return (tries == 2 and cause == NO_ANSWER) or seconds >= SAY_SECONDS


class Once(Patience):
    """No patience: one try, and its `Again` is the caller's."""

    def call(self, what: str, attempt: Callable[[], T]) -> T:
        """See `Patience.call`.

        Raises:
            Again: it may succeed later.
        """
        operation = what.partition(" ")[0]
        self.listener.called(operation)
        try:
            return attempt()
        except Again as again:
            self.listener.again(operation, again.cause)
            raise
