"""When the operator looks at the API server itself, and what it believes its watches without a look: lists and reads are counted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from counted import READS, Counted, started
from simulated_cluster import KEY, SPEC, ready

from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.plan.live_read_policy import RESYNC
from sluice_operator.plan.running import STALE
from sluice_operator.run.reconcile import reconcile


def test_how_a_driver_gets_on_is_told_without_a_look() -> None:
    world = Counted()
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    world.faults.done.clear()
    assert world.run(25, until=lambda: ready(world)), world.status
    assert world.listed == []


@pytest.mark.parametrize("change", [{"deletionTimestamp": "2026-01-01T00:00:00Z"}, None], ids=["going", "unseen"])
def test_a_driver_that_is_not_seen_alive_is_looked_for(change: dict[str, str] | None) -> None:
    """A watch may have shown it too late, or not yet: nothing is concluded from that."""
    world = started()
    (driver,) = world.drivers()
    world.context.cache.see("Pod", {**driver, "metadata": {**driver["metadata"], **(change or {})}}, world.now, gone=change is None)
    world.faults.done.clear()
    reconcile(world.context, KEY, world.now)
    assert world.listed == ["Job", "Pod"]
    assert world.status["phase"] == "Running"


@pytest.mark.parametrize(("alone", "lists"), [(True, ["Job", "Pod"]), (False, ["Job", "Pod", "Pod"])])
def test_executors_without_our_label_are_listed_if_the_driver_has_more_than_were_listed(alone: bool, lists: list[str]) -> None:  # noqa: FBT001 - pytest passes names
    """Once more, by Spark's label. A driver that does its tasks itself reports one, and has no pod for it."""
    world = started({**SPEC, "replicas": 1, "executor": {"inDriver": alone}})
    for pod in world.executors():
        world.memory.edit(pod, {"metadata": {"labels": {"sluice.dev/consumer": None}}})
    world.run(5)
    (driver,) = world.drivers()
    world.context.cache.see("Pod", driver, world.now, gone=True)
    world.faults.done.clear()
    reconcile(world.context, KEY, world.now)
    assert world.listed == lists


def test_only_a_driver_that_is_listened_to_puts_the_next_look_off() -> None:
    """Its silence would be news. While it starts, or drains, time may bring something else."""
    world = started()
    assert reconcile(world.context, KEY, world.now).latest == world.now + RESYNC
    wake = reconcile(world.context, KEY, world.now).wake
    assert wake
    assert world.context.cache.last_report_at(KEY) == world.now - (STALE - (wake - world.now))
    world.apply({**SPEC, "suspend": True})
    assert world.run(60, until=lambda: world.status["phase"] == "Suspended"), world.status
    assert reconcile(world.context, KEY, world.now).latest is None


@pytest.mark.parametrize(("others", "seconds"), [(200, 300), (1000, 1001)])
def test_many_resources_at_rest_are_looked_at_less_often(others: int, seconds: int) -> None:
    """Every five minutes; of a thousand, one a second in all."""
    world = started({**SPEC, "progressDeadlineSeconds": 3600})  # an open batch is looked at when that is over
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(others)}
    assert reconcile(world.context, KEY, world.now).latest == world.now + timedelta(seconds=seconds)


def test_what_a_driver_tells_is_not_written_over_a_change() -> None:
    """The watch has not shown an edit yet: the status is refused, and the next pass looks at what is there."""
    world = Counted()
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    seen = world.context.cache.body(KEY)
    assert world.run(25, until=lambda: ready(world)), world.status
    before = world.must()
    world.context.cache.see(CONSUMER_KIND, seen or {}, world.now)
    world.faults.done.clear()
    reconcile(world.context, KEY, world.now)
    assert world.listed == []
    assert world.must() == before


def test_taking_a_resource_over_saves_the_look_a_read() -> None:
    world = Counted()
    world.apply(SPEC)
    world.context.cache.see(CONSUMER_KIND, world.must(), world.now)
    reconcile(world.context, KEY, world.now)
    assert [call for call in world.faults.done if call[0] in READS] == [("list", "Job"), ("list", "Pod"), ("get", "Namespace")]
    assert world.drivers()


@pytest.mark.parametrize(("others", "least", "most"), [(0, 15, 24), (1000, 1, 3)])
def test_many_resources_are_looked_at_less_often_while_nothing_happens(others: int, least: int, most: int) -> None:
    """A driver that does not start is looked at every 30 s; a thousand of them would be a hundred reads a second. All of them get 12."""
    world = Counted()
    world.lose_nodes()
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(others)}
    world.apply(SPEC)
    world.run(10)
    world.faults.done.clear()
    world.run(600)
    assert least <= world.listed.count("Pod") <= most
