"""Whole lives of a resource in virtual time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from operator_world import KEY, MIGRATING, SPEC, World, assert_nothing_left, ready

from sluice_operator.reconcile import reconcile

Json = dict[str, Any]


def started(spec: Json = SPEC) -> World:
    """A world with a running consumer."""
    world = World()
    world.apply(spec)
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


def test_a_new_consumer_becomes_ready_with_its_executors() -> None:
    """Phase, replicas and the driver's generation are what the driver reported."""
    world = started()
    assert world.status["phase"] == "Running"
    assert world.status["replicas"] == 2
    assert world.status["driver"]["generation"] == 1
    assert world.status["selector"] == "sluice.dev/consumer=orders,sluice.dev/role=executor"


def test_the_driver_starts_only_after_the_migration() -> None:
    """The world's own invariant watches every second; here: it happened, and the figures are the Job's."""
    world = started(MIGRATING)
    assert world.condition("Migrated") == world.condition("Migrated") | {"status": "True", "reason": "Complete"}
    assert world.status["migration"]["rows"] == 7
    assert world.reasons()[:4] == ["Accepted", "MigrationStarted", "MigrationComplete", "DriverStarting"]


def test_scaling_does_not_restart_the_driver() -> None:
    """Up and down in place."""
    world = started()
    uid = world.status["driver"]["uid"]
    for replicas in (3, 1):
        world.apply({**SPEC, "replicas": replicas})
        assert world.run(30, until=lambda: ready(world))
        assert len(world.executors()) == replicas
    assert world.status["driver"]["uid"] == uid


def test_zero_replicas_mean_no_driver_and_no_failure() -> None:
    """And back again is a new attempt."""
    world = started()
    world.apply({**SPEC, "replicas": 0})
    assert world.run(30, until=lambda: world.condition("Ready").get("reason") == "ScaledToZero" and not world.drivers())
    assert world.status["restarts"] == {"count": 0, "interruptions": 0}
    assert not world.condition("Reconciling")
    world.apply(SPEC)
    assert world.run(30, until=lambda: ready(world))
    assert world.status["driver"]["attempt"] == 2


def test_a_restart_change_drains_the_driver_and_starts_the_next_with_the_new_spec() -> None:
    """The drain was asked for, so it is no failure."""
    world = started()
    world.apply({**SPEC, "pipeline": {"entrypoint": "orders.pipeline:other"}})
    assert world.run(60, until=lambda: ready(world))
    assert world.status["driver"]["attempt"] == 2
    assert world.status["restarts"] == {"count": 0, "interruptions": 0}
    assert {"DriverDraining", "DriverExited"} <= set(world.reasons())


def test_deletion_drains_and_leaves_nothing() -> None:
    """Pods, Jobs and the resource are gone."""
    world = started(MIGRATING)
    world.delete()
    world.run(3)
    assert world.status["phase"] == "Deleting"
    world.run(30)
    assert_nothing_left(world)


def test_a_paused_resource_can_be_deleted() -> None:
    """Pause holds back everything else."""
    world = started()
    world.annotate(paused="true")
    world.apply({**SPEC, "replicas": 5})
    world.run(20)
    assert len(world.executors()) == 2
    assert world.condition("Ready")["reason"] == "Paused"
    world.delete()
    world.run(30)
    assert_nothing_left(world)


def test_a_deletion_in_the_middle_of_a_migration_stops_the_job() -> None:
    """Nothing has started yet, and nothing will."""
    world = World()
    world.apply(MIGRATING)
    assert world.run(10, until=lambda: any(True for _ in world.twin.all("Job")))
    world.delete()
    world.run(30)
    assert_nothing_left(world)


def test_suspending_stops_the_migration_and_resuming_tries_again() -> None:
    """The second try is another Job."""
    world = World()
    world.apply(MIGRATING)
    world.run(10, until=lambda: any(True for _ in world.twin.all("Job")))
    world.apply({**MIGRATING, "suspend": True})
    assert world.run(20, until=lambda: world.status["phase"] == "Suspended")
    assert list(world.twin.all("Job")) == []
    world.apply(MIGRATING)
    assert world.run(60, until=lambda: ready(world))
    assert world.status["migration"]["job"].endswith("-2")


def test_an_active_source_is_tried_again_and_says_so() -> None:
    """75, 75, 0: three Jobs, one after another."""
    world = World()
    world.job_exits = [75, 75]
    world.apply(MIGRATING)
    assert world.run(20, until=lambda: world.condition("Migrated").get("reason") == "SourceActive")
    assert world.condition("Reconciling")["reason"] == "SourceActive"
    assert not world.condition("Stalled")
    assert world.run(120, until=lambda: ready(world))
    assert world.status["migration"]["tries"] == 3


