"""A migration in the life of a resource, in virtual time: when its Job runs, what it came to, and when it is tried again."""

from __future__ import annotations

import pytest
from scenarios import started
from simulated_cluster import MIGRATING, SPEC, SimulatedCluster, assert_nothing_left, ready


def test_the_driver_starts_only_after_the_migration() -> None:
    """The world's own invariant watches every second; here: it happened, and the figures are the Job's."""
    world = started(MIGRATING)
    assert world.condition("Migrated") == world.condition("Migrated") | {"status": "True", "reason": "Complete"}
    assert world.status["migration"]["rows"] == 7
    assert world.reasons()[:4] == ["Accepted", "MigrationStarted", "MigrationComplete", "DriverStarting"]


@pytest.mark.parametrize(("warnings", "told"), [(0, "7 shards"), (1, "7 shards; 1 warning"), (2, "7 shards; 2 warnings")])
def test_what_a_migration_came_to_is_said_once(warnings: int, told: str) -> None:
    world = SimulatedCluster()
    world.habits.job_warnings = warnings
    world.apply(MIGRATING)
    assert world.run(30, until=lambda: world.condition("Migrated").get("reason") == "Complete")
    assert world.condition("Migrated")["message"] == told


def test_a_deletion_in_the_middle_of_a_migration_stops_the_job() -> None:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    assert world.run(10, until=lambda: any(True for _ in world.memory.all("Job")))
    world.delete()
    world.run(30)
    assert_nothing_left(world)


def test_suspending_stops_the_migration_and_resuming_tries_again() -> None:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    world.run(10, until=lambda: any(True for _ in world.memory.all("Job")))
    world.apply({**MIGRATING, "suspend": True})
    assert world.run(20, until=lambda: world.status["phase"] == "Suspended")
    assert list(world.memory.all("Job")) == []
    world.apply(MIGRATING)
    assert world.run(60, until=lambda: ready(world))
    assert world.status["migration"]["job"].endswith("-2")


def test_an_active_source_is_tried_again_and_says_so() -> None:
    world = SimulatedCluster()
    world.habits.job_exits = [75, 75]
    world.apply(MIGRATING)
    assert world.run(20, until=lambda: world.condition("Migrated").get("reason") == "SourceActive")
    assert world.condition("Reconciling")["reason"] == "SourceActive"
    assert not world.condition("Stalled")
    assert world.run(120, until=lambda: ready(world))
    assert world.status["migration"]["tries"] == 3


def test_a_failed_migration_stalls_with_the_jobs_words_until_a_retry_is_asked_for() -> None:
    world = SimulatedCluster()
    world.habits.job_exits = [65, 65]
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
    world = SimulatedCluster()
    world.habits.job_exits = [65]
    world.apply(MIGRATING)
    assert world.run(30, until=lambda: world.condition("Stalled").get("reason") == "MigrationFailed")
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    world.run(60)
    assert world.status["migration"]["tries"] == 1
    world.apply({**MIGRATING, "pipeline": {**SPEC["pipeline"], "image": "fixed"}})
    assert world.run(60, until=lambda: ready(world))


def test_a_migration_edited_while_it_runs_is_stopped_before_the_next_try() -> None:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    assert world.run(10, until=lambda: any(True for _ in world.memory.all("Job")))
    world.apply({**MIGRATING, "pipeline": {**SPEC["pipeline"], "image": "other"}})
    assert world.run(60, until=lambda: ready(world))
    assert world.status["migration"]["tries"] == 2


def test_a_deleted_job_is_made_again() -> None:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    world.lose_nodes()  # else it would be done by then
    assert world.run(60, until=lambda: world.status.get("migration", {}).get("uid") is not None)
    job = next(iter(world.memory.all("Job")))
    world.memory.finish_deletion(job)
    world.restore_nodes()
    assert world.run(90, until=lambda: ready(world))
    assert "MigrationLost" in world.reasons()


def test_a_migration_whose_pod_was_deleted_is_tried_again() -> None:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    assert world.run(10, until=lambda: any(pod.get("status", {}).get("phase") == "Running" for pod in world.pods("migration")))
    world.delete_pod(world.pods("migration")[0]["metadata"]["name"])
    assert world.run(60, until=lambda: ready(world))
    assert "MigrationLost" in world.reasons()
    assert "MigrationFailed" not in world.reasons()


@pytest.mark.parametrize("code", [1, 137, 143])
def test_a_migration_that_got_no_answer_or_was_killed_is_tried_again(code: int) -> None:
    world = SimulatedCluster()
    world.habits.job_exits = [code] * 3
    world.apply(MIGRATING)
    assert world.run(300, until=lambda: ready(world))
    assert world.status["migration"]["tries"] == 4
    assert "MigrationFailed" not in world.reasons()


def test_an_edited_migrate_from_has_no_effect_after_the_migration_and_is_told_once() -> None:
    world = started(MIGRATING)
    world.apply({**SPEC, "migrateFrom": {"table": "another"}})
    world.run(60)
    assert world.reasons().count("MigrationIgnored") == 1
    assert world.status["migration"]["tries"] == 1
