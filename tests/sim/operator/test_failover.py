"""`spec.rollout.standby: Always`: a standby stays behind the driver, and continues when that is killed or its node is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from kstatus import CURRENT, kstatus
from steering.machine import Operating
from steering.world import World
from test_ending import QUICK, begun
from test_rolling import HABITS, Rolling, names

ALWAYS: dict[str, Any] = {"strategy": "Standby", "standby": "Always", "readySeconds": 30}
LEASE = 20  # seconds; the default
FEW = settings(QUICK, max_examples=max(QUICK.max_examples // 5, 1))  # rollouts with a standby have a machine of their own


class FailingOver(Rolling):
    """And a standby that stays."""

    @rule(rollout=st.sampled_from([ALWAYS, ALWAYS, ALWAYS, None]), standby=st.sampled_from([*HABITS, "mute"]))
    def rolls(self, rollout: dict[str, Any] | None, standby: str) -> None:
        Operating.rolls(self, rollout, standby)


def guarded() -> Operating:
    operating = begun()
    operating.wait(seconds=20)
    operating.rolls(ALWAYS, "ok")
    operating.wait(seconds=20)
    return operating


def nodes(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in world.drivers()}


def kill(world: World) -> None:
    """SIGKILL of the driver that the status names: nobody releases its lease."""
    world.nodes.kill(world.status["driver"]["uid"], 137)


def is_ready(world: World, attempt: int) -> bool:
    ready = world.condition("Ready").get("status") == world.condition("StandbyReady").get("status") == "True"
    return ready and world.status["driver"]["attempt"] == attempt and "standby" in world.status


def test_a_standby_keeps_the_invariants_through_anything() -> None:
    run_state_machine_as_test(FailingOver, settings=FEW)  # type: ignore[no-untyped-call]  # hypothesis


def test_a_driver_that_is_killed_is_followed_when_its_lease_expires_and_the_next_standby_is_made() -> None:
    operating = guarded()
    world = operating.world
    kill(world)
    assert world.run(LEASE + 10, until=lambda: world.condition("Ready")["status"] == "False")
    assert world.run(LEASE + 10, until=lambda: world.status["driver"]["attempt"] == 2 and world.condition("Ready")["status"] == "True")
    assert world.run(60, until=lambda: is_ready(world, 2))
    assert names(operating) == ["orders-driver-2", "orders-driver-3"]
    operating.teardown()


def test_a_driver_on_a_dead_node_is_followed_and_the_next_standby_waits_until_the_node_is_gone() -> None:
    operating = guarded()
    world = operating.world
    place = nodes(world)
    assert place["orders-driver-1"] != place["orders-driver-2"]
    operating.lose_node(node=place["orders-driver-1"], how="dead", seconds=LEASE + 30)
    assert (world.status["driver"]["pod"], world.condition("Ready")["status"]) == ("orders-driver-2", "True")
    assert names(operating) == ["orders-driver-1", "orders-driver-2"]
    world.nodes.remove(place["orders-driver-1"])
    assert world.run(120, until=lambda: is_ready(world, 2))
    operating.teardown()


def test_a_standby_follows_while_no_operator_acts() -> None:
    operating = guarded()
    operating.pause(paused=True, seconds=1)
    world = operating.world
    kill(world)
    operating.wait(seconds=LEASE + 15)
    after = next(pod for pod in world.drivers() if pod["metadata"]["name"] == "orders-driver-2")
    assert '"phase": "Running"' in after["metadata"]["annotations"]["sluice.dev/report"]
    operating.pause(paused=False, seconds=60)
    assert is_ready(world, 2)
    operating.teardown()


def test_a_rollout_replaces_driver_and_standby_and_the_driver_works_until_the_next_is_ready() -> None:
    operating = guarded()
    world = operating.world
    operating.edit(edit="batch 9", seconds=6)
    assert (world.status["driver"]["attempt"], world.condition("Ready")["status"]) == (1, "True")
    assert world.run(90, until=lambda: is_ready(world, 3))
    assert names(operating) == ["orders-driver-3", "orders-driver-4"]
    operating.teardown()


def test_a_driver_that_was_scaled_says_so_though_its_standby_was_refused() -> None:
    operating = guarded()
    world = operating.world
    world.admission.policies["patch", "Pod"] = world.now + timedelta(seconds=90), "Invalid"
    world.admission.names = {"orders-driver-2"}
    operating.scale(replicas=3, seconds=40)
    assert scalings(world) == ["3 executors requested from orders-driver-1"]
    operating.wait(seconds=90)
    assert scalings(world) == ["3 executors requested from orders-driver-1", "3 executors requested from orders-driver-2"]
    operating.teardown()


def scalings(world: World) -> list[str]:
    return [event["message"] for event in world.memory.all("Event") if event["reason"] == "Scaling"]


def stranger(world: World, name: str, labels: dict[str, str]) -> None:
    meta = {"namespace": "default", "name": name, "labels": labels}
    body = world.memory.create({"kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "theirs", "image": "theirs"}]}})
    world.ledger.foreign.add(body["metadata"]["uid"])


LABELS = {"sluice.dev/consumer": "orders", "sluice.dev/role": "driver", "sluice.dev/attempt": "2"}


@pytest.mark.parametrize("labels", [{}, LABELS])
def test_a_strangers_pod_of_the_standbys_name_is_named_and_disturbs_nobody(labels: dict[str, str]) -> None:
    operating = begun()
    operating.wait(seconds=20)
    world = operating.world
    stranger(world, "orders-driver-2", labels)
    tries: list[Any] = []
    real = world.memory.create
    world.memory.create = lambda body: (tries.append(body) if body["kind"] == "Pod" else None, real(body))[1]  # type: ignore[method-assign]
    operating.rolls(ALWAYS, "ok")
    operating.wait(seconds=180)
    told = world.condition("StandbyReady")
    assert (told["status"], told["reason"], world.condition("Stalled"), kstatus(world.must())) == ("False", "ApiRefused", {}, CURRENT)
    assert "Pod orders-driver-2 exists and is not this resource's" in told["message"]
    assert "`kubectl delete pod orders-driver-2 -n default`" in told["message"]
    assert len(tries) <= 7
    assert world.reasons().count("ApiRefused") == 1
    assert world.status["driver"]["attempt"] == 1
    world.delete_pod("orders-driver-2", 0)
    assert world.run(90, until=lambda: is_ready(world, 1))
    operating.teardown()
