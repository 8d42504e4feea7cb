"""Credentials that are renewed beside the calls: what a call gets, and how long it waits."""

from __future__ import annotations

import contextlib
import datetime
import logging
import threading
from typing import Any

import pytest
from botocore.credentials import Credentials as Fixed
from botocore.credentials import DeferredRefreshableCredentials, RefreshableCredentials
from botocore.exceptions import ClientError, CredentialRetrievalError, NoCredentialsError, ReadTimeoutError

from sluice_checkpoints.aws import credentials as subject
from sluice_checkpoints.aws.credentials import Credentials, unavailable
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.dynamodb.table import attempt
from sluice_checkpoints.errors import AccessDenied, Refused

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
HOUR = 3600.0


class Provider:
    """Issues credentials for an hour, in virtual time; `open` lets it answer, `broken` makes it fail."""

    def __init__(self) -> None:
        self.now, self.asked, self.broken = 0.0, 0, list[Exception]()
        self.open = threading.Event()
        self.open.set()

    def issue(self) -> dict[str, str]:
        self.asked += 1
        self.open.wait()
        if self.broken:
            raise self.broken[0]
        until = BEGIN + datetime.timedelta(seconds=self.now + HOUR)
        return {"access_key": f"key-{self.asked}", "secret_key": "s", "token": "t", "expiry_time": until.isoformat()}

    def load(self) -> RefreshableCredentials:
        return DeferredRefreshableCredentials(self.issue, "test", lambda: BEGIN + datetime.timedelta(seconds=self.now))

    def clock(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def credentials(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Credentials:
    """Of a process that has made its first call."""
    monkeypatch.setattr(subject, "PATIENCE", 60.0)  # an attempt that is free to answer does so long before
    made = Credentials(provider.load, provider.clock)
    assert made.current().access_key == "key-1"
    monkeypatch.setattr(subject, "PATIENCE", 0.0)
    return made


def renewed(credentials: Credentials) -> None:
    assert credentials._attempt is not None
    credentials._attempt.join(60)


def test_a_slow_renewal_does_not_delay_a_call_while_the_old_ones_are_valid(credentials: Credentials, provider: Provider) -> None:
    """A heartbeat has a sixth of the lease for its answer; STS may take a minute."""
    provider.open.clear()
    for left in (840.0, 300.0, 1.0):
        provider.now = HOUR - left
        assert credentials.current().access_key == "key-1"
    assert provider.asked == 2
    provider.open.set()
    renewed(credentials)
    assert credentials.current().access_key == "key-2"


@pytest.mark.parametrize("left", [840.0, 300.0])
def test_a_failed_renewal_is_not_told_while_the_old_ones_are_valid(credentials: Credentials, provider: Provider, left: float) -> None:
    """By itself botocore raises in the last ten minutes, although they are valid."""
    provider.now = HOUR - left
    provider.broken = [CredentialRetrievalError(provider="test", error_msg="busy")]
    for _ in range(3):
        assert credentials.current().access_key == "key-1"
        renewed(credentials)
    assert provider.asked == 2
    provider.broken = []
    provider.now += subject.PAUSE
    credentials.current()
    renewed(credentials)
    assert credentials.current().access_key == "key-3"


@pytest.mark.parametrize("left", [840.0, 300.0, -1.0])
@pytest.mark.parametrize("error", [CredentialRetrievalError(provider="test", error_msg="busy"), AccessDenied("busy")])
def test_a_failed_renewal_is_one_line_of_the_log_in_our_words(
    credentials: Credentials, provider: Provider, caplog: pytest.LogCaptureFixture, left: float, error: Exception
) -> None:
    """By itself botocore logs a traceback for each, and keeps the error to itself while the old ones are valid for long."""
    provider.now, provider.broken = HOUR - left, [error]
    with contextlib.suppress(Again, AccessDenied):
        credentials.current()
    renewed(credentials)
    (line,) = caplog.records
    assert line.getMessage() == f"the AWS credentials could not be renewed: {error}"
    assert (line.name, line.exc_info) == (subject.log.name, None)


def test_a_failed_renewal_has_its_traceback_for_who_debugs(credentials: Credentials, provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    provider.now, provider.broken = HOUR - 300, [AccessDenied("busy")]
    credentials.current()
    renewed(credentials)
    assert [record.name for record in caplog.records if record.exc_info] == ["botocore.credentials"]


def test_a_failed_renewal_of_somebody_elses_is_logged_as_botocore_does(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    """A sink has clients of its own."""
    Credentials(provider.load, provider.clock).current()
    provider.broken = [AccessDenied("busy")]
    with pytest.raises(AccessDenied):
        provider.load().get_frozen_credentials()
    assert [record.name for record in caplog.records] == ["botocore.credentials"]


def test_without_valid_ones_a_call_says_why_and_may_be_made_again(
    credentials: Credentials, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.now = HOUR + 1
    provider.broken = [CredentialRetrievalError(provider="test", error_msg="busy")]
    provider.open.clear()
    with pytest.raises(Again, match="no valid AWS credentials"):
        credentials.current()
    provider.open.set()
    renewed(credentials)
    with pytest.raises(Again, match=r"no valid AWS credentials: .*busy"):
        credentials.current()
    provider.broken = []
    provider.now += subject.SHORT_PAUSE
    monkeypatch.setattr(subject, "PATIENCE", 60.0)
    assert credentials.current().access_key == "key-3"


def test_a_renewal_that_is_denied_ends_calls_once_the_old_ones_have_expired_and_not_before(
    credentials: Credentials, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trust of a role was taken away: its sessions last as long as they were given for. If the trust comes back, so do the calls."""
    provider.broken = [AccessDenied("the trust policy needs a statement")]
    for left in (840.0, 300.0, 1.0):
        provider.now = HOUR - left
        assert credentials.current().access_key == "key-1"
        renewed(credentials)
    provider.now = HOUR + 1
    monkeypatch.setattr(subject, "PATIENCE", 60.0)
    with pytest.raises(AccessDenied, match="the trust policy needs a statement"):
        credentials.current()
    provider.broken = []
    provider.now += subject.SHORT_PAUSE
    assert credentials.current().access_key.startswith("key-")


def test_a_start_waits_longer_for_its_first_ones_than_a_call_does(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its check has two seconds, and a call has other things to do."""
    monkeypatch.setattr(subject, "PATIENCE", 0.0)
    made = Credentials(provider.load, provider.clock, "credentials of role r")
    provider.open.clear()
    with pytest.raises(Again, match="there are no valid credentials of role r: their provider has not answered yet"):
        made.current()
    provider.open.set()
    made.begun(60.0)
    assert made.current().access_key == "key-1"


def test_no_credentials_at_all_are_refused_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With advice for a laptop and for a pod; waiting would bring none. A line of the log about a renewal would mislead."""
    monkeypatch.setattr(subject, "PATIENCE", 60.0)
    with pytest.raises(Refused, match="run `aws configure` or set AWS_PROFILE; in a pod, give its service account a role"):
        Credentials(lambda: None).current()
    assert caplog.records == []


def test_credentials_that_never_expire_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "PATIENCE", 60.0)
    loads: list[int] = []

    def load() -> Fixed:
        loads.append(1)
        return Fixed("key", "s")

    made = Credentials(load)
    assert [made.current().access_key for _ in range(3)] == ["key"] * 3
    assert len(loads) == 1


def _sts(code: str, operation: str = "AssumeRoleWithWebIdentity") -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(response, operation)


@pytest.mark.parametrize("error", [_sts("IDPCommunicationError"), _sts("Throttling"), CredentialRetrievalError(provider="p", error_msg="m")])
def test_a_renewal_that_fails_inside_a_call_of_boto3_is_retried(error: Exception) -> None:
    """Tables and shards are asked for with boto3, which renews in the call."""

    def call() -> None:
        raise error

    with pytest.raises(Again, match="credentials could not be renewed"):
        attempt(call)


@pytest.mark.parametrize("error", [_sts("ValidationException", "GetItem"), NoCredentialsError(), ReadTimeoutError(endpoint_url="x"), ValueError()])
def test_other_errors_are_not_those_of_credentials(error: Exception) -> None:
    assert unavailable(error) is None
