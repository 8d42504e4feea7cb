"""What a change costs the API server, beside the pods and Jobs it is about: status writes are counted, patches of the resource too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from simulated_cluster import KEY, MIGRATING, SPEC, SimulatedCluster, ready

from sluice_operator.cluster.port import CONSUMER_KIND, Rejected
from sluice_operator.names import FINALIZER
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.plan.live_read_policy import RESYNC
from sluice_operator.plan.running import STALE
from sluice_operator.plan.write_policy import found_again, urgent
from sluice_operator.run.reconcile import reconcile
from sluice_operator.state.status import Condition, DriverStatus, Leaving, Phase, Status

NOW = datetime(2026, 11, 22, tzinfo=UTC)
READS = {"get", "list", "check"}
ONE_TOO_MANY = pytest.mark.xfail(strict=True, raises=AssertionError, reason="the simulation found a third status write; the claim is two")
EARLY = pytest.mark.parametrize(
    "early",
    [
        pytest.param(False, id="heard of when it runs"),
        pytest.param(True, id="heard of when Spark starts", marks=ONE_TOO_MANY),  # ours say so: other words and a generation, written after 10 s
    ],
)


class Counted(SimulatedCluster):
    """The simulated cluster, with what the operator called."""

    @property
    def written(self) -> list[str]:
        """Writes onto the resource, by verb."""
        return [verb for verb, kind in self.faults.done if kind == CONSUMER_KIND and verb not in READS]

    @property
    def listed(self) -> list[str]:
        """Kinds of the lists."""
        return [kind for verb, kind in self.faults.done if verb == "list"]

    def costs(self, until: Callable[[], bool]) -> int:
        """Writes onto the resource until it is so."""
        before = len(self.written)
        assert self.run(120, until=until), self.status
        return len(self.written) - before


def started(spec: dict[str, object] = SPEC) -> Counted:
    """A world with a running consumer, whose figures were written a moment ago."""
    world = Counted()
    world.apply(spec)
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


@pytest.mark.parametrize(("spec", "writes"), [(SPEC, 3), (MIGRATING, 5)])
def test_a_first_start_costs_one_write_a_step(spec: dict[str, object], writes: int) -> None:
    """The finalizer; the migration's intent and end; the driver's intent; Ready."""
    world = Counted()
    world.apply(spec)
    assert world.costs(lambda: ready(world)) <= writes


@ONE_TOO_MANY
def test_a_start_whose_executors_come_late_costs_no_more() -> None:
    """Their image is pulled, say. That the driver is healthy is a condition, and written at once."""
    world = Counted()
    world.habits.executors = "pending"
    world.apply(SPEC)
    assert world.run(30, until=lambda: any(report["phase"] == "Running" for _, report in world.ledger.reports.values()))
    world.habits.executors = "ok"
    assert world.run(20, until=lambda: ready(world)), world.status
    assert len(world.written) <= 3


@EARLY
def test_a_slow_start_costs_no_more(*, early: bool) -> None:
    """That its pod is there, and where, is seen while it starts; it is written with what comes next."""
    world = Counted()
    world.habits.early = early
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    world.lose_nodes()
    world.run(90)
    world.restore_nodes()
    assert world.run(20, until=lambda: ready(world)), world.status
    assert len(world.written) <= 3


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
    ("replicas", "leave"),
    [
        (1, 0),
        (5, 0),
        pytest.param(1, 3, id="an executor ends its tasks", marks=ONE_TOO_MANY),  # Draining is a condition, and written at once
    ],
)
def test_scaling_costs_two_status_writes(replicas: int, leave: int) -> None:
    """The intent, and that it is reached; however many executors come or go."""
    world = started()
    world.habits.leave = leave
    world.apply({**SPEC, "replicas": replicas})
    assert world.costs(lambda: ready(world) and len(world.executors()) == replicas) <= 2


@EARLY
def test_a_restart_costs_two_status_writes(*, early: bool) -> None:
    """The first one tells all of it, before anything is done: that the driver drains, and which one follows. The second one: Ready."""
    world = started()
    world.habits.early = early
    world.apply({**SPEC, "batch": {"intervalSeconds": 9}})
    assert world.costs(lambda: ready(world) and world.status["driver"]["attempt"] == 2) <= 2


@EARLY
def test_a_slow_restart_costs_no_more(*, early: bool) -> None:
    """The last driver has a long batch to end, the next one an image to pull."""
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
    assert len(world.written) - before <= 2


def test_a_restart_that_goes_wrong_is_no_old_news() -> None:
    """Only that the next driver starts was told before."""
    leaving = Leaving(attempt=1, pod="orders-driver-1", uid="1", why="SpecChanged")
    old = Status(phase=Phase.STARTING, driver=DriverStatus(attempt=2, pod="orders-driver-2", leaving=leaving))
    for reason, told in [("DriverStarting", True), ("ImagePullBackOff", False)]:
        ready = Condition(type="Ready", status="False", reason=reason, message="", last_transition_time=NOW, observed_generation=1)
        first = replace(old, conditions=(replace(ready, reason="SpecChanged"),))
        new = replace(old, driver=replace(old.driver, leaving=None, uid="2"), conditions=(ready,))
        assert found_again(first, new) is told


def test_a_suspension_costs_two_status_writes() -> None:
    """Drain, Suspended."""
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
    """Only figures wait."""
    world = started()
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(1000)}
    world.apply({**SPEC, "replicas": 5})
    assert world.run(15, until=lambda: ready(world) and world.status["replicas"] == 5), world.status


def test_how_a_driver_gets_on_is_told_without_a_look() -> None:
    """The watches show its pod alive, nothing is done, and the status is written only if the resource is as it was seen."""
    world = Counted()
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    world.faults.done.clear()
    assert world.run(25, until=lambda: ready(world)), world.status
    assert world.listed == []


@pytest.mark.parametrize("change", [{"deletionTimestamp": "2026-01-01T00:00:00Z"}, None], ids=["going", "unseen"])
def test_a_driver_that_is_not_seen_alive_is_looked_for(change: dict[str, str] | None) -> None:
    """A watch may have shown it too late, or not yet: nothing is concluded from that."""
    world = started()
    (driver,) = world.drivers()
    world.context.cache.see("Pod", {**driver, "metadata": {**driver["metadata"], **(change or {})}}, world.now, gone=change is None)
    world.faults.done.clear()
    reconcile(world.context, KEY, world.now)
    assert world.listed == ["Job", "Pod"]
    assert world.status["phase"] == "Running"


def test_only_a_driver_that_is_listened_to_puts_the_next_look_off() -> None:
    """Its silence would be news. While it starts, or drains, time may bring something else."""
    world = started()
    assert reconcile(world.context, KEY, world.now).latest == world.now + RESYNC
    wake = reconcile(world.context, KEY, world.now).wake
    assert wake
    assert world.context.cache.last_report_at(KEY) == world.now - (STALE - (wake - world.now))
    world.apply({**SPEC, "suspend": True})
    assert world.run(60, until=lambda: world.status["phase"] == "Suspended"), world.status
    assert reconcile(world.context, KEY, world.now).latest is None


@pytest.mark.parametrize(("others", "seconds"), [(200, 300), (1000, 1001)])
def test_many_resources_at_rest_are_looked_at_less_often(others: int, seconds: int) -> None:
    """Every five minutes; of a thousand, one a second in all."""
    world = started({**SPEC, "progressDeadlineSeconds": 3600})  # an open batch is looked at when that is over
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(others)}
    assert reconcile(world.context, KEY, world.now).latest == world.now + timedelta(seconds=seconds)


def test_what_a_driver_tells_is_not_written_over_a_change() -> None:
    """The watch has not shown an edit yet: the status is refused, and the next pass looks at what is there."""
    world = Counted()
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    seen = world.context.cache.body(KEY)
    assert world.run(25, until=lambda: ready(world)), world.status
    before = world.must()
    world.context.cache.see(CONSUMER_KIND, seen or {}, world.now)
    world.faults.done.clear()
    reconcile(world.context, KEY, world.now)
    assert world.listed == []
    assert world.must() == before


def test_a_resource_is_taken_over_only_as_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was edited before our finalizer came to it: nothing is made by what it said before, and somebody else's finalizer stays."""
    world = Counted()
    world.apply(SPEC)
    patching = world.twin.patch

    def edited(kind: str, namespace: str, name: str, changes: dict[str, object]) -> dict[str, object]:
        monkeypatch.setattr(world.twin, "patch", patching)
        world.apply({**SPEC, "suspend": True})
        world.twin.edit(world.must(), {"metadata": {"finalizers": ["example.com/theirs"]}})
        return patching(kind, namespace, name, changes)

    monkeypatch.setattr(world.twin, "patch", edited)
    assert world.run(60, until=lambda: world.status.get("phase") == "Suspended"), world.status
    assert world.status["driver"]["attempt"] == 0
    assert world.reasons() == ["Accepted", "Suspended"]
    assert world.must()["metadata"]["finalizers"] == ["example.com/theirs", FINALIZER]


