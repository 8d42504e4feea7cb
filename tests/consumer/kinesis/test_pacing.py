"""A shard is asked no more often, and read no faster, than the service allows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sluice_consumer.kinesis.pacing import Pacer

MIB = 1024 * 1024


@dataclass
class Time:
    now: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def pacer(time: Time) -> Pacer:
    return Pacer(lambda: time.now, time.sleep)


def test_five_calls_a_second(pacer: Pacer, time: Time) -> None:
    for _ in range(5):
        pacer.before("GetRecords", "a")
    assert time.now == 0
    for _ in range(50):
        pacer.before("GetRecords", "a")
    assert time.now == pytest.approx(10)


def test_calls_and_shards_have_limits_of_their_own(pacer: Pacer, time: Time) -> None:
    """As the API reference has it."""
    for shard in "abcdefgh":
        for _ in range(5):
            pacer.before("GetRecords", shard)
            pacer.before("GetShardIterator", shard)
    assert time.now == 0


def test_two_mebibytes_a_second(pacer: Pacer, time: Time) -> None:
    """A reply of 10 MiB blocks the shard for four seconds more than the one it had saved up, and no other shard."""
    pacer.before("GetRecords", "a")
    pacer.after("a", 10 * MIB)
    pacer.before("GetRecords", "b")
    assert time.now == 0
    pacer.before("GetRecords", "a")
    assert time.now == pytest.approx(4)


def test_pauses_are_saved_up_for_a_second_only(pacer: Pacer, time: Time) -> None:
    pacer.before("GetRecords", "a")
    time.now = 3600
    for _ in range(10):
        pacer.before("GetRecords", "a")
    assert time.now == pytest.approx(3601)
