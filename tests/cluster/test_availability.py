"""Two replicas, one leads: it is killed in the middle of things, and handed over; nothing is doubled."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from cluster_bench import Bench, condition, consumer, is_ready
from operating import IN, get, is_led, kill, leader, lease, pods, ready, taken_over

from sluice_lab.scenario import kcl_table
from sluice_lab.scenario.installing import RELEASE
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME, STREAM, TABLE = "steadfast", "availability", "availability-kcl"
LEADS = 20.0  # seconds: docs/operations.md, "When a part of it fails"


@pytest.fixture(scope="module", autouse=True)
def _source(bench: Bench) -> Iterator[None]:
    bench.until("two replicas, one of which leads", lambda: ready(bench, 2) and is_led(bench))
    stream = Stream(bench.aws.kinesis, STREAM)
    stream.create(2)
    kcl_table.write(bench.aws.dynamodb, TABLE, kcl_table.dump()["description"], kcl_table.unread(stream.shards()))
    yield
    bench.kubectl("delete", "kinesisconsumer", NAME, "--ignore-not-found", "--timeout=300s")


def manifest(bench: Bench, **spec: Any) -> dict[str, Any]:
    found = consumer(bench, NAME, replicas=2, batch={"intervalSeconds": 1}, migrateFrom={"table": TABLE, "quietSeconds": 30}, **spec)
    found["spec"]["stream"] |= {"name": STREAM}
    return found


def mine(bench: Bench, kind: str, role: str) -> dict[str, str]:
    found = bench.get(kind, f"--selector=sluice.dev/consumer={NAME},sluice.dev/role={role}")
    return {body["metadata"]["name"]: body["metadata"]["uid"] for body in found}


def migrates(bench: Bench) -> bool:
    found = bench.get("pods", f"--selector=sluice.dev/consumer={NAME},sluice.dev/role=migration")
    return any(pod["status"].get("phase") == "Running" for pod in found)


def settled(bench: Bench, executors: int) -> bool:
    found = bench.resource(NAME)
    return is_ready(found) and not condition(found, "Reconciling") and found["status"].get("replicas") == executors


def test_exactly_one_of_two_replicas_leads_and_says_so(bench: Bench) -> None:
    names = [pod["metadata"]["name"] for pod in pods(bench)]
    leading = {name for name in names if "sluice_leader 1.0" in get(bench, name, "metrics")}
    assert leading == {leader(bench)}
    assert [get(bench, name, path) for name in names for path in ("healthz", "readyz")] == ["ok"] * 4


def test_a_leader_that_dies_in_a_migration_is_replaced_and_the_migration_goes_on(bench: Bench) -> None:
    bench.apply(manifest(bench))
    bench.until("the migration's pod runs", lambda: migrates(bench))
    jobs, migrators = mine(bench, "jobs", "migration"), mine(bench, "pods", "migration")
    taken_over(bench, kill(bench), LEADS)
    bench.until("two executors, Ready", lambda: settled(bench, 2))
    assert (mine(bench, "jobs", "migration"), mine(bench, "pods", "migration")) == (jobs, migrators)
    assert len(jobs) == len(migrators) == 1
    assert list(mine(bench, "pods", "driver")) == [f"{NAME}-driver-1"]
    assert bench.resource(NAME)["status"]["migration"]["tries"] == 1


def test_a_leader_that_dies_in_a_scale_down_is_replaced_and_the_driver_goes_on(bench: Bench) -> None:
    driver = mine(bench, "pods", "driver")
    bench.kubectl("scale", "kinesisconsumer", NAME, "--replicas=1")
    bench.until("the driver is told", lambda: target(bench) == "1")
    taken_over(bench, kill(bench), LEADS)
    bench.until("one executor, Ready", lambda: settled(bench, 1))
    assert mine(bench, "pods", "driver") == driver
    assert bench.resource(NAME)["status"]["driver"]["attempt"] == 1
    assert bench.resource(NAME)["status"]["restarts"]["count"] == 0


def target(bench: Bench) -> str:
    (pod,) = bench.get("pods", f"--selector=sluice.dev/consumer={NAME},sluice.dev/role=driver")
    return str(pod["metadata"]["annotations"]["sluice.dev/executors"])


def test_a_leader_that_is_asked_to_go_hands_over_at_once(bench: Bench) -> None:
    """As in a rolling update: the Lease is released, not waited out."""
    before = lease(bench)
    bench.cluster.kubectl(IN, "delete", "pod", leader(bench), "--wait=false")
    taken_over(bench, before["holderIdentity"])
    renewed, acquired = (datetime.fromisoformat(body[field]) for body, field in ((before, "renewTime"), (lease(bench), "acquireTime")))
    assert acquired < renewed + timedelta(seconds=before["leaseDurationSeconds"])
    bench.until("two replicas again", lambda: ready(bench, 2))


def test_helm_test_passes(bench: Bench) -> None:
    said = bench.cluster.helm("test", RELEASE, IN, "--timeout=3m")
    assert "Phase:          Succeeded" in said
    bench.until("the pod is gone", lambda: f"{RELEASE}-test" not in bench.cluster.kubectl(IN, "get", "pods", "--output=name"))
