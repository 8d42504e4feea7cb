"""What goes wrong in the life of a resource, and what becomes of it, in virtual time."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from scenarios import started
from simulated_cluster import SPEC, ready

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Rejected

Json = dict[str, Any]


def test_an_invalid_spec_leaves_the_last_good_one_running() -> None:
    world = started()
    world.apply({**SPEC, "pipelin": {}})
    world.run(10)
    assert world.condition("SpecValid")["status"] == "False"
    assert "spec.pipelin: unknown field; did you mean pipeline?" in world.condition("SpecValid")["message"]
    assert world.condition("Stalled")["reason"] == "SpecInvalid"
    assert world.condition("Ready")["status"] == "True"
    assert world.reasons().count("SpecInvalid") == 1
    world.delete_pod("orders-driver-1")
    assert world.run(60, until=lambda: world.status["driver"]["attempt"] == 2 and world.condition("Ready")["status"] == "True")


def test_a_refusal_stays_told_while_it_is_tried_again() -> None:
    world = started()
    world.habits.exits = [65, 65, 65]
    assert world.run(30, until=lambda: bool(world.condition("Stalled")))
    since, attempts = world.condition("Stalled")["lastTransitionTime"], set()
    while world.habits.exits:
        world.run(1)
        attempts.add(world.status["driver"]["attempt"])
        assert world.condition("Stalled")["lastTransitionTime"] == since
        assert (world.status["phase"], world.condition("Reconciling")) == ("Failed", {})
        assert "exit 65" in world.condition("Stalled")["message"]
    assert {2, 3} <= attempts
    assert world.run(200, until=lambda: ready(world))
    assert not world.condition("Stalled")
    world.habits.exits = [65]
    assert world.run(30, until=lambda: bool(world.condition("Stalled")))
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    assert world.run(5, until=lambda: not world.condition("Stalled"))


def test_a_driver_on_a_lost_node_is_waited_for_until_the_user_gives_it_up() -> None:
    """At most one driver: no time-out decides that, the annotation with its uid does."""
    world = started()
    world.lose_nodes()
    uid = world.status["driver"]["uid"]
    world.delete_pod("orders-driver-1")
    world.run(600)
    assert world.status["driver"]["attempt"] == 1
    assert world.condition("Ready")["reason"] == "DriverOverdue"
    assert uid in world.condition("Ready")["message"]
    world.annotate(force="another-uid")
    world.run(60)
    assert world.status["driver"]["attempt"] == 1
    world.annotate(force=uid)
    world.run(10)
    world.restore_nodes()
    assert world.run(60, until=lambda: ready(world))
    assert world.status["driver"]["attempt"] == 2
    assert '"force": true' in world.drivers()[0]["metadata"]["annotations"]["sluice.dev/config"]


def test_a_status_that_the_server_refuses_is_tried_again_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that is newer than its CRD writes what the schema does not know; asking again at once is no use."""
    world, tries = started(), 0

    def refused(_body: Json) -> Json:
        nonlocal tries
        tries += 1
        world.disturb()
        raise Rejected("Invalid", "status.phase: unsupported value")

    monkeypatch.setattr(world.memory, "replace_status", refused)
    world.apply({**SPEC, "replicas": 5})
    world.run(90)
    assert 1 <= tries <= 30
    assert world.reasons().count("StatusRefused") == 1
    monkeypatch.undo()
    assert world.run(60, until=lambda: ready(world))


def test_nothing_is_done_while_the_crd_is_older_than_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """It drops fields that it does not know in silence, and the status is the write-ahead log: what is not stored may not be done."""
    world, real = started(), MemoryCluster.replace_status

    def pruned(body: Json) -> Json:
        status = {**body["status"], "driver": {key: value for key, value in body["status"]["driver"].items() if key != "leaving"}}
        return real(world.memory, {**body, "status": status})

    monkeypatch.setattr(world.memory, "replace_status", pruned)
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    world.run(20)
    assert [pod["metadata"]["name"] for pod in world.drivers()] == ["orders-driver-1"]
    assert "deletionTimestamp" not in world.drivers()[0]["metadata"]
    assert world.reasons().count("StatusRefused") == 1
    monkeypatch.undo()
    assert world.run(120, until=lambda: ready(world) and world.status["driver"]["attempt"] == 2)


def test_a_driver_that_ends_while_hands_are_off_is_not_called_ready() -> None:
    """Its last report stands in its annotation for as long as its pod does, and nobody may bury it."""
    world = started()
    world.annotate(paused="true")
    world.run(3)
    world.habits.exits = [1]
    assert world.run(5, until=lambda: world.condition("Ready")["status"] == "False")
    assert world.drivers()
    world.annotate(paused="false")
    assert world.run(90, until=lambda: ready(world))


@pytest.mark.parametrize("how", ["edit", "fail", "delete"])
def test_a_finished_pod_that_a_foreign_finalizer_holds_is_not_waited_for(how: str) -> None:
    """A mesh, a batch queue or a backup keeps the object; nothing runs in it any more, and no annotation of ours could take it away."""
    world = started()
    held = [*world.drivers(), *world.executors()]
    for pod in held:
        world.memory.edit(pod, {"metadata": {"finalizers": ["theirs.example.com/hold"]}})
    if how == "edit":
        world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    elif how == "fail":
        world.habits.exits = [1]
    else:
        world.delete()
        assert world.run(120, until=lambda: world.resource() is None), world.status
        return
    assert world.run(120, until=lambda: world.status["driver"]["attempt"] == 2 and ready(world)), world.status
    assert world.memory.get("Pod", "default", "orders-driver-1") is not None
    assert world.status["restarts"].get("reason") == ("Failed" if how == "fail" else None)  # it is not taken for lost


HOLD = "mesh.example.com/drain"


def off(message: str) -> tuple[str, str, Json]:
    found = re.search(r"kubectl patch pod (\S+) -n (\S+) --type=merge -p '(\{[^']*\})'", message)
    assert found is not None, message
    return found[1], found[2], json.loads(found[3])


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_a_message_names_the_finalizers_of_an_overdue_pod_and_the_command_that_takes_them_off(role: str) -> None:
    world = started()
    for pod in world.drivers() if role == "driver" else world.executors():
        world.memory.edit(pod, {"metadata": {"finalizers": [HOLD, "foregroundDeletion"]}})
    uid = world.status["driver"]["uid"]
    world.lose_nodes()
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    if role == "executor":
        world.run(200)
        world.memory.remove("Pod", "default", "orders-driver-1", uid, 0)  # a person deletes the driver by force; its executors follow
    assert world.run(400, until=lambda: HOLD in world.condition("Stalled").get("message", "")), world.status
    stalled = world.condition("Stalled")
    assert (stalled["reason"], f"sluice.dev/force={uid}" in stalled["message"]) == ("DriverOverdue", True)
    assert "foregroundDeletion" not in stalled["message"]
    world.annotate(force=uid)
    assert world.run(60, until=lambda: world.condition("Stalled").get("reason") == "PodHeld"), world.status
    message = world.condition("Stalled")["message"]
    assert HOLD in message
    assert "annotate" not in message
    assert "PodHeld" in world.reasons()
    while "PodHeld" in world.condition("Stalled").get("reason", ""):
        name, namespace, patch = off(world.condition("Stalled")["message"])
        world.memory.edit(world.memory.get("Pod", namespace, name) or {}, patch)
        world.run(40)
    world.restore_nodes()
    assert world.run(120, until=lambda: ready(world) and world.status["driver"]["attempt"] == 2), world.status
