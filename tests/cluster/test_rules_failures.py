"""Drivers that cannot start or do not stay: what is wrong stands in the condition, in the words of whoever knows."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from cluster_bench import Bench
from rules_world import Subject, World, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

IMAGE, MEMORY, HUGE = "no-image", "no-memory", "no-room"
MISSING = "registry.invalid/orders:1"
LIMIT = 30.0  # seconds until a missing image is named


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
    memory, huge = alone.manifest(MEMORY, restart=once), alone.manifest(HUGE)
    memory["spec"]["driver"]["resources"] = {"limits": {"memory": "1Gi"}}  # with less it would be refused; its own heap is more than that
    memory["spec"]["sparkConf"] = {"spark.driver.memory": "3g", "spark.driver.extraJavaOptions": "-Xms3g -XX:+AlwaysPreTouch"}
    huge["spec"]["driver"]["resources"] = {"requests": {"cpu": "900"}}
    alone.bench.apply(memory, huge)
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
