"""Drivers that cannot start or do not stay: what is wrong stands in the condition, in the words of whoever knows, and comes again with patience."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from cluster_bench import Bench
from operating import kill, taken_over
from rules_world import Subject, World, pause, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

IMAGE, NOWHERE, MEMORY, HUGE, CRASH = "no-image", "no-module", "no-memory", "no-room", "no-peace"
MISSING = "registry.invalid/orders:1"
BAD_OPTION = {"name": "SPARK_SUBMIT_OPTS", "value": "-Xss4g"}  # Java starts with that, and no JVM of Spark
LIMIT = 30.0  # seconds until a missing image is named
FIRST_PAUSE, SLACK = 3, 8  # seconds


@pytest.fixture(scope="module")
def alone(bench: Bench) -> Iterator[World]:
    with world(bench, "rules-failures", shards=1) as found:
        yield found


@pytest.fixture(scope="module")
def named_after(alone: World) -> float:
    """Seconds until a missing image stands in the condition; measured before there is anything else to do."""
    missing = alone.manifest(IMAGE)
    missing["spec"]["pipeline"] |= {"image": MISSING}
    subject, began = alone.subject(IMAGE), time.monotonic()
    alone.bench.apply(missing)
    alone.bench.until("the image in the condition", lambda: MISSING in subject.condition("Ready").get("message", ""))
    return time.monotonic() - began


@pytest.fixture(scope="module")
def failures(alone: World, named_after: float) -> World:
    assert named_after
    once = {"backoffSeconds": 600, "maxBackoffSeconds": 600}
    nowhere, memory, huge = alone.manifest(NOWHERE, restart=once), alone.manifest(MEMORY, restart=once), alone.manifest(HUGE)
    nowhere["spec"]["pipeline"] |= {"entrypoint": "nowhere.to_be:found"}
    memory["spec"]["driver"]["resources"] = {"limits": {"memory": "1Gi"}}  # with less it would be refused; its own heap is more than that
    memory["spec"]["sparkConf"] = {"spark.driver.memory": "3g", "spark.driver.extraJavaOptions": "-Xms3g -XX:+AlwaysPreTouch"}
    huge["spec"]["driver"]["resources"] = {"requests": {"cpu": "900"}}
    alone.bench.apply(nowhere, memory, huge)
    return alone


def says(subject: Subject, reason: str, *words: str) -> bool:
    ready = subject.condition("Ready")
    return ready.get("status") == "False" and ready["reason"] == reason and all(word in ready["message"] for word in words)


def test_a_missing_image_is_named_within_half_a_minute(alone: World, named_after: float, capsys: pytest.CaptureFixture[str]) -> None:
    """From the moment the resource is applied; ImagePullBackOff, whichever of its two words the kubelet says just now."""
    with capsys.disabled():
        print(f"\na missing image was named after {named_after:.1f} s")  # noqa: T201 - a figure for people
    assert says(alone.subject(IMAGE), "ImagePullBackOff", MISSING, "spec.pipeline.image")
    assert named_after <= LIMIT


def test_a_consumer_whose_image_never_comes_can_be_deleted(alone: World, named_after: float) -> None:
    assert named_after
    alone.subject(IMAGE).delete()


def test_a_driver_that_no_node_has_room_for_is_named(failures: World) -> None:
    subject = failures.subject(HUGE)
    failures.bench.until("Unschedulable", lambda: says(subject, "Unschedulable", "Insufficient cpu"))
    assert len(subject.pods("driver")) == 1


def test_a_driver_that_runs_out_of_memory_is_named(failures: World) -> None:
    subject = failures.subject(MEMORY)
    failures.bench.until("OOMKilled", lambda: subject.condition("DriverHealthy").get("reason") == "OOMKilled")
    failures.bench.until("what to do", lambda: says(subject, "OOMKilled", "spec.driver.resources"))
    assert subject.status["restarts"]["count"] >= 1


def test_a_bad_entrypoint_is_named_and_somebody_has_to_do_something(failures: World) -> None:
    subject = failures.subject(NOWHERE)
    failures.bench.until("Stalled", lambda: subject.condition("Stalled").get("reason") == "Refused")
    assert "nowhere" in subject.condition("Stalled")["message"]
    assert subject.status["phase"] == "Failed"


def test_a_driver_that_fails_again_and_again_is_tried_with_growing_pauses(alone: World) -> None:
    """Each twice as long as the one before; its own words are the reason. The leader dies in the third, and nothing is counted or made twice."""
    crash, subject = alone.manifest(CRASH, restart={"backoffSeconds": FIRST_PAUSE, "maxBackoffSeconds": 60}), alone.subject(CRASH)
    crash["spec"]["driver"]["podTemplate"]["spec"]["containers"][0]["env"][-1] = BAD_OPTION  # in place of rules_world.JVM
    alone.bench.apply(crash)
    pauses = [alone.bench.until(f"failure {number}", lambda number=number: pause(subject.status, number)) for number in (1, 2, 3)]
    died = kill(alone.bench)
    assert says(subject, "PySparkRuntimeError", "Java gateway process exited")
    for number, seconds in enumerate(pauses):
        assert FIRST_PAUSE * 2**number <= seconds <= FIRST_PAUSE * 2**number + SLACK
    taken_over(alone.bench, died)
    alone.bench.until("a fourth driver", lambda: subject.uids("driver"))
    assert list(subject.uids("driver")) == [f"{CRASH}-driver-4"]
    assert (subject.attempts(), subject.status["restarts"]["count"]) == (4, 3)
