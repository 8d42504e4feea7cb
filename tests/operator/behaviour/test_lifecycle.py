"""Whole lives of a resource in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from scenarios import started
from simulated_cluster import KEY, MIGRATING, SPEC, SimulatedCluster, assert_nothing_left, ready

from sluice_operator.plan.advice import advised
from sluice_operator.run.reconcile import reconcile

Json = dict[str, Any]


def test_a_new_consumer_becomes_ready_with_its_executors() -> None:
    world = started()
    assert world.status["phase"] == "Running"
    assert world.status["replicas"] == 2
    assert world.status["driver"]["generation"] == 1
    assert world.status["selector"] == "sluice.dev/consumer=orders,sluice.dev/role=executor"


def test_scaling_does_not_restart_the_driver() -> None:
    world = started()
    uid = world.status["driver"]["uid"]
    for replicas in (3, 1):
        world.apply({**SPEC, "replicas": replicas})
        assert world.run(30, until=lambda replicas=replicas: ready(world) and len(world.executors()) == replicas)
    assert world.status["driver"]["uid"] == uid


def test_zero_replicas_mean_no_driver_and_no_failure() -> None:
    world = started()
    world.apply({**SPEC, "replicas": 0})
    assert world.run(30, until=lambda: world.condition("Ready").get("reason") == "ScaledToZero" and not world.drivers())
    assert world.status["restarts"] == {"count": 0, "interruptions": 0}
    assert not world.condition("Reconciling")
    world.apply(SPEC)
    assert world.run(30, until=lambda: ready(world))
    assert world.status["driver"]["attempt"] == 2


def test_a_restart_change_drains_the_driver_and_starts_the_next_with_the_new_spec() -> None:
    world = started()
    world.apply({**SPEC, "pipeline": {"entrypoint": "orders.pipeline:other"}})
    assert world.run(60, until=lambda: ready(world))
    assert world.status["driver"]["attempt"] == 2
    assert world.status["restarts"] == {"count": 0, "interruptions": 0}
    assert {"DriverDraining", "DriverExited"} <= set(world.reasons())


def test_deletion_drains_and_leaves_nothing() -> None:
    world = started(MIGRATING)
    world.delete()
    world.run(3)
    assert world.status["phase"] == "Deleting"
    world.run(30)
    assert_nothing_left(world)


def test_a_paused_resource_can_be_deleted() -> None:
    world = started()
    world.annotate(paused="true")
    world.apply({**SPEC, "replicas": 5})
    world.run(20)
    assert len(world.executors()) == 2
    assert world.condition("Ready")["reason"] == "Paused"
    world.delete()
    world.run(30)
    assert_nothing_left(world)


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


def test_a_spec_that_never_was_valid_starts_nothing() -> None:
    world = SimulatedCluster()
    world.apply({**MIGRATING, "sparkConf": {"spark.master": "local"}})
    world.run(20)
    assert "spark.master" in world.condition("SpecValid")["message"]
    assert world.status["phase"] == "Failed"
    assert "finalizers" not in world.must()["metadata"]
    assert [*world.memory.all("Job"), *world.memory.all("Pod")] == []


def test_migrate_from_cannot_be_added_to_a_consumer_that_has_started() -> None:
    world = started()
    world.apply(MIGRATING)
    world.run(10, until=lambda: world.condition("SpecValid").get("status") == "False")
    assert "migrateFrom" in world.condition("SpecValid")["message"]
    assert list(world.memory.all("Job")) == []


def test_a_recreated_resource_waits_for_the_pods_of_its_earlier_life() -> None:
    world = started()
    world.lose_nodes()
    old = world.must()
    world.memory.finish_deletion(old)
    world.apply(SPEC)
    world.run(30)
    assert world.condition("Ready")["reason"] == "StrayDriver"
    world.restore_nodes()
    assert world.run(60, until=lambda: ready(world))
    assert world.status["driver"]["uid"] != old["status"]["driver"]["uid"]


def test_nothing_is_written_while_nothing_happens() -> None:
    """A running consumer costs a status write every ten seconds for its figures, and nothing else."""
    world = started()
    before = world.faults.writes
    world.run(100)
    assert world.faults.writes - before <= 11


def test_a_retention_that_is_near_is_a_condition_for_as_long_as_it_is_and_one_event() -> None:
    """Its words tell the time, so they change with every report; without a report it only comes nearer."""
    world = started()
    for part in ("81%", "82%"):
        world.habits.warnings = [f"RetentionNear: {part}"]
        assert world.run(30, until=lambda part=part: world.condition("RetentionNear").get("message") == advised("RetentionNear", part, "orders"))
    assert world.reasons().count("RetentionNear") == 1
    world.apply({**SPEC, "suspend": True})
    assert world.run(120, until=lambda: not world.drivers())
    world.run(30)
    assert world.condition("RetentionNear")["status"] == "True"
    world.habits.warnings = []
    world.apply(SPEC)
    assert world.run(120, until=lambda: not world.condition("RetentionNear"))


def test_a_record_that_is_looked_for_is_a_condition_until_it_is_found_and_what_was_left_out_stays() -> None:
    world = started()
    for step in ("batch 7 failed", "batch 8 failed"):
        world.habits.warnings = [f"Isolating: {step}"]
        assert world.run(30, until=lambda step=step: world.condition("Isolating").get("message") == step)
    world.habits.warnings = ["PoisonExcluded: record 1/0"]
    assert world.run(30, until=lambda: not world.condition("Isolating"))
    assert world.condition("PoisonExcluded")["message"] == "record 1/0. Run `kubectl sluice dead-letters list orders`: these records are in no batch."
    world.habits.warnings = []
    world.run(30)
    assert world.condition("PoisonExcluded")["status"] == "True"
    assert [reason for reason in world.reasons() if reason in {"Isolating", "PoisonExcluded"}] == ["Isolating", "PoisonExcluded"]


def test_a_foreign_pod_of_our_name_is_refused_and_named() -> None:
    world = SimulatedCluster()
    meta = {"namespace": KEY.namespace, "name": "orders-driver-1", "labels": {"sluice.dev/role": "nobody's"}}
    theirs = world.memory.create({"kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "theirs", "image": "theirs"}]}})
    world.ledger.foreign.add(theirs["metadata"]["uid"])
    world.apply(SPEC)
    world.run(20)
    assert world.condition("Stalled")["reason"] == "ApiRefused"
    assert "orders-driver-1" in world.condition("Stalled")["message"]
    world.delete_pod("orders-driver-1")
    assert world.run(90, until=lambda: ready(world))


def test_a_pod_whose_deletion_no_watch_ever_told_holds_nothing_up() -> None:
    """A thorough pass finds out: seen on a cluster as `waiting until … is gone` for ever."""
    world = started()
    ghost = world.executors()[0]
    meta = {**ghost["metadata"], "name": "ghost", "uid": "ghost"}
    world.context.cache.see("Pod", {**ghost, "metadata": meta}, world.now)
    assert "ghost" in {pod.name for pod in world.context.cache.observed(KEY).executors}
    reconcile(world.context, KEY, world.now, force_refresh=True)
    assert "ghost" not in {pod.name for pod in world.context.cache.observed(KEY).executors}


@pytest.mark.parametrize("kind", ["DataLossSuspected", "PoisonExcluded"])
def test_what_a_driver_warned_of_becomes_a_condition_and_one_event_and_stays(kind: str) -> None:
    world = started()
    assert not world.condition(kind)
    world.habits.warnings = [f"{kind}: look at this"]
    assert world.run(30, until=lambda: world.condition(kind).get("message") == advised(kind, "look at this", "orders"))
    world.habits.warnings = []
    world.run(30)
    assert world.condition(kind)["status"] == "True"
    assert world.reasons().count(kind) == 1
