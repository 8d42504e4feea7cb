"""A call that is made again and again says so; one that is made once leaves that to its caller."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from sluice_checkpoints.aws.retry import Again, Once, Patience, may_pass, worth_saying
from sluice_checkpoints.errors import ServiceUnavailable


@dataclass
class Time:
    """Virtual: a call takes two seconds, and pauses take as long as they last."""

    now: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def patience(self, limit: float = 60.0) -> Patience:
        return Patience(limit=limit, first=0.1, cap=5.0, clock=lambda: self.now, sleep=self.sleep, dice=lambda: 1.0)


def said(caplog: pytest.LogCaptureFixture, cause: str | None, failures: int) -> list[str]:
    """The lines of a call that fails so often, and takes two seconds each time."""
    time, left = Time(), [failures]

    def attempt() -> str:
        time.now += 2
        left[0] -= 1
        if left[0] >= 0:
            raise Again("refused", cause=cause) if cause else Again("refused")
        return "answer"

    caplog.set_level(logging.WARNING)
    assert time.patience().call("GetItem on table t", attempt) == "answer"
    return [record.getMessage() for record in caplog.records]


def test_one_lost_connection_passes_unsaid(caplog: pytest.LogCaptureFixture) -> None:
    """Services close connections that were idle."""
    assert said(caplog, None, failures=1) == []


def test_a_service_that_does_not_answer_is_told_at_once_and_then_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """A person at a terminal waits for it."""
    lines = said(caplog, None, failures=10)
    assert lines[0] == "GetItem on table t: no success in 2 tries over 4 s, of 60 s: refused"
    assert len(lines) == 4


def test_throttling_is_told_once_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """It is everyday at a full shard."""
    assert said(caplog, "ThrottlingException", failures=3) == []
    assert said(caplog, "ThrottlingException", failures=6)[0].startswith("GetItem on table t: no success in ")


@pytest.mark.parametrize(
    ("tries", "seconds", "cause", "say"),
    [
        (1, 0, "NoAnswer", False),
        (2, 0, "NoAnswer", True),
        (3, 0, "NoAnswer", False),
        (2, 0, "X", False),
        (1, 10, "X", True),
        (9, 9.9, "NoAnswer", False),
    ],
)
def test_what_is_worth_a_line(tries: int, seconds: float, cause: str, say: bool) -> None:  # noqa: FBT001
    assert worth_saying(tries, seconds, cause) == say


def test_the_last_failure_is_the_caller_s_and_no_line(caplog: pytest.LogCaptureFixture) -> None:
    def attempt() -> None:
        raise Again("refused")

    with pytest.raises(ServiceUnavailable, match="no success in 1 try "):
        Time().patience(limit=0.05).call("GetItem on table t", attempt)
    assert not caplog.records


def test_one_try_is_one_try() -> None:
    """For a look that must not take long."""
    tries = list[int]()

    def attempt() -> None:
        tries.append(1)
        raise Again("refused")

    with pytest.raises(Again, match="refused"):
        Once().call("GetItem on table t", attempt)
    assert tries == [1]


def test_a_limit_of_days_does_not_end_in_an_overflow() -> None:
    """The pause stays at its cap, however often the call was made."""
    time, left = Time(), [1500]

    def attempt() -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise Again("refused")
        return "answer"

    assert time.patience(limit=86_400.0).call("GetItem on table t", attempt) == "answer"


@pytest.mark.parametrize(
    ("status", "code", "message", "passes"),
    [
        (500, "", "", True),
        (429, "429", "", True),
        (408, "", "", True),
        (425, "", "", True),
        (400, "ThrottlingException", "", True),
        (400, "TooManyRequestsException", "", True),
        (400, "RequestTimeoutException", "", True),
        (400, "ReplicatedWriteConflictException", "", True),
        (400, "ExpiredToken", "", True),
        (400, "RequestTimeTooSkewed", "", True),
        (403, "InvalidSignatureException", "Signature not yet current: 2 is still later than 1", True),
        (403, "SignatureDoesNotMatch", "Signature expired: 1 is now earlier than 2", True),
        (403, "InvalidSignatureException", "The request signature we calculated does not match", False),
        (400, "ValidationException", "Signature expired", False),
        (403, "", "", False),
        (404, "ResourceNotFoundException", "", False),
    ],
)
def test_an_answer_that_may_pass(status: int, code: str, message: str, passes: bool) -> None:  # noqa: FBT001 - a table
    assert may_pass(status, code, message) == passes
