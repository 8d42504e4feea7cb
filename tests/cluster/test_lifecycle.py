"""A consumer's epoch on a real cluster, beside the main job: a change of its spec, suspension, a wrong image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench, consumer, is_ready

from sluice_lab.scenario import environment
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
NAME = "steady"


@pytest.fixture(scope="module", autouse=True)
def _stream(bench: Bench) -> Iterator[None]:
    with Stream(bench.aws.kinesis, environment.STREAM).existing(4):
        yield


def ready(bench: Bench) -> dict[str, Any] | None:
    """The resource, once it is Ready for its present generation."""
    found = bench.resource(NAME)
    return found if is_ready(found) else None


def test_a_change_of_the_spec_drains_the_driver_and_starts_the_next_without_waiting(bench: Bench) -> None:
    """The old one releases its lease, so that the next has nothing to wait out; it is no failure."""
    bench.apply(consumer(bench, NAME, batch={"intervalSeconds": 1}, leaseDurationSeconds=600))
    first = bench.until("Ready", lambda: ready(bench))
    assert first["status"]["driver"]["attempt"] == 1
    bench.apply(consumer(bench, NAME, batch={"intervalSeconds": 2}, leaseDurationSeconds=600))
    # Less than the 600 s that a driver would have to watch a lease that was not released.
    second = bench.until("Ready again, with the second driver", lambda: (r := ready(bench)) and r["status"]["driver"]["attempt"] == 2 and r)
    assert second["status"]["driver"]["generation"] == 2
    assert second["status"]["restarts"]["count"] == 0


def test_suspending_drains_it_and_resuming_goes_on(bench: Bench) -> None:
    """Nothing runs in between, and nothing is forgotten."""
    bench.kubectl("patch", "kinesisconsumer", NAME, "--type=merge", '--patch={"spec":{"suspend":true}}')
    bench.until("no pods", lambda: not bench.get("pods", f"--selector=sluice.dev/consumer={NAME}"))
    bench.until("phase Suspended", lambda: bench.resource(NAME)["status"]["phase"] == "Suspended")
    bench.kubectl("patch", "kinesisconsumer", NAME, "--type=merge", '--patch={"spec":{"suspend":false}}')
    third = bench.until("Ready again", lambda: (r := ready(bench)) and r["status"]["driver"]["attempt"] == 3 and r)
    assert third["status"]["driver"]["generation"] == 3


def test_a_missing_image_is_named_and_the_consumer_can_be_deleted(bench: Bench) -> None:
    """In the condition; deletion does not wait for an image that never comes."""
    manifest = consumer(bench, NAME, batch={"intervalSeconds": 2}, leaseDurationSeconds=600)
    manifest["spec"]["pipeline"] |= {"image": "registry.invalid/orders:1"}
    bench.apply(manifest)
    bench.until("the image in the condition", lambda: "registry.invalid/orders:1" in bench.condition(NAME, "Ready").get("message", ""))
    bench.kubectl("delete", "kinesisconsumer", NAME, "--timeout=300s")
    assert not bench.get("pods", f"--selector=sluice.dev/consumer={NAME}")
