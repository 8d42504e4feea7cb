"""Rollouts with a standby, `spec.rollout`: the operator's machine with a user who deploys, and standbys that come, are late, fail or find no room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from kstatus import CURRENT, IN_PROGRESS, kstatus
from steering.load import Demand
from steering.machine import Operating
from test_ending import QUICK, begun

STANDBY: dict[str, Any] = {"strategy": "Standby", "readySeconds": 30}
HABITS = ["ok", "ok", "pending", "slow", "fails"]
STOPS: dict[str, Callable[[Operating], None]] = {
    "suspend": lambda operating: operating.suspend(seconds=60),
    "scale": lambda operating: operating.scale(replicas=0, seconds=60),
    "moves": lambda operating: operating.moves("one", "latest", seconds=60),
    "back": lambda operating: operating.edit(edit="back", seconds=60),
}
"""What ends a rollout: each lasts a minute."""


class Rolling(Operating):
    """And rollouts."""

    @rule(rollout=st.sampled_from([STANDBY, STANDBY, STANDBY, None]), standby=st.sampled_from(HABITS))
    def rolls(self, rollout: dict[str, Any] | None, standby: str) -> None:
        super().rolls(rollout, standby)


def rolling(standby: str = "ok") -> Operating:
    operating = begun()
    operating.wait(seconds=20)
    operating.rolls(STANDBY, standby)
    operating.wait(seconds=2)
    assert operating.world.condition("Ready")["status"] == "True"
    return operating


def names(operating: Operating) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in operating.world.drivers())


def test_rollouts_keep_the_invariants_through_anything() -> None:
    run_state_machine_as_test(Rolling, settings=QUICK)  # type: ignore[no-untyped-call]  # hypothesis


def test_the_driver_works_until_its_standby_is_ready() -> None:
    operating = rolling()
    operating.edit(edit="batch 9", seconds=4)
    world = operating.world
    assert names(operating) == ["orders-driver-1", "orders-driver-2"]
    assert (world.status["driver"]["pod"], world.status["standby"]["pod"]) == ("orders-driver-1", "orders-driver-2")
    assert (world.condition("Ready")["status"], world.condition("StandbyReady")["status"]) == ("True", "False")
    assert world.run(40, until=lambda: world.condition("StandbyReady").get("status") == "True")
    assert world.status["driver"]["leaving"]["pod"] == "orders-driver-1"
    operating.wait(seconds=30)
    assert (names(operating), kstatus(world.must())) == (["orders-driver-2"], CURRENT)
    assert not world.condition("StandbyReady")
    told = [reason for reason in world.reasons() if "Standby" in reason or reason.startswith("Driver")]
    assert told[-5:] == ["StandbyStarting", "DriverDraining", "StandbyReady", "DriverExited", "DriverReady"]
    operating.teardown()


@pytest.mark.parametrize(("standby", "reason"), [("pending", "StandbyWithoutRoom"), ("slow", "StandbyNotReady")])
def test_without_room_or_time_the_rollout_is_made_as_recreate_and_says_so(standby: str, reason: str) -> None:
    operating = rolling(standby)
    operating.edit(edit="batch 9", seconds=25)
    world = operating.world
    assert names(operating) == ["orders-driver-1", "orders-driver-2"]
    assert world.run(60, until=lambda: names(operating) == ["orders-driver-3"])
    operating.wait(seconds=40)
    assert (world.condition("StandbyReady")["status"], world.condition("StandbyReady")["reason"]) == ("False", reason)
    assert (world.condition("Ready")["status"], kstatus(world.must())) == ("True", CURRENT)
    operating.rolls(STANDBY, "ok")
    operating.edit(edit="batch 1", seconds=60)
    assert (names(operating), world.condition("StandbyReady")) == (["orders-driver-4"], {})
    operating.teardown()


@pytest.mark.parametrize("moment", range(0, 14, 2))
@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_ends_the_standby_too_at_any_moment(moment: int, stop: str) -> None:
    operating = rolling()
    operating.edit(edit="batch 9", seconds=moment)
    STOPS[stop](operating)
    if stop in {"suspend", "scale"}:
        assert (names(operating), operating.world.status.get("standby")) == ([], None)
    else:
        assert len(names(operating)) == 1
    operating.teardown()


def hanging(standby: str = "slow") -> Operating:
    """A rollout whose driver is asked to end, and hangs on a node that is dead; the standby is on the other one."""
    operating = rolling(standby)
    operating.edit(edit="batch 9", seconds=6)
    place = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in operating.world.drivers()}
    assert place["orders-driver-1"] != place["orders-driver-2"]
    operating.lose_node(node=place["orders-driver-1"], how="dead", seconds=1)
    operating.world.delete_pod("orders-driver-1")
    operating.wait(seconds=3)
    return operating


def test_a_driver_that_hangs_on_a_lost_node_is_followed_by_its_standby() -> None:
    operating = hanging()
    operating.rolls(STANDBY, "ok")
    operating.wait(seconds=60)
    driver = operating.world.status["driver"]
    assert (driver["pod"], driver["leaving"]["pod"]) == ("orders-driver-2", "orders-driver-1")
    assert operating.world.condition("StandbyReady")["status"] == "True"
    operating.teardown()


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_ends_the_standby_of_a_driver_that_hangs_on_a_lost_node(stop: str, ready: bool) -> None:  # noqa: FBT001 - pytest passes names
    """Else it takes the lease that expires, and works though nothing shall run."""
    operating = hanging()
    if ready:
        operating.rolls(STANDBY, "ok")
        operating.wait(seconds=60)
    STOPS[stop](operating)
    if not ready or stop in {"suspend", "scale"}:
        assert names(operating) == ["orders-driver-1"]
    operating.teardown()


def test_a_standby_that_hangs_on_a_lost_node_is_named_with_the_way_out() -> None:
    operating = rolling("slow")
    operating.edit(edit="batch 9", seconds=6)
    world = operating.world
    lost = next(pod for pod in world.drivers() if pod["metadata"]["name"] == "orders-driver-2")
    operating.lose_node(node=lost["spec"]["nodeName"], how="dead", seconds=1)
    world.delete_pod("orders-driver-2")
    operating.rolls(STANDBY, "ok")
    operating.wait(seconds=260)
    assert f"sluice.dev/force={lost['metadata']['uid']}" in world.condition("StandbyReady")["message"]
    assert (world.condition("Ready")["status"], world.condition("StandbyReady")["reason"]) == ("True", "DriverOverdue")
    assert "kubectl sluice force" not in "".join(one["message"] for one in world.status["conditions"])  # it would remove the driver that works
    world.annotate(force=lost["metadata"]["uid"])
    world.nodes.remove(lost["spec"]["nodeName"])
    operating.wait(seconds=120)
    assert names(operating) == ["orders-driver-3"]
    operating.teardown()


def test_a_driver_is_autoscaled_while_its_standby_fails() -> None:
    operating = rolling("fails")
    operating.autoscales({"min": 1, "max": 4, "targetLagSeconds": 60, "coolDownSeconds": 60}, 10)
    operating.demands(Demand(executors=3.5), 20)
    operating.edit(edit="batch 9", seconds=10)
    assert operating.world.run(600, until=lambda: len(operating.world.executors()) == 4)
    assert operating.world.status["driver"]["attempt"] == 1
    operating.teardown()


def test_a_standby_that_was_ready_long_ago_ends_no_driver() -> None:
    """It said so while the resource was paused, and its node is lost since."""
    operating = rolling("slow")
    operating.edit(edit="batch 9", seconds=4)
    operating.pause(paused=True, seconds=1)
    operating.rolls(STANDBY, "ok")
    operating.wait(seconds=20)
    world = operating.world
    after = next(pod for pod in world.drivers() if pod["metadata"]["name"] == "orders-driver-2")
    assert "StandingBy" in after["metadata"]["annotations"]["sluice.dev/report"]
    operating.lose_node(node=after["spec"]["nodeName"], how="dead", seconds=120)
    operating.pause(paused=False, seconds=60)
    assert (world.status["driver"]["pod"], world.condition("Ready")["status"]) == ("orders-driver-1", "True")
    operating.teardown()


def test_a_driver_keeps_its_executors_until_the_tasks_run_in_the_next_driver() -> None:
    """A number of the next spec is none for a driver of another kind."""
    operating = rolling("fails")
    operating.scale(replicas=4, seconds=20)
    operating.spec = {**operating.spec, "replicas": 1, "executor": {"inDriver": True}}
    operating.wait(seconds=1)
    operating._apply()
    operating.wait(seconds=60)
    assert (len(operating.world.executors()), operating.world.status["replicas"]) == (4, 4)
    assert "tasks in the driver" not in operating.world.condition("Ready")["message"]
    operating.world.delete()
    operating.wait(seconds=60)


def test_a_driver_that_follows_one_on_a_lost_node_is_ready_scaled_and_replaced() -> None:
    operating = rolling()
    operating.drain(drain=1000)
    operating.edit(edit="batch 9", seconds=14)
    world = operating.world
    place = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.drivers()}
    assert world.status["driver"]["leaving"]["pod"] == "orders-driver-1"
    operating.lose_node(node=place["orders-driver-1"], how="dead", seconds=60)
    assert (names(operating), world.condition("Ready")["status"]) == (["orders-driver-1", "orders-driver-2"], "True")
    operating.scale(replicas=4, seconds=200)
    target = {pod["metadata"]["name"]: pod["metadata"]["annotations"]["sluice.dev/executors"] for pod in world.drivers()}
    assert (target["orders-driver-2"], world.condition("Draining")["reason"]) == ("4", "DriverOverdue")
    uid = world.status["driver"]["leaving"]["uid"]
    assert f"sluice.dev/force={uid}" in world.condition("Draining")["message"]
    world.nodes.kill(world.status["driver"]["uid"], 137)
    operating.wait(seconds=30)
    assert (names(operating), world.condition("Ready")["status"]) == (["orders-driver-1"], "False")
    assert not world.condition("StandbyReady")
    operating.drain(drain=3)
    world.nodes.remove(place["orders-driver-1"])
    operating.wait(seconds=120)
    assert world.condition("Ready")["status"] == "True"
    operating.teardown()


def test_the_tenth_attempt_may_stand_by_beside_the_ninth() -> None:
    """A name has no zeros before its number, and the ledger knows that."""
    operating = rolling()
    operating.rolls(None, "ok")
    while operating.world.status["driver"]["attempt"] < 9:
        operating.ask(what="restart", number=0)
        operating.wait(seconds=30)
    operating.rolls(STANDBY, "ok")
    operating.edit(edit="batch 9", seconds=60)
    assert names(operating) == ["orders-driver-10"]
    operating.teardown()


def test_a_standby_that_is_refused_stalls_nothing_before_its_time() -> None:
    operating = rolling()
    operating.account(missing=True, seconds=1)
    operating.edit(edit="batch 9", seconds=20)
    world = operating.world
    assert (kstatus(world.must()), world.condition("Ready")["reason"]) == (IN_PROGRESS, "Consuming")
    assert world.condition("StandbyReady")["reason"] == "ApiRefused"
    assert "serviceaccount" in world.condition("StandbyReady")["message"]
    operating.wait(seconds=60)
    assert world.condition("Stalled")
    operating.account(missing=False, seconds=90)
    assert (len(names(operating)), kstatus(world.must())) == (1, CURRENT)
    operating.teardown()
