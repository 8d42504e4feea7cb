"""Two nodes: one is drained, and later answers nobody. The consumer moves on without loss; of a dead node only a person may say that it is dead."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from cluster_bench import Bench
from operating import kill, ready, taken_over
from rules_world import Subject, World, world

from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import workers
from sluice_lab.machine.processes import answers, run

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

MOVED, STRANDED = "moved", "stranded"
GRACE = 1 + 30  # seconds: the stranded one's drain timeout, and what a pod gets beside it


@dataclass(frozen=True)
class Nodes:
    world: World
    worker: str

    @property
    def bench(self) -> Bench:
        return self.world.bench

    @property
    def moved(self) -> Subject:
        return self.world.subject(MOVED)

    @property
    def stranded(self) -> Subject:
        return self.world.subject(STRANDED)


@pytest.fixture(scope="module")
def nodes(bench: Bench) -> Iterator[Nodes]:
    """Two consumers on a second node, Ready; new pods go to the first from then on."""
    with workers.worker(bench.cluster, bench.consumer_image()) as worker, world(bench, "rules-nodes") as found:
        bench.cluster.kubectl("cordon", bench.cluster.node)
        try:
            bench.apply(found.manifest(MOVED, replicas=2), found.manifest(STRANDED, drainTimeoutSeconds=1))
            both = Nodes(found, worker)
            bench.until("both Ready", lambda: both.moved.settled(2) and both.stranded.settled(1))
        finally:
            bench.cluster.kubectl("uncordon", bench.cluster.node)
        assert both.moved.nodes() | both.stranded.nodes() == {worker}
        yield both
        unpaused(worker)


@dataclass(frozen=True)
class Dead:
    uid: str
    asked: float


@pytest.fixture(scope="module")
def dead(nodes: Nodes) -> Dead:
    """The node answers nobody any more, and somebody wants the driver there gone."""
    (uid,) = nodes.stranded.uids("driver").values()
    nodes.world.put()
    run("docker", "pause", nodes.worker)
    nodes.bench.kubectl("delete", "pod", f"{STRANDED}-driver-1", "--wait=false")
    return Dead(uid, time.monotonic())


def unpaused(worker: str) -> None:
    if answers("docker", "inspect", worker) and run("docker", "inspect", "--format", "{{.State.Paused}}", worker).strip() == "true":
        run("docker", "unpause", worker)


def test_a_drained_node_is_left_by_driver_and_executors_though_the_leader_dies(nodes: Nodes) -> None:
    """Evicted while nobody leads, the driver ends its batch all the same, within its grace period; its executors leave meanwhile, and others come."""
    nodes.world.put()
    died = kill(nodes.bench)
    nodes.bench.cluster.kubectl("drain", nodes.worker, f"--pod-selector=sluice.dev/consumer={MOVED}", "--delete-emptydir-data", "--timeout=300s")
    nodes.world.put()
    taken_over(nodes.bench, died)


def test_of_a_dead_node_nobody_says_that_it_is_dead(nodes: Nodes, dead: Dead) -> None:
    """Its driver does not end, and no other is begun beside it: it may be alive."""
    subject = nodes.stranded
    nodes.bench.until("it drains", lambda: subject.status["phase"] == "Draining")
    assert (subject.uids("driver"), subject.attempts()) == ({f"{STRANDED}-driver-1": dead.uid}, 1)


def test_after_a_drain_nothing_is_lost_and_nothing_is_read_twice(nodes: Nodes) -> None:
    subject = nodes.moved
    nodes.bench.until("Ready again", lambda: subject.settled(2))
    assert subject.nodes() == {nodes.bench.cluster.node}
    assert list(subject.uids("driver")) == [f"{MOVED}-driver-2"]
    nodes.bench.until("every record", lambda: not nodes.world.missing(MOVED))
    assert nodes.world.twice(MOVED) == []
    assert subject.status["restarts"]["count"] == 0


def test_a_driver_that_should_be_gone_is_named_with_the_way_to_give_it_up(nodes: Nodes, dead: Dead) -> None:
    subject = nodes.stranded
    nodes.bench.until("DriverOverdue", lambda: subject.condition("Ready").get("reason") == "DriverOverdue")
    assert time.monotonic() - dead.asked >= GRACE
    assert f"sluice.dev/force={dead.uid}" in subject.condition("Ready")["message"]
    assert (subject.uids("driver"), subject.attempts()) == ({f"{STRANDED}-driver-1": dead.uid}, 1)


def test_a_driver_that_is_given_up_is_replaced_by_one_that_knows_it(nodes: Nodes, dead: Dead) -> None:
    subject = nodes.stranded
    subject.annotate(f"force={dead.uid}")
    nodes.bench.until("the second driver", lambda: list(subject.uids("driver")) == [f"{STRANDED}-driver-2"])
    (driver,) = subject.pods("driver")
    assert json.loads(driver["metadata"]["annotations"]["sluice.dev/config"])["force"] is True
    nodes.bench.until("Ready again", lambda: subject.settled(1))
    assert subject.nodes() == {nodes.bench.cluster.node}
    nodes.bench.until("every record", lambda: not nodes.world.missing(STRANDED))
    assert nodes.world.twice(STRANDED) == []


def test_a_node_that_comes_back_changes_nothing(nodes: Nodes, dead: Dead) -> None:
    """What lived there is ended by its own watchdog, its kubelet and the fence; the new driver goes on, and nothing is read twice."""
    subject = nodes.stranded
    driver = subject.uids("driver")
    unpaused(nodes.worker)
    alive = ("docker", "exec", nodes.worker, "sh", "-c", f"grep -lxzF SLUICE_POD_NAME={STRANDED}-driver-1 /proc/[0-9]*/environ 2>/dev/null || true")
    nodes.bench.until("the old driver's processes are gone", lambda: not run(*alive).split())
    nodes.world.put()
    nodes.bench.until("every record", lambda: not nodes.world.missing(STRANDED))
    assert nodes.world.twice(STRANDED) == []
    assert subject.uids("driver") == driver
    assert dead.uid not in driver.values()


def test_a_second_node_that_an_interrupted_run_left_is_taken_away(nodes: Nodes) -> None:
    """Before the next run installs anything: pods would be put there, and be lost with it. The first node takes pods again, and the rest goes on."""
    cluster = nodes.bench.cluster
    cluster.kubectl("cordon", cluster.node)
    workers.tidy(cluster)
    found = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    assert [(node["metadata"]["name"], node["spec"].get("unschedulable")) for node in found] == [(cluster.node, None)]
    assert clusters.nodes(cluster) == [cluster.node]
    nodes.bench.until("two replicas on it", lambda: ready(nodes.bench, 2))
    assert nodes.stranded.settled(1)