def test_taking_a_resource_over_saves_the_look_a_read() -> None:
    """The write answers with the resource as it is; only Jobs and pods are listed before the first driver is made."""
    world = Counted()
    world.apply(SPEC)
    world.context.cache.see(CONSUMER_KIND, world.must(), world.now)
    reconcile(world.context, KEY, world.now)
    assert [call for call in world.faults.done if call[0] in READS] == [("list", "Job"), ("list", "Pod")]
    assert world.drivers()


def test_a_finalizer_that_is_refused_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an admission policy, say; nothing is made meanwhile, and the status says why."""
    world = Counted()
    world.apply(SPEC)
    patching = world.twin.patch

    def refused(*_: object) -> dict[str, object]:
        raise Rejected("Forbidden", "a policy says no")

    monkeypatch.setattr(world.twin, "patch", refused)
    assert world.run(20, until=lambda: world.condition("Ready").get("reason") == "ApiRefused"), world.status
    assert world.drivers() == []
    monkeypatch.setattr(world.twin, "patch", patching)
    assert world.run(90, until=lambda: ready(world)), world.status


@pytest.mark.parametrize(("others", "least", "most"), [(0, 15, 24), (1000, 1, 3)])
def test_many_resources_are_looked_at_less_often_while_nothing_happens(others: int, least: int, most: int) -> None:
    """A driver that does not start is looked at every 30 s; a thousand of them would be a hundred reads a second. All of them get 12."""
    world = Counted()
    world.lose_nodes()
    world.context.looked |= {ResourceKey("elsewhere", str(number)): world.now for number in range(others)}
    world.apply(SPEC)
    world.run(10)
    world.faults.done.clear()
    world.run(600)
    assert least <= world.listed.count("Pod") <= most
