"""What a change costs the API server, beside the pods and Jobs it is about: status writes are counted, patches of the resource too."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from counted import Counted, started
from simulated_cluster import MIGRATING, SPEC, ready

from sluice_operator.cluster.port import Rejected
from sluice_operator.names import FINALIZER
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.plan.write_policy import found_again, urgent
from sluice_operator.state.status import Condition, DriverStatus, Leaving, Phase, Status

NOW = datetime(2026, 11, 22, tzinfo=UTC)
REPORTS = pytest.mark.parametrize(
    ("early", "more"),
    [
        pytest.param(False, 0, id="heard of when it runs"),
        pytest.param(True, 1, id="heard of when Spark starts"),  # what it says then is written, if it is not Ready within ten seconds
    ],
)


@pytest.mark.parametrize(("spec", "writes"), [(SPEC, 3), (MIGRATING, 5)])
def test_a_first_start_costs_one_write_a_step(spec: dict[str, object], writes: int) -> None:
    """The finalizer; the migration's intent and end; the driver's intent; Ready."""
    world = Counted()
    world.apply(spec)
    assert world.costs(lambda: ready(world)) <= writes


def test_a_start_whose_executors_come_late_costs_one_write_more() -> None:
    """Their image is pulled, say. That the driver is healthy is a condition, and written at once."""
    world = Counted()
    world.habits.executors = "pending"
    world.apply(SPEC)
    assert world.run(30, until=lambda: any(report["phase"] == "Running" for _, report in world.ledger.reports.values()))
    world.habits.executors = "ok"
    assert world.run(20, until=lambda: ready(world)), world.status
    assert len(world.written) == 4


@REPORTS
def test_a_slow_start_costs_a_write_more_only_if_its_driver_reports(*, early: bool, more: int) -> None:
    """That its pod is there, and where, is seen while it starts; it is written with what comes next."""
    world = Counted()
    world.habits.early = early
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    world.lose_nodes()
    world.run(90)
    world.restore_nodes()
    assert world.run(20, until=lambda: ready(world)), world.status
    assert len(world.written) <= 3 + more


def test_a_driver_that_stays_unheard_is_known_after_two_minutes() -> None:
    """By its pod's uid: then its loss counts as one."""
    world = Counted()
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    world.lose_nodes()
    assert world.run(130, until=lambda: world.status["driver"].get("uid") == world.drivers()[0]["metadata"]["uid"]), world.status


@pytest.mark.parametrize(("phase", "waits"), [(Phase.STARTING, True), (Phase.RUNNING, False)])
def test_the_number_of_executors_waits_only_until_ready(phase: Phase, *, waits: bool) -> None:
    """An autoscaler reads it afterwards."""
    old = Status(phase=phase, replicas=0)
    assert found_again(old, replace(old, replicas=3)) is waits
    assert not urgent(old, replace(old, replicas=3))


@pytest.mark.parametrize(
    ("replicas", "leave", "more"),
    [
        (1, 0, 0),
        (5, 0, 0),
        pytest.param(1, 3, 1, id="an executor ends its tasks"),  # Draining is a condition, and written at once
    ],
)
def test_scaling_costs_two_status_writes(replicas: int, leave: int, more: int) -> None:
    """The intent, and that it is reached; however many executors come or go. That some still end their tasks is one more."""
    world = started()
    world.habits.leave = leave
    world.apply({**SPEC, "replicas": replicas})
    assert world.costs(lambda: ready(world) and len(world.executors()) == replicas) <= 2 + more


@REPORTS
def test_a_restart_costs_two_status_writes(*, early: bool, more: int) -> None:
    """The first one tells all of it, before anything is done: that the driver drains, and which one follows. The second one: Ready."""
    world = started()
    world.habits.early = early
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    assert world.costs(lambda: ready(world) and world.status["driver"]["attempt"] == 2) <= 2 + more


@REPORTS
def test_a_slow_restart_costs_a_write_more_only_if_its_driver_reports(*, early: bool, more: int) -> None:
    world = started()
    world.habits.early = early
    world.habits.drain = 40
    before = len(world.written)
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    assert world.run(60, until=lambda: [pod["metadata"]["name"] for pod in world.drivers()] == ["orders-driver-2"]), world.status
    world.lose_nodes()
    world.run(60)
    world.restore_nodes()
    assert world.run(20, until=lambda: ready(world)), world.status
    assert len(world.written) - before <= 2 + more


def test_a_restart_that_goes_wrong_is_no_old_news() -> None:
    leaving = Leaving(attempt=1, pod="orders-driver-1", uid="1", why="SpecChanged")
    old = Status(phase=Phase.STARTING, driver=DriverStatus(attempt=2, pod="orders-driver-2", leaving=leaving))
    for reason, told in [("DriverStarting", True), ("ImagePullBackOff", False)]:
        ready = Condition(type="Ready", status="False", reason=reason, message="", last_transition_time=NOW, observed_generation=1)
        first = replace(old, conditions=(replace(ready, reason="SpecChanged"),))
        new = replace(old, driver=replace(old.driver, leaving=None, uid="2"), conditions=(ready,))
        assert found_again(first, new) is told


def test_a_suspension_costs_two_status_writes() -> None:
    world = started()
    world.apply({**SPEC, "suspend": True})
    assert world.costs(lambda: world.status["phase"] == "Suspended") <= 2


@pytest.mark.parametrize(("others", "most"), [(0, 75), (1000, 3)])
def test_many_resources_write_their_figures_less_often(others: int, most: int) -> None:
    """Every ten seconds; of a thousand, every 333 s: 3 such writes a second in all, however many there are."""
    world = started()
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(others)}
    before = len(world.written)
    world.run(750)
    assert 2 <= len(world.written) - before <= most
    assert world.condition("Ready")["status"] == "True"


def test_many_resources_do_not_delay_what_somebody_waits_for() -> None:
    world = started()
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(1000)}
    world.apply({**SPEC, "replicas": 5})
    assert world.run(15, until=lambda: ready(world) and world.status["replicas"] == 5), world.status


def test_a_resource_is_taken_over_only_as_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Counted()
    world.apply(SPEC)
    patching = world.memory.patch

    def edited(kind: str, namespace: str, name: str, changes: dict[str, object]) -> dict[str, object]:
        monkeypatch.setattr(world.memory, "patch", patching)
        world.apply({**SPEC, "suspend": True})
        world.memory.edit(world.must(), {"metadata": {"finalizers": ["example.com/theirs"]}})
        return patching(kind, namespace, name, changes)

    monkeypatch.setattr(world.memory, "patch", edited)
    assert world.run(60, until=lambda: world.status.get("phase") == "Suspended"), world.status
    assert world.status["driver"]["attempt"] == 0
    assert world.reasons() == ["Accepted", "Suspended"]
    assert world.must()["metadata"]["finalizers"] == ["example.com/theirs", FINALIZER]


def test_a_finalizer_that_is_refused_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Counted()
    world.apply(SPEC)
    patching = world.memory.patch

    def refused(*_: object) -> dict[str, object]:
        raise Rejected("Forbidden", "a policy says no")

    monkeypatch.setattr(world.memory, "patch", refused)
    assert world.run(20, until=lambda: world.condition("Ready").get("reason") == "ApiRefused"), world.status
    assert world.drivers() == []
    monkeypatch.setattr(world.memory, "patch", patching)
    assert world.run(90, until=lambda: ready(world)), world.status
