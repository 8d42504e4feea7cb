"""Executors come and go while their driver stays: by hand, by an autoscaler, past a deadline, and with one wish after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster_bench import Bench
from rules_world import Subject, World, world

from sluice_lab import places
from sluice_lab.errors import CommandFailedError
from sluice_lab.scenario.installing import NAMESPACE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NIMBLE, SLOW = "nimble", "slow"
HOLD, DRAIN = 45, 15  # seconds: what a task of the slow one takes with the first records, and what its executors get to end theirs
HELD = 100  # the first put has as many numbers, and all shards have some of them


@dataclass
class Autoscaler:
    """Does what the controller of HorizontalPodAutoscalers does: reads `scale`, finds pods by its selector, writes it back with another number."""

    subject: Subject
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.path = f"/apis/sluice.dev/v1alpha1/namespaces/{NAMESPACE}/kinesisconsumers/{self.subject.name}/scale"

    def look(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.subject.bench.cluster.kubectl("get", "--raw", self.path))
        return found

    def pods(self) -> list[str]:
        selector = self.look()["status"]["selector"]
        return [pod["metadata"]["name"] for pod in self.subject.bench.get("pods", f"--selector={selector}")]

    def want(self, replicas: int) -> None:
        """Writes it; somebody else may have written between the look and this."""
        self.subject.bench.until(f"{replicas} written to scale", lambda: self._write(replicas))

    def _write(self, replicas: int) -> bool:
        path = places.made(places.work() / "tests") / "scale.json"
        path.write_text(json.dumps(self.look() | {"spec": {"replicas": replicas}}))
        try:
            self.subject.bench.cluster.kubectl("replace", "--raw", self.path, f"--filename={path}")
        except CommandFailedError as error:
            if "Conflict" in str(error) or "has been modified" in str(error):
                return False
            raise
        return True


@pytest.fixture(scope="module")
def scales(bench: Bench) -> Iterator[World]:
    """Two consumers side by side: an ordinary one, and one whose tasks take long and whose executors are not waited for as long."""
    with world(bench, "rules-scale") as found:
        slow = found.manifest(SLOW, args={"hold": HOLD, "held": HELD}, replicas=3, drainTimeoutSeconds=DRAIN)
        bench.apply(found.manifest(NIMBLE), slow)
        yield found


@pytest.fixture(scope="module")
def surplus(scales: World) -> set[str]:
    """The slow one has tasks on three executors and is told to have one; then four, then two. The executors it had."""
    subject = scales.subject(SLOW)
    scales.bench.until("three executors", lambda: subject.settled(3))
    scales.bench.until("all of them warm", lambda: subject.warm(3))
    scales.put()
    scales.bench.until("tasks at work on every shard", lambda: scales.bound(SLOW) >= 3)
    had = set(subject.uids("executor"))
    subject.scale(1)
    return had


def test_executors_that_drain_are_listed_with_their_deadlines(scales: World, surplus: set[str]) -> None:
    subject = scales.subject(SLOW)
    scales.bench.until("two of them listed", lambda: len(subject.status.get("draining") or []) == 2)
    subject.scale(4)
    status, condition = subject.status, subject.condition("Draining")
    assert {drain["pod"] for drain in status["draining"]} < surplus
    assert all(drain["deadline"] for drain in status["draining"])
    assert (condition["status"], condition["reason"]) == ("True", "ScaleDown")
    assert subject.condition("Ready")["status"] == "True"
    subject.scale(2)


def test_executors_that_are_past_their_deadline_are_ended(scales: World, surplus: set[str]) -> None:
    subject = scales.subject(SLOW)
    scales.bench.until("one of three left", lambda: len(surplus & set(subject.uids("executor"))) == 1, HOLD - 10)


def test_of_changes_while_executors_drain_the_last_wins(scales: World, surplus: set[str]) -> None:
    subject = scales.subject(SLOW)
    scales.bench.until("a second executor again", lambda: len(subject.uids("executor")) == 2 and subject.registered() == 2)
    told = [text for text in scales.bench.events(SLOW) if text.startswith("Scaling: ")]
    assert sorted(told) == [f"Scaling: {n} requested from {SLOW}-driver-1" for n in ("1 executor", "2 executors")]
    assert len(surplus & set(subject.uids("executor"))) == 1


def test_kubectl_scale_adds_an_executor_and_the_driver_stays(scales: World) -> None:
    subject = scales.subject(NIMBLE)
    scales.bench.until("one executor", lambda: subject.settled(1))
    driver = subject.uids("driver")
    subject.scale(2)
    scales.bench.until("two executors", lambda: subject.settled(2))
    assert subject.uids("driver") == driver


def test_an_autoscaler_finds_the_executors_and_takes_one_away(scales: World) -> None:
    subject = scales.subject(NIMBLE)
    autoscaler, driver, executors = Autoscaler(subject), subject.uids("driver"), set(subject.uids("executor"))
    look = autoscaler.look()
    assert (look["kind"], look["spec"]["replicas"], look["status"]["replicas"]) == ("Scale", 2, 2)
    assert set(autoscaler.pods()) == executors
    autoscaler.want(1)
    scales.bench.until("one executor", lambda: subject.settled(1) and len(subject.uids("executor")) == 1)
    assert set(subject.uids("executor")) < executors
    assert autoscaler.look()["status"]["replicas"] == 1
    assert subject.uids("driver") == driver


def test_an_executor_that_is_lost_after_a_scale_down_is_replaced(scales: World) -> None:
    """By the same driver: to have been told a smaller number is not to want none."""
    subject = scales.subject(NIMBLE)
    driver, lost = subject.uids("driver"), subject.uids("executor")
    scales.bench.kubectl("delete", "pod", *lost, "--grace-period=0", "--force")
    scales.bench.until("another executor", lambda: subject.settled(1) and not set(subject.uids("executor")) & set(lost))
    assert subject.uids("driver") == driver


def test_an_autoscaler_that_wants_none_ends_the_driver_too(scales: World) -> None:
    subject = scales.subject(NIMBLE)
    Autoscaler(subject).want(0)
    scales.bench.until("nothing left", lambda: subject.left() == [] and subject.status["phase"] == "Idle")
    assert subject.condition("Ready")["reason"] == "ScaledToZero"
    assert Autoscaler(subject).look()["status"]["replicas"] == 0
    assert subject.status["driver"]["exit"]["reason"] == "Drained"


def test_scaling_up_from_none_goes_on_where_it_was(scales: World) -> None:
    subject = scales.subject(NIMBLE)
    scales.put()
    subject.scale(1)
    scales.bench.until("one executor", lambda: subject.settled(1))
    assert subject.uids("driver").keys() == {f"{NIMBLE}-driver-2"}
    scales.bench.until("every record", lambda: not scales.missing(NIMBLE))
    assert scales.twice(NIMBLE) == []
    assert subject.status["restarts"]["count"] == 0


def test_tasks_of_executors_that_were_ended_are_done_by_others(scales: World) -> None:
    subject = scales.subject(SLOW)
    scales.bench.until("every record", lambda: not scales.missing(SLOW))
    assert scales.twice(SLOW) == []
    assert {row["by"] for row in scales.kept(SLOW)} == {f"{SLOW}-driver-1"}
    status = subject.status
    assert status["restarts"]["count"] == 0, (status.get("driver"), status.get("conditions"), scales.bench.events(SLOW))
