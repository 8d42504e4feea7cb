"""A lease is kept from between the calls that take time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sluice_checkpoints.errors import LeaseHeld
from sluice_checkpoints.protocol.lease_keeper import LeaseKeeper

LEASE = 30.0


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    @property
    def clock(self) -> Callable[[], float]:
        return lambda: self.now

    @property
    def sleep(self) -> Callable[[float], None]:
        return self.pass_

    def pass_(self, seconds: float) -> None:
        self.now += seconds


class Lease(LeaseKeeper):
    """Notes when it beats; a beat takes `seconds`, and is refused once the lease is `lost`."""

    def __init__(self, time: Time, sent: float) -> None:
        super().__init__(time, round(LEASE * 1000), sent)
        self.time, self.at, self.seconds, self.lost = time, list[float](), 0.0, False

    def beat(self) -> None:
        if self.lost:
            raise LeaseHeld("another's")
        self.at.append(self.time.now)
        self.time.now += self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def lease(time: Time) -> Lease:
    return Lease(time, time.now)


def test_a_beat_is_sent_when_a_third_of_the_lease_has_passed(time: Time, lease: Lease) -> None:
    for _ in range(62):
        time.now += 0.5
        lease.alive()
    assert lease.at == [110.0, 120.0, 130.0]


def test_the_third_counts_from_when_the_last_beat_was_sent(time: Time) -> None:
    late = Lease(time, sent=90.0)
    late.seconds = 4.0
    for now in (100.0, 109.9, 110.0):
        time.now = now
        late.alive()
    assert late.at == [100.0, 110.0]


def test_a_pause_ends_in_time_and_beats_meanwhile(time: Time, lease: Lease) -> None:
    """Waiting for a source that has to be quiet takes minutes."""
    lease.pause(125.0)
    assert (lease.at, time.now) == ([110.0, 120.0], 125.0)


def test_a_lease_that_was_lost_ends_whatever_goes_on(time: Time, lease: Lease) -> None:
    lease.lost = True
    lease.alive()
    time.now += 10
    with pytest.raises(LeaseHeld):
        lease.alive()
    with pytest.raises(LeaseHeld):
        lease.pause(time.now + 1)
