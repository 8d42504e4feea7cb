"""What goes wrong in the life of a resource, and what becomes of it, in virtual time."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from scenarios import started
from simulated_cluster import SPEC, SimulatedCluster, assert_nothing_left, ready

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Rejected
from sluice_operator.resource.fields import RestartSpec

Json = dict[str, Any]


def test_a_failing_driver_backs_off_longer_each_time() -> None:
    world = started()
    world.habits.exits = [1, 1, 1]
    pauses = []
    for failures in (1, 2, 3):
        assert world.run(120, until=lambda failures=failures: world.status["restarts"]["count"] == failures)
        ended = world.now
        assert world.run(120, until=lambda failures=failures: world.status["driver"]["attempt"] == failures + 1)
        pauses.append((world.now - ended).total_seconds())
    assert pauses == pytest.approx([10, 20, 40], abs=3)
    assert world.run(60, until=lambda: ready(world))
    assert world.run(700, until=lambda: world.status["restarts"]["count"] == 0)


def test_a_held_lease_does_not_count_as_failure() -> None:
    """75 and 76 are somebody else's epoch going on."""
    world = started()
    world.habits.exits = [75, 76]
    assert world.run(200, until=lambda: world.status["driver"]["attempt"] == 3 and ready(world))
    assert world.status["restarts"]["count"] == 0
    assert world.status["restarts"]["interruptions"] == 2


def test_a_refusal_of_the_driver_stalls() -> None:
    world = started()
    world.habits.exits = [65]
    assert world.run(30, until=lambda: world.condition("Stalled").get("status") == "True")
    assert "exit 65" in world.condition("Stalled")["message"]
    assert world.status["phase"] == "Failed"


def test_a_table_of_another_owner_stalls_until_it_is_handed_over() -> None:
    world = started({**SPEC, "suspend": True})
    world.place.table("sluice_default_orders").owner = "test/orders"
    world.apply(SPEC)
    assert world.run(60, until=lambda: world.condition("Stalled").get("reason") == "Refused")
    assert "belongs to test/orders, and this driver to default/orders" in world.condition("Stalled")["message"]
    world.run(120)
    assert world.condition("Stalled")["status"] == "True"
    assert world.place.table("sluice_default_orders").generation == 0
    world.place.table("sluice_default_orders").owner = "default/orders"
    assert world.run(400, until=lambda: ready(world))


def test_a_resource_that_is_made_again_goes_on_with_its_table() -> None:
    world = started()
    world.delete()
    assert world.run(200, until=lambda: world.resource() is None)
    world.apply(SPEC)
    assert world.run(60, until=lambda: ready(world)), world.status
    assert world.place.table("sluice_default_orders").generation == 2


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


def test_while_executors_of_a_killed_driver_leave_nothing_is_said_to_drain() -> None:
    world = started()
    world.habits.exits = [1]
    phases = set()
    for _ in range(30):
        world.run(1)
        phases.add(world.status["phase"])
    assert "Draining" not in phases
    assert "BackingOff" in phases


def test_a_pod_that_is_overdue_is_named_while_the_resource_is_deleted() -> None:
    world = started()
    world.lose_nodes()
    uid = world.status["driver"]["uid"]
    world.delete()
    world.run(200)
    assert world.status["phase"] == "Deleting"
    assert f"sluice.dev/force={uid}" in world.condition("Ready")["message"]
    passes = world.operator.passes
    world.run(120)
    assert world.operator.passes - passes <= 5
    world.annotate(force=uid)
    world.run(5)
    world.restore_nodes()
    world.run(10)
    assert_nothing_left(world)


def test_an_exit_of_zero_that_nobody_asked_for_is_a_failure() -> None:
    """A consumer of a stream has no end."""
    world = started()
    world.habits.exits = [0]
    assert world.run(30, until=lambda: world.status["restarts"]["count"] == 1)


