"""What kstatus (Flux and others) and Argo CD's health check read in the resting state of each rule is what a person would say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from argo_lua import argo_health
from kstatus import CURRENT, FAILED, IN_PROGRESS, TERMINATING, kstatus
from simulated_cluster import MIGRATING, SPEC, SimulatedCluster

from sluice_operator.cluster.port import Rejected

Json = dict[str, Any]
SHORT = {"progressDeadlineSeconds": 60}


def running(spec: Json = SPEC) -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply({**spec, **SHORT})
    assert world.run(60, until=lambda: world.condition("Ready").get("status") == "True")
    world.run(20)
    return world


def suspended() -> SimulatedCluster:
    world = running()
    world.apply({**SPEC, **SHORT, "suspend": True})
    return world


def scaled_to_zero() -> SimulatedCluster:
    world = running()
    world.apply({**SPEC, **SHORT, "replicas": 0})
    return world


def paused() -> SimulatedCluster:
    world = running()
    world.annotate(paused="true")
    return world


def paused_and_suspended() -> SimulatedCluster:
    world = suspended()
    world.run(60)
    world.annotate(paused="true")
    return world


def paused_with_a_new_spec() -> SimulatedCluster:
    world = paused()
    world.run(5)
    world.apply({**SPEC, **SHORT, "batch": {"intervalSeconds": 9}})
    return world


def never_valid() -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply({**SPEC, "replicas": -1})
    return world


def no_more_valid() -> SimulatedCluster:
    world = running()
    world.apply({**SPEC, **SHORT, "pipelin": {}, "replicas": 3})
    return world


def source_active() -> SimulatedCluster:
    world = SimulatedCluster()
    world.habits.job_exits = [75] * 99
    world.apply({**MIGRATING, **SHORT})
    return world


def migration_failed() -> SimulatedCluster:
    world = SimulatedCluster()
    world.habits.job_exits = [65]
    world.apply({**MIGRATING, **SHORT})
    return world


def pod_refused() -> SimulatedCluster:
    """The service account is not there; the Job controller would say so in events only."""
    world = SimulatedCluster()

    def admission(body: Json) -> None:
        if body["kind"] == "Pod":
            raise Rejected("Forbidden", "serviceaccount sluice-consumer not found")

    world.memory.admission = admission
    world.apply({**MIGRATING, **SHORT})
    return world


def crash_loop() -> SimulatedCluster:
    world = SimulatedCluster()
    world.habits.exits = [1] * 99
    world.apply({**SPEC, **SHORT})
    return world


def node_lost() -> SimulatedCluster:
    world = running()
    world.lose_nodes()
    return world


def overdue() -> SimulatedCluster:
    world = running()
    world.lose_nodes()
    world.delete_pod("orders-driver-1")
    return world


def deleted() -> SimulatedCluster:
    world = running()
    world.lose_nodes()
    world.delete()
    return world


def completed() -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply({**SPEC, **SHORT, "until": {"timestamp": "2026-11-26T12:00:00Z"}})
    assert world.run(120, until=lambda: world.status.get("phase") == "Completed"), world.status
    return world


STATES = {
    completed: (CURRENT, "Healthy", "EndReached"),
    running: (CURRENT, "Healthy", "Consuming"),
    suspended: (CURRENT, "Suspended", "Suspended"),
    scaled_to_zero: (CURRENT, "Healthy", "ScaledToZero"),
    paused: (CURRENT, "Suspended", "Paused"),
    paused_and_suspended: (CURRENT, "Suspended", "Paused"),
    paused_with_a_new_spec: (IN_PROGRESS, "Suspended", "Paused"),
    never_valid: (FAILED, "Degraded", "SpecInvalid"),
    no_more_valid: (FAILED, "Degraded", "Consuming"),
    source_active: (FAILED, "Degraded", "SourceActive"),
    migration_failed: (FAILED, "Degraded", "MigrationFailed"),
    pod_refused: (FAILED, "Degraded", "ApiRefused"),
    crash_loop: (FAILED, "Degraded", "Failed"),
    node_lost: (FAILED, "Degraded", "ReportStale"),
    overdue: (FAILED, "Degraded", "DriverOverdue"),
    deleted: (TERMINATING, "Progressing", "DriverOverdue"),
}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_kstatus_and_argo_cd_say_what_a_person_would_say(state: Callable[[], SimulatedCluster]) -> None:
    """After ten minutes in which nobody does anything. Ready is True where all is as the spec asks, or the last good spec goes on."""
    world = state()
    world.run(600)
    body = world.must()
    assert (kstatus(body), argo_health(body), world.condition("Ready")["reason"]) == STATES[state]
    both = {item["type"] for item in world.status["conditions"] if item["status"] == "True"} & {"Reconciling", "Stalled"}
    assert len(both) <= 1, "clients take whichever comes first"


def test_a_deadline_that_is_over_is_told_with_what_to_do_and_the_work_goes_on() -> None:
    world = source_active()
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


def test_a_migration_whose_pod_is_refused_says_so_in_the_servers_words_before_there_is_a_job() -> None:
    world = pod_refused()
    assert world.run(5, until=lambda: bool(world.condition("Stalled")))
    assert "serviceaccount sluice-consumer not found" in world.condition("Stalled")["message"]
    assert not list(world.memory.all("Job"))
    world.memory.admission = lambda _body: None
    assert world.run(90, until=lambda: world.condition("Ready").get("status") == "True")


def test_a_job_that_has_no_pod_for_a_minute_is_made_anew_and_then_the_server_is_asked() -> None:
    world = SimulatedCluster()

    def admission(body: Json) -> None:
        if body["kind"] == "Pod" and list(world.memory.all("Job")):
            raise Rejected("Forbidden", "exceeded quota")

    world.memory.admission = admission
    world.apply(MIGRATING)
    assert world.run(10, until=lambda: bool(list(world.memory.all("Job"))))
    assert world.run(90, until=lambda: "had no pod for 60 s" in world.status["migration"]["message"])
    world.memory.admission = lambda _body: None
    assert world.run(120, until=lambda: world.condition("Ready").get("status") == "True")
    assert world.status["migration"]["tries"] == 2
