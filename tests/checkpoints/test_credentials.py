from __future__ import annotations

import datetime
import threading
from collections.abc import Callable

import pytest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ClientError, CredentialRetrievalError, ReadTimeoutError

from sluice_checkpoints.credentials import PAUSE_SECONDS, KeptCredentials
from sluice_checkpoints.dynamodb import attempt
from sluice_checkpoints.retrying import Again

NOW = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
DOWN = CredentialRetrievalError(provider="sts", error_msg="no answer")


class Bench:
    """Credentials that expire, a service that gives new ones when a test says so, and a clock."""

    def __init__(self, minutes: float) -> None:
        self.now, self.minutes = NOW, minutes
        self.answer, self.asked, self.done = threading.Event(), threading.Event(), threading.Event()
        self.error: Exception | None = None
        self.refreshes = 0
        self.credentials = RefreshableCredentials(
            "old", "secret", "token", self._until(minutes), self._refresh, "test", time_fetcher=lambda: self.now
        )
        self.kept = KeptCredentials(self.credentials, clock=self._seconds)

    def _seconds(self) -> float:
        return (self.now - NOW).total_seconds()

    def _until(self, minutes: float) -> datetime.datetime:
        return self.now + datetime.timedelta(minutes=minutes)

    def _refresh(self) -> dict[str, str]:
        self.refreshes += 1
        self.asked.set()
        assert self.answer.wait(30)
        if self.error:
            raise self.error
        return {"access_key": "new", "secret_key": "s", "token": "t", "expiry_time": self._until(60).isoformat()}

    def key(self) -> str:
        """What a call would be signed with."""
        return str(self.kept.current().access_key)

    def settle(self) -> None:
        """Waits for the refresh that is under way."""
        with self.kept._lock:
            pass


def test_a_call_does_not_wait_for_a_refresh_while_its_credentials_are_valid() -> None:
    """A heartbeat has a sixth of the lease; STS and Pod Identity may take a minute."""
    bench = Bench(minutes=20)
    assert bench.key() == "old"
    bench.now += datetime.timedelta(minutes=6)
    assert bench.key() == "old"  # 14 minutes are left: botocore would ask now, in this call
    assert bench.asked.wait(30)
    assert bench.key() == "old"
    bench.answer.set()
    bench.settle()
    assert (bench.key(), bench.refreshes) == ("new", 1)


@pytest.mark.parametrize("minutes", [12, 2], ids=["early", "in the last ten minutes, when botocore raises"])
def test_credentials_that_are_valid_stay_in_use_when_a_refresh_fails(minutes: int) -> None:
    """And the next try comes after a pause."""
    bench = Bench(minutes=20)
    bench.key()
    bench.error = DOWN
    bench.answer.set()
    bench.now += datetime.timedelta(minutes=20 - minutes)
    bench.key()
    bench.settle()
    assert (bench.key(), bench.refreshes) == ("old", 1)
    bench.now += datetime.timedelta(seconds=PAUSE_SECONDS + 1)
    bench.error = None
    bench.key()
    bench.settle()
    assert (bench.key(), bench.refreshes) == ("new", 2)


THROTTLED = ClientError({"Error": {"Code": "Throttling", "Message": "slow down"}}, "AssumeRoleWithWebIdentity")


@pytest.mark.parametrize("error", [DOWN, THROTTLED, ReadTimeoutError(endpoint_url="sts")], ids=["no answer", "throttled", "a time-out"])
def test_a_call_that_has_nothing_valid_to_sign_with_is_made_again(error: Exception) -> None:
    """The caller's patience decides for how long."""
    bench = Bench(minutes=20)
    bench.key()
    bench.now += datetime.timedelta(minutes=21)
    bench.error = error
    bench.answer.set()
    with pytest.raises(Again, match="credentials"):
        bench.key()
    bench.error = None
    assert bench.key() == "new"


def test_credentials_that_never_expire_are_used_as_they_are() -> None:
    """From the environment, for example."""
    assert KeptCredentials(Credentials("a", "b")).current().access_key == "a"


def test_one_refresh_is_under_way_at_a_time() -> None:
    """However many threads sign."""
    bench = Bench(minutes=20)
    bench.key()
    bench.now += datetime.timedelta(minutes=6)
    calls: list[Callable[[], None]] = [lambda: bench.key() and None for _ in range(8)]
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.answer.set()
    bench.settle()
    assert bench.refreshes == 1


EXPIRED = ClientError({"Error": {"Code": "ExpiredTokenException", "Message": "expired"}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "GetItem")


@pytest.mark.parametrize("error", [EXPIRED, DOWN], ids=["the service says that they have expired", "they could not be had"])
def test_a_call_of_dynamodb_is_made_again_when_its_credentials(error: Exception) -> None:
    """It is no refusal: a Job that ends with 65 is not tried again."""

    def call() -> None:
        raise error

    with pytest.raises(Again):
        attempt(call)