def test_a_driver_that_fails_after_a_long_time_is_followed_at_once_and_the_next_failure_by_a_pause() -> None:
    """Counted as a failure. A series begins with the second one: before that nothing says that a pause helps."""
    world = started()
    world.run(RestartSpec().reset_after_seconds)
    pauses = []
    for failures in (1, 2):
        world.habits.exits = [1]
        assert world.run(120, until=lambda failures=failures: world.status["restarts"]["count"] == failures)
        ended = world.now
        assert world.run(120, until=lambda failures=failures: world.status["driver"]["attempt"] == failures + 1)
        pauses.append((world.now - ended).total_seconds())
        assert world.run(60, until=lambda: ready(world))
    assert pauses == pytest.approx([0, 20], abs=3)


@pytest.mark.parametrize("minutes", [-20, -11, 0, 11], ids=lambda minutes: f"the operator's clock {minutes} minutes ahead")
@pytest.mark.parametrize("restart", [{}, {"resetAfterSeconds": 1}], ids=["defaults", "a driver is stable after a second"])
def test_a_driver_that_fails_at_its_start_is_never_followed_without_a_pause(minutes: int, restart: Json) -> None:
    """How long it ran is the time between two clocks. An attempt in `backoffSeconds`, at most."""
    world = SimulatedCluster()
    world.ahead = timedelta(minutes=minutes)
    world.place.table("sluice_default_orders").owner = "test/orders"
    world.apply({**SPEC, "restart": restart})
    world.run(600)
    assert 2 <= world.status["driver"]["attempt"] <= 600 / RestartSpec().backoff_seconds


def test_while_executors_of_a_driver_leave_that_failed_after_a_long_time_the_resource_says_why_it_failed() -> None:
    world = started()
    world.run(RestartSpec().reset_after_seconds)
    beside = world.drivers()[0]["spec"]["nodeName"]
    world.nodes.lose(next(node for pod in world.executors() if (node := pod["spec"]["nodeName"]) != beside), "cut")
    world.habits.exits = [1]
    assert world.run(30, until=lambda: world.condition("Ready").get("reason") == "Failed")
    world.run(5)
    assert (world.status["phase"], world.condition("Ready")["reason"]) == ("Starting", "Failed")
    assert "waiting until" in world.condition("Ready")["message"]


def test_a_driver_pod_deleted_by_hand_is_replaced_at_once() -> None:
    world = started()
    for attempt in (1, 2, 3):
        world.run(20)
        world.delete_pod(f"orders-driver-{attempt}")
        assert world.run(20, until=lambda attempt=attempt: world.status["driver"]["attempt"] == attempt + 1 and ready(world))
        assert world.status["restarts"]["count"] == 0
        assert world.status["restarts"]["interruptions"] == attempt
    assert "DriverFailed" not in world.reasons()


def test_executors_of_a_vanished_driver_are_waited_for() -> None:
    """`kubectl delete pod --force`: the next driver could start at once, but the executors may still work."""
    world = started()
    world.run(14)  # a driver that is lost before backoffSeconds is followed after a pause, in which its executors end
    world.delete_pod("orders-driver-1", grace=0)
    assert world.run(60, until=lambda: world.status["driver"]["attempt"] == 2 and ready(world))
    assert world.status["restarts"]["reason"] == "DriverLost"


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


def test_a_pod_without_a_node_that_a_finalizer_holds_is_named() -> None:
    """It never ran: its deletion waits for nobody but that program. Its name, and its finalizers, may be anything."""
    world = SimulatedCluster()
    world.lose_nodes()
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    (driver,) = world.drivers()
    world.memory.edit(driver, {"metadata": {"finalizers": [f"{'x' * 250}/\x1b[31m{number}" for number in range(9)]}, "spec": {"nodeName": None}})
    world.delete()
    assert world.run(90, until=lambda: world.condition("Ready").get("reason") == "PodHeld"), world.status
    message = world.condition("Ready")["message"]
    assert message.isprintable()
    assert len(message) < 900
    name, namespace, patch = off(message)
    world.memory.edit(world.memory.get("Pod", namespace, name) or {}, patch)
    assert world.run(60, until=lambda: world.resource() is None)
