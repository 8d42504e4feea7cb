"""The operator dies after any write, or never hears that it happened: the same life of a resource comes to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenarios import live
from simulated_cluster import SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Iterable


def undisturbed_writes() -> int:
    return live(SimulatedCluster()).faults.writes


WRITES = undisturbed_writes()


@pytest.mark.parametrize("at", range(1, WRITES + 1))
def test_a_crash_after_any_write_is_survived(at: int) -> None:
    """The world checks at every second that there are never two drivers, and none before its migration."""
    world = SimulatedCluster()
    world.faults.crash = {at}
    assert live(world).operator.crashes == 1


@pytest.mark.parametrize("at", range(1, WRITES + 1))
def test_a_lost_reply_to_any_write_is_survived(at: int) -> None:
    world = SimulatedCluster()
    world.faults.lose = {at}
    live(world)


@pytest.mark.parametrize("every", [2, 3, 5])
def test_an_operator_that_keeps_crashing_still_gets_there(every: int) -> None:
    world = SimulatedCluster()
    world.faults.crash = multiples(every)
    assert live(world).operator.crashes == world.faults.writes // every


def multiples(every: int) -> set[int]:
    numbers: Iterable[int] = range(every, 20 * WRITES, every)
    return set(numbers)


@pytest.mark.parametrize("lag", [3, 11])
def test_a_cache_that_is_seconds_old_misleads_nobody(lag: int) -> None:
    """Watches deliver late and all at once; what is done is planned from a live look."""
    world = SimulatedCluster()
    world.operator.lag = lag
    live(world)


def test_a_driver_start_takes_one_status_write_and_one_creation() -> None:
    """The budget of writes of a whole life, so that a change that doubles it is noticed."""
    assert WRITES <= 60
