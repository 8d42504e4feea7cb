"""A migration in the life of a resource, in virtual time: what the API server refuses, and what a person does about it."""

from __future__ import annotations

from typing import Any

from kstatus import CURRENT, kstatus
from simulated_cluster import MIGRATING, SimulatedCluster, ready

from sluice_operator.cluster.port import Rejected

Json = dict[str, Any]
SHORT = {"progressDeadlineSeconds": 60}


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


def test_a_deadline_that_is_over_is_told_with_what_to_do_and_the_work_goes_on() -> None:
    world = SimulatedCluster()
    world.habits.job_exits = [75] * 99
    world.apply({**MIGRATING, **SHORT})
    assert world.run(70, until=lambda: world.condition("Stalled").get("reason") == "SourceActive")
    assert "not done within 60 s (spec.progressDeadlineSeconds)" in world.condition("Stalled")["message"]
    assert world.condition("Stalled")["message"].endswith(
        f"Run `kubectl sluice logs {world.must()['metadata']['name']} --role migration` to see which rows change."
    )
    world.apply({**MIGRATING, **SHORT, "batch": {"intervalSeconds": 3}})
    assert world.run(5, until=lambda: bool(world.condition("Reconciling")))
    assert not world.condition("Stalled")
    world.habits.job_exits = []
    assert world.run(400, until=lambda: world.condition("Ready")["status"] == "True")
    assert kstatus(world.must()) == CURRENT


def refusing(*, with_job: bool) -> SimulatedCluster:
    """A cluster that refuses pods, from the beginning or once there is a Job; the Job controller says so in events only."""
    world = SimulatedCluster()

    def admission(body: Json) -> None:
        if body["kind"] == "Pod" and (not with_job or list(world.memory.all("Job"))):
            raise Rejected("Forbidden", "serviceaccount sluice-consumer not found")

    world.memory.admission = admission
    world.apply(MIGRATING)
    return world


def test_a_migration_whose_pod_is_refused_says_so_in_the_servers_words_before_there_is_a_job() -> None:
    world = refusing(with_job=False)
    assert world.run(5, until=lambda: bool(world.condition("Stalled")))
    assert "serviceaccount sluice-consumer not found" in world.condition("Stalled")["message"]
    assert not list(world.memory.all("Job"))
    world.memory.admission = lambda _body: None
    assert world.run(90, until=lambda: world.condition("Ready").get("status") == "True")


def test_a_job_that_has_no_pod_for_a_minute_is_made_anew_and_then_the_server_is_asked() -> None:
    world = refusing(with_job=True)
    assert world.run(10, until=lambda: bool(list(world.memory.all("Job"))))
    assert world.run(90, until=lambda: "had no pod for 60 s" in world.status["migration"]["message"])
    world.memory.admission = lambda _body: None
    assert world.run(120, until=lambda: world.condition("Ready").get("status") == "True")
    assert world.status["migration"]["tries"] == 2
