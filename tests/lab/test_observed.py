"""Whom the nemesis hits, and when a consumer counts as settled."""

from typing import Any

import pytest

from sluice_lab.scenario import observed


def pod(name: str, phase: str = "Running", role: str = "executor", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"sluice.dev/role": role}, **metadata}, "status": {"phase": phase}}


PODS = [
    pod("n-exec-2"),
    pod("n-exec-1"),
    pod("n-exec-3", "Pending"),
    pod("n-exec-4", deletionTimestamp="2026-11-21T10:00:00Z"),
    pod("n-driver-2", role="driver"),
    pod("of-standby-exec-1", ownerReferences=[{"uid": "u-3"}]),
]


@pytest.mark.parametrize(("state", "standby"), [("Starting", ""), ("Ready", "n-driver-3")])
@pytest.mark.parametrize(
    ("driver", "named"), [({"pod": "n-driver-2", "host": "small-pool-1"}, "small-pool-1"), ({"pod": "n-driver-2"}, "n-driver-2"), ({}, "")]
)
def test_victims_are_a_pools_pod_executors_that_run_and_a_standby_that_is_ready(state: str, standby: str, driver: dict[str, str], named: str) -> None:
    """Executors of the standby are not those of the driver."""
    status = {"driver": driver, "standby": {"pod": "n-driver-3", "uid": "u-3", "state": state}}
    seen = observed.of_resource({"status": status}, PODS, [])
    assert (seen.driver_pod, seen.standby_pod, seen.running) == (named, standby, ("n-exec-1", "n-exec-2"))


@pytest.mark.parametrize(("working", "settled"), [("True", False), ("False", True)])
def test_ready_is_not_settled_while_the_operator_has_work_left(working: str, *, settled: bool) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Reconciling", "status": working}]
    assert observed.of_resource({"status": {"conditions": conditions}}, [], []).settled is settled
