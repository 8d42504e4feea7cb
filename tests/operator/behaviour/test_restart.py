"""One driver after another: the next one is named before the last one is asked to end, and made when nothing of that is left."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_cluster import SPEC, SimulatedCluster, ready

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Rejected

CHANGED = {**SPEC, "batch": {"intervalSeconds": 9}}
AGAIN = {**SPEC, "batch": {"intervalSeconds": 7}}
FOLLOWS = ("DriverDraining", "DriverExited", "DriverDisrupted", "DrainCutShort", "DriverStarting", "DriverReady")


def draining(spec: dict[str, Any] = CHANGED) -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply(SPEC)
    assert world.run(60, until=lambda: ready(world)), world.status
    world.apply(spec)
    assert world.run(2, until=lambda: "leaving" in world.status["driver"]), world.status
    return world


def names(world: SimulatedCluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in world.drivers()]


def test_the_next_driver_is_named_while_the_last_one_drains() -> None:
    world = draining()
    driver = world.status["driver"]
    assert names(world) == ["orders-driver-1"]
    assert (driver["attempt"], driver["pod"], driver["leaving"]["pod"]) == (2, "orders-driver-2", "orders-driver-1")
    assert (world.status["phase"], world.condition("Draining")["status"], world.condition("Ready")["status"]) == ("Starting", "True", "False")
    assert world.condition("Ready")["message"].startswith("orders-driver-1 finishes its work, then the next driver starts")
    assert "stream" not in world.status  # those were the last one's


def test_a_driver_that_follows_another_is_told_that_there_was_a_table() -> None:
    """The first one may make it; one that found it gone would lose what lies between. Also after one that never got so far."""

    def told(world: SimulatedCluster) -> list[bool]:
        return ["SLUICE_TABLE_MADE" in str(pod["spec"]["containers"][0]["env"]) for pod in world.drivers()]

    world = draining()
    assert told(world) == [False]
    for spec in (AGAIN, CHANGED):
        assert world.run(60, until=lambda: ready(world))
        assert told(world) == [True]
        world.apply(spec)
        assert world.run(2, until=lambda: "leaving" in world.status["driver"]), world.status


def test_what_happened_is_told_once_and_in_order() -> None:
    world = draining()
    assert world.run(60, until=lambda: ready(world))
    assert [reason for reason in world.reasons() if reason in FOLLOWS][2:] == ["DriverDraining", "DriverExited", "DriverStarting", "DriverReady"]
    assert "leaving" not in world.status["driver"]
    assert world.condition("Draining")["status"] == "False"


def test_of_changes_during_a_drain_the_last_one_wins() -> None:
    world = draining()
    world.apply(AGAIN)
    assert world.run(60, until=lambda: ready(world))
    assert names(world) == ["orders-driver-3"]
    assert '"intervalSeconds": 7' in world.drivers()[0]["metadata"]["annotations"]["sluice.dev/config"]
    assert world.reasons().count("DriverStarting") == 2


def test_paused_in_between_nothing_is_made_and_what_drains_is_told() -> None:
    world = draining()
    world.annotate(paused="true")
    assert world.run(2, until=lambda: world.condition("Ready")["reason"] == "Paused")
    assert (world.status["phase"], names(world), world.condition("Draining")["status"]) == ("Draining", ["orders-driver-1"], "True")
    assert world.run(30, until=lambda: not names(world))
    world.run(20)
    assert names(world) == []
    assert (world.status["phase"], world.condition("Draining")["status"]) == ("Pending", "False")
    world.annotate(paused="false")
    assert world.run(60, until=lambda: ready(world))
    assert names(world) == ["orders-driver-2"]


@pytest.mark.parametrize(("change", "phase"), [({"suspend": True}, "Suspended"), ({"replicas": 0}, "Idle")])
def test_nothing_is_made_if_nothing_is_wanted_any_more(change: dict[str, Any], phase: str) -> None:
    world = draining()
    world.apply({**CHANGED, **change})
    assert world.run(60, until=lambda: world.status["phase"] == phase), world.status
    assert names(world) == []
    assert world.reasons().count("DriverExited") == 1
    assert world.reasons().count("DriverStarting") == 1
    assert not {"pod", "leaving"} & world.status["driver"].keys()


def test_a_driver_given_up_in_a_restart_is_followed_by_one_that_takes_the_lease() -> None:
    """Its node is lost; the annotation names the pod that leaves, not the one that the status names."""
    world = draining()
    world.lose_nodes()
    uid = world.status["driver"]["leaving"]["uid"]
    assert world.run(300, until=lambda: world.condition("Ready")["reason"] == "DriverOverdue"), world.status
    assert f"sluice.dev/force={uid}" in world.condition("Ready")["message"]
    world.annotate(force=uid)
    assert world.run(30, until=lambda: names(world) == ["orders-driver-2"]), world.status
    assert '"force": true' in world.drivers()[0]["metadata"]["annotations"]["sluice.dev/config"]


def test_a_next_driver_that_is_refused_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world, full = draining(), True
    real = MemoryCluster.create

    def create(memory: MemoryCluster, body: dict[str, Any]) -> dict[str, Any]:
        if full and body["kind"] == "Pod" and body["metadata"]["name"] == "orders-driver-2":
            raise Rejected("Forbidden", "exceeded quota")
        return real(memory, body)

    monkeypatch.setattr(MemoryCluster, "create", create)
    assert world.run(60, until=lambda: "exceeded quota" in world.condition("Ready")["message"]), world.status
    assert world.condition("Stalled")["reason"] == "ApiRefused"
    world.run(100)
    assert world.condition("Draining")["status"] == "False"
    full = False
    assert world.run(120, until=lambda: ready(world)), world.status
    assert [reason for reason in world.reasons() if reason in FOLLOWS][2:] == ["DriverDraining", "DriverExited", "DriverStarting", "DriverReady"]


def test_a_status_that_somebody_changed_meanwhile_lets_nothing_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition of the write that names the next driver fails: the last one is not asked to end before it holds."""
    world = SimulatedCluster()
    world.apply(SPEC)
    assert world.run(60, until=lambda: ready(world))
    real = MemoryCluster.replace_status

    def late(memory: MemoryCluster, body: dict[str, Any]) -> dict[str, Any]:
        return real(memory, {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}})

    monkeypatch.setattr(MemoryCluster, "replace_status", late)
    world.apply(CHANGED)
    world.run(20)
    assert [pod["metadata"].get("deletionTimestamp") for pod in world.drivers()] == [None]
    assert world.status["driver"]["attempt"] == 1
    monkeypatch.undo()
    assert world.run(60, until=lambda: ready(world) and world.status["driver"]["attempt"] == 2)
