"""What restarts a driver and what does not: a bad spec, an image, an entrypoint, a pause; and a deletion at an odd moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from cluster_bench import Bench
from operating import kill, taken_over
from rules_world import World, world

from sluice_lab.machine.processes import run

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

STEADY, OTHER = "restarted", "paused"
LONG = 600  # seconds: the lease of the other one, which no driver of it has to wait out
ANOTHER = "sluice-consumer:of-the-rules"  # the same image under another name


@dataclass(frozen=True)
class Begun:
    world: World
    drivers: dict[str, str]


@pytest.fixture(scope="module")
def begun(bench: Bench) -> Iterator[Begun]:
    with world(bench, "rules-restart", shards=2) as found:
        bench.apply(found.manifest(STEADY, args={"label": "first"}), found.manifest(OTHER, leaseDurationSeconds=LONG))
        subjects = [found.subject(name) for name in (STEADY, OTHER)]
        drivers = bench.until("both drivers", lambda: (d := subjects[0].uids("driver") | subjects[1].uids("driver")) and len(d) == 2 and d)
        yield Begun(found, drivers)


@pytest.fixture(scope="module")
def restarts(begun: Begun) -> World:
    bench, found = begun.world.bench, begun.world
    taken_over(bench, kill(bench))
    bench.until("both Ready", lambda: all(found.subject(name).settled(1) for name in (STEADY, OTHER)))
    return found


@pytest.fixture(scope="module")
def another(restarts: World) -> Iterator[str]:
    (driver,) = restarts.subject(OTHER).pods("driver")
    (image,) = (container["image"] for container in driver["spec"]["containers"])
    on_node = ("docker", "exec", restarts.bench.cluster.node, "ctr", "--namespace=k8s.io", "images")
    run(*on_node, "tag", "--force", f"docker.io/library/{image}", f"docker.io/library/{ANOTHER}")
    yield ANOTHER
    run(*on_node, "remove", f"docker.io/library/{ANOTHER}")


def test_drivers_that_start_while_the_leader_dies_are_the_next_ones_too(restarts: World, begun: Begun) -> None:
    subjects = [restarts.subject(name) for name in (STEADY, OTHER)]
    assert subjects[0].uids("driver") | subjects[1].uids("driver") == begun.drivers
    assert [(subject.attempts(), subject.status["restarts"]["count"]) for subject in subjects] == [(1, 0)] * 2


def test_an_invalid_spec_leaves_the_last_good_one_running(restarts: World) -> None:
    subject = restarts.subject(STEADY)
    driver = subject.uids("driver")
    subject.patch(restart={"backoffSeconds": 100, "maxBackoffSeconds": 10}, replicas=2)
    restarts.bench.until("SpecValid is False", lambda: subject.condition("SpecValid").get("status") == "False")
    assert "maxBackoffSeconds" in subject.condition("SpecValid")["message"]
    restarts.put()
    restarts.bench.until("every record", lambda: not restarts.missing(STEADY))
    assert subject.uids("driver") == driver
    assert subject.condition("Ready")["status"] == "True"
    assert len(subject.uids("executor")) == subject.status["lastGoodSpec"]["replicas"] == 1


def test_a_spec_that_is_put_right_restarts_nothing(restarts: World) -> None:
    subject = restarts.subject(STEADY)
    driver = subject.uids("driver")
    subject.patch(restart={"backoffSeconds": 1, "maxBackoffSeconds": 4}, replicas=1)
    restarts.bench.until("SpecValid is True", lambda: subject.condition("SpecValid").get("status") == "True" and subject.settled(1))
    assert subject.uids("driver") == driver


def test_while_paused_everything_is_seen_and_nothing_is_done(restarts: World, another: str) -> None:
    subject = restarts.subject(OTHER)
    before, had = subject.status, subject.uids("driver") | subject.uids("executor")
    subject.annotate("paused=true")
    restarts.bench.until("Paused", lambda: subject.condition("Ready").get("reason") == "Paused")
    subject.patch(pipeline={"image": another}, replicas=2)
    restarts.put()
    restarts.bench.until("every record", lambda: not restarts.missing(OTHER))
    restarts.bench.until("figures of that", lambda: subject.status["stream"]["batch"] > before["stream"]["batch"])
    assert subject.uids("driver") | subject.uids("executor") == had
    assert subject.status["driver"]["specHash"] == before["driver"]["specHash"]
    assert restarts.bench.resource(OTHER)["status"]["observedGeneration"] == restarts.bench.resource(OTHER)["metadata"]["generation"]


def test_another_image_restarts_the_driver_once_nobody_pauses_it(restarts: World, another: str) -> None:
    """Drained, so the next has nothing to wait out, which would be its long lease; its executors are of that image too."""
    subject = restarts.subject(OTHER)
    subject.annotate("paused-")
    restarts.bench.until("two executors of the second driver", lambda: subject.settled(2) and subject.attempts() == 2, LONG / 2)
    pods = [*subject.pods("driver"), *subject.pods("executor")]
    assert {container["image"] for pod in pods for container in pod["spec"]["containers"]} == {another}
    assert subject.status["restarts"]["count"] == 0


def test_suspending_drains_it_and_resuming_goes_on(restarts: World) -> None:
    subject = restarts.subject(OTHER)
    subject.patch(suspend=True)
    restarts.bench.until("suspended, and no pods", lambda: subject.status["phase"] == "Suspended" and not subject.left())
    subject.patch(suspend=False, replicas=1)
    restarts.bench.until("the third driver", lambda: subject.settled(1) and subject.attempts() == 3, LONG / 2)
    assert subject.status["restarts"]["count"] == 0


def test_a_consumer_can_be_deleted_while_it_is_paused(restarts: World) -> None:
    subject = restarts.subject(OTHER)
    subject.annotate("paused=true")
    restarts.bench.until("Paused", lambda: subject.condition("Ready").get("reason") == "Paused")
    subject.delete()


def test_other_arguments_restart_the_driver_also_if_the_leader_dies_meanwhile(restarts: World) -> None:
    subject = restarts.subject(STEADY)
    subject.patch(pipeline={"args": restarts.args(label="second", hold=8)})
    restarts.bench.until("the driver drains", lambda: subject.condition("Draining").get("status") == "True")
    taken_over(restarts.bench, kill(restarts.bench))
    restarts.bench.until("the second driver", lambda: subject.settled(1) and subject.attempts() == 2)
    assert list(subject.uids("driver")) == [f"{STEADY}-driver-2"]
    assert (subject.status["driver"]["generation"], subject.status["restarts"]["count"]) == (2, 0)
    restarts.put()
    restarts.bench.until("tasks at work", lambda: restarts.bound(STEADY) > 0)


def test_a_consumer_can_be_deleted_while_its_driver_drains(restarts: World) -> None:
    """It drains for a change of its spec and has a batch to end; that batch is done, no other driver is begun, and nothing is left.

    The batch may have been begun while the last records were being put: those stay in the stream.
    """
    subject, before = restarts.subject(STEADY), restarts.subject(STEADY).attempts()
    subject.patch(pipeline={"args": restarts.args(label="third")})
    restarts.bench.until("the driver drains", lambda: subject.condition("Draining").get("status") == "True")
    subject.delete()
    assert restarts.bound(STEADY) == 0
    assert (restarts.skipped(STEADY), restarts.twice(STEADY)) == ([], [])
    assert {row["label"] for row in restarts.kept(STEADY)} == {"first", "second"}
    assert not [text for text in restarts.bench.events(STEADY) if text.startswith("DriverStarting: ") and f"-{before + 1}" in text]