def test_a_failed_migration_stalls_with_the_jobs_words_until_a_retry_is_asked_for() -> None:
    """No driver meanwhile; the annotation starts one new try, once."""
    world = World()
    world.job_exits = [65, 65]
    world.apply(MIGRATING)
    assert world.run(30, until=lambda: world.condition("Stalled").get("reason") == "MigrationFailed")
    assert "row 'x'" in world.condition("Stalled")["message"]
    world.run(600)
    assert world.status["migration"]["tries"] == 1
    world.annotate(retry="again")
    assert world.run(30, until=lambda: world.status["migration"]["tries"] == 2)
    world.run(300)
    assert world.status["migration"]["tries"] == 2
    world.annotate(retry="once more")
    assert world.run(60, until=lambda: ready(world))


def test_a_failed_migration_is_tried_again_when_what_it_would_run_changes() -> None:
    """A new image is a reason, a new batch size is none."""
    world = World()
    world.job_exits = [1]
    world.apply(MIGRATING)
    assert world.run(30, until=lambda: world.condition("Stalled").get("reason") == "MigrationFailed")
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    world.run(60)
    assert world.status["migration"]["tries"] == 1
    world.apply({**MIGRATING, "pipeline": {**SPEC["pipeline"], "image": "fixed"}})
    assert world.run(60, until=lambda: ready(world))


def test_a_migration_edited_while_it_runs_is_stopped_before_the_next_try() -> None:
    """The world watches that never two of them run."""
    world = World()
    world.apply(MIGRATING)
    assert world.run(10, until=lambda: world.status.get("migration", {}).get("uid") is not None)
    world.apply({**MIGRATING, "pipeline": {**SPEC["pipeline"], "image": "other"}})
    assert world.run(60, until=lambda: ready(world))
    assert world.status["migration"]["tries"] == 2


def test_a_deleted_job_is_made_again() -> None:
    """By hand, in the middle of its run."""
    world = World()
    world.apply(MIGRATING)
    world.run(10, until=lambda: world.status.get("migration", {}).get("uid") is not None)
    job = next(iter(world.twin.all("Job")))
    world.twin.finish_deletion(job)
    assert world.run(90, until=lambda: ready(world))
    assert "MigrationLost" in world.reasons()


def test_a_failing_driver_backs_off_longer_each_time() -> None:
    """10, 20, 40 seconds; the exit and its words are in the status before the pod goes."""
    world = started()
    world.driver_exits = [1, 1, 1]
    begun = []
    for attempt in (2, 3, 4):
        assert world.run(120, until=lambda attempt=attempt: world.status["driver"]["attempt"] == attempt)
        begun.append(world.now)
    assert [(b - a).total_seconds() for a, b in pairwise(begun)] == pytest.approx([23, 43], abs=3)
    assert world.status["restarts"]["count"] == 3
    assert world.run(60, until=lambda: ready(world))
    assert world.run(700, until=lambda: world.status["restarts"]["count"] == 0)


def test_a_held_lease_does_not_count_as_failure() -> None:
    """75 and 76 are somebody else's life going on."""
    world = started()
    world.driver_exits = [75, 76]
    assert world.run(200, until=lambda: world.status["driver"]["attempt"] == 3 and ready(world))
    assert world.status["restarts"]["count"] == 0
    assert world.status["restarts"]["interruptions"] == 2


def test_a_refusal_of_the_driver_stalls() -> None:
    """65: no retry will help, the message says what would."""
    world = started()
    world.driver_exits = [65]
    assert world.run(30, until=lambda: world.condition("Stalled").get("status") == "True")
    assert "exit 65" in world.condition("Stalled")["message"]
    assert world.status["phase"] == "Failed"


def test_an_exit_of_zero_that_nobody_asked_for_is_a_failure() -> None:
    """A consumer of a stream has no end."""
    world = started()
    world.driver_exits = [0]
    assert world.run(30, until=lambda: world.status["restarts"]["count"] == 1)


def test_a_driver_pod_deleted_by_hand_is_replaced_at_once() -> None:
    """And counted apart from failures."""
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
    world.twin.finish_deletion(world.drivers()[0])
    assert world.run(30, until=lambda: world.status["driver"]["attempt"] == 2 and ready(world))
    assert world.status["restarts"]["reason"] == "DriverLost"


def test_a_driver_on_a_lost_node_is_waited_for_until_the_user_gives_it_up() -> None:
    """At most one driver: no time-out decides that, the annotation with its uid does."""
    world = started()
    world.lost_nodes = True
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
    world.lost_nodes = False
    assert world.run(60, until=lambda: ready(world))
    assert world.status["driver"]["attempt"] == 2
    assert '"force": true' in world.drivers()[0]["metadata"]["annotations"]["sluice.dev/config"]


def test_an_invalid_spec_leaves_the_last_good_one_running() -> None:
    """And still heals it: a killed driver comes back as the last good spec says."""
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
    """Not even the finalizer is written."""
    world = World()
    world.apply({**MIGRATING, "sparkConf": {"spark.master": "local"}})
    world.run(20)
    assert "spark.master" in world.condition("SpecValid")["message"]
    assert world.status["phase"] == "Failed"
    assert "finalizers" not in world.must()["metadata"]
    assert [*world.twin.all("Job"), *world.twin.all("Pod")] == []


def test_migrate_from_cannot_be_added_to_a_consumer_that_has_started() -> None:
    """It has positions of its own."""
    world = started()
    world.apply(MIGRATING)
    world.run(10, until=lambda: world.condition("SpecValid").get("status") == "False")
    assert "migrateFrom" in world.condition("SpecValid")["message"]
    assert list(world.twin.all("Job")) == []


def test_an_edited_migrate_from_has_no_effect_after_the_migration_and_is_told_once() -> None:
    """Removal is fine too."""
    world = started(MIGRATING)
    world.apply({**SPEC, "migrateFrom": {"table": "another"}})
    world.run(60)
    assert world.reasons().count("MigrationIgnored") == 1
    assert world.status["migration"]["tries"] == 1


def test_a_recreated_resource_waits_for_the_pods_of_its_earlier_life() -> None:
    """Same name, other uid: nothing of the old one is adopted."""
    world = started()
    world.lost_nodes = True
    old = world.must()
    world.twin.finish_deletion(old)
    world.apply(SPEC)
    world.run(30)
    assert world.condition("Ready")["reason"] == "StrayDriver"
    world.lost_nodes = False
    assert world.run(60, until=lambda: ready(world))
    assert world.status["driver"]["uid"] != old["status"]["driver"]["uid"]


def test_a_foreign_pod_of_our_name_is_refused_and_named() -> None:
    """Create-or-adopt adopts only what is ours."""
    world = World()
    labels = {"sluice.dev/role": "nobody's"}
    world.twin.create({"kind": "Pod", "metadata": {"namespace": KEY.namespace, "name": "orders-driver-1", "labels": labels}})
    world.apply(SPEC)
    world.run(20)
    assert world.condition("Stalled")["reason"] == "ApiRefused"
    assert "orders-driver-1" in world.condition("Stalled")["message"]
    world.twin.finish_deletion({"kind": "Pod", "metadata": {"namespace": KEY.namespace, "name": "orders-driver-1"}})
    assert world.run(90, until=lambda: ready(world))


def test_nothing_is_written_while_nothing_happens() -> None:
    """A running consumer costs a status write every ten seconds for its figures, and nothing else."""
    world = started()
    before = world.writes
    world.run(100)
    assert world.writes - before <= 11


def test_a_pod_whose_deletion_no_watch_ever_told_holds_nothing_up() -> None:
    """A thorough pass finds out: seen on a cluster as `waiting until … is gone` for ever."""
    world = started()
    ghost = world.executors()[0]
    meta = {**ghost["metadata"], "name": "ghost", "uid": "ghost"}
    world.office.cache.see("Pod", {**ghost, "metadata": meta}, world.now)
    assert "ghost" in {pod.name for pod in world.office.cache.observed(KEY).executors}
    reconcile(world.office, KEY, world.now, thorough=True)
    assert "ghost" not in {pod.name for pod in world.office.cache.observed(KEY).executors}


@pytest.mark.parametrize("kind", ["DataLossSuspected", "SourceMoved"])
def test_what_a_driver_warned_of_becomes_a_condition_and_one_event_and_stays(kind: str) -> None:
    """Nobody should have to find it in a log."""
    world = started()
    assert not world.condition(kind)
    world.warnings = [f"{kind}: look at this"]
    assert world.run(30, until=lambda: world.condition(kind).get("message") == f"{kind}: look at this")
    world.warnings = []
    world.run(30)
    assert world.condition(kind)["status"] == "True"
    assert world.reasons().count(kind) == 1
