"""Whatever `spec.executor.resources` names reaches the executor: cpu and memory by Spark's settings, all else by the template that Spark builds on.

Spark sets requests of cpu and memory and limits of memory, and of cpu if asked to (`BasicExecutorFeatureStep`); other names of a template stay.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from manifest_cases import RESOURCE, SETTINGS, driver_pod, wanted

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.apply import manifests
from sluice_operator.apply.execute import ActionContext, apply
from sluice_operator.cluster.port import Rejected
from sluice_operator.state.actions import CreateDriver
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import DriverStatus, Status
from sluice_operator.state.view import View

Json = dict[str, Any]
ASKED: Json = {
    "requests": {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "5Gi", "nvidia.com/gpu": 1},
    "limits": {"memory": "2Gi", "ephemeral-storage": "6Gi", "nvidia.com/gpu": 1},
}
BESIDE: Json = {"requests": {"ephemeral-storage": "5Gi", "nvidia.com/gpu": 1}, "limits": {"ephemeral-storage": "6Gi", "nvidia.com/gpu": 1}}


def container(make: Any, **executor: Any) -> Json:
    (found,) = make(RESOURCE, wanted(executor=executor), SETTINGS)["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_what_is_neither_cpu_nor_memory_is_in_the_template() -> None:
    """It was left out, without a word: executors without the device, or without room for their shuffles."""
    assert container(manifests.executor_template, resources=ASKED)["resources"] == BESIDE
    assert "resources" not in container(manifests.executor_template, resources={"limits": {"memory": "2Gi"}})


def test_the_pod_that_is_tried_beforehand_has_all_of_them() -> None:
    """A quota may count them, and a node may lack them."""
    made = container(manifests.executor_sample, resources=ASKED)["resources"]
    for kind, names in BESIDE.items():
        assert names.items() <= made[kind].items()
    assert made["limits"]["memory"] == made["requests"]["memory"] == "2048Mi"


def test_the_templates_own_resources_win_by_name() -> None:
    template = {"spec": {"containers": [{"name": "executor", "resources": {"limits": {"ephemeral-storage": "9Gi", "example.com/nic": 1}}}]}}
    made = container(manifests.executor_template, resources=ASKED, podTemplate=template)["resources"]
    assert made["limits"] == {"ephemeral-storage": "9Gi", "nvidia.com/gpu": 1, "example.com/nic": 1}
    assert made["requests"] == BESIDE["requests"]


def test_a_driver_has_all_of_its_resources() -> None:
    (made,) = driver_pod(driver={"resources": ASKED})["spec"]["containers"]
    assert made["resources"] == ASKED


class Strict(MemoryCluster):
    def check(self, body: Json) -> None:
        if "nvidia.com/gpu" in str(body):
            raise Rejected("Invalid", "nvidia.com/gpu: unknown")


@pytest.mark.parametrize("executor", [{"resources": ASKED}, {"podTemplate": {"spec": {"nodeSelector": {"nvidia.com/gpu": "yes"}}}}])
def test_what_the_cluster_refuses_of_an_executor_is_noticed_before_a_driver_is_made(executor: Json) -> None:
    """Otherwise only the driver would learn of it, again and again."""
    now = datetime(2026, 11, 21, tzinfo=UTC)
    cluster, status = Strict(lambda: now), Status(driver=DriverStatus(attempt=1, pod="orders-driver-1", spec_hash="h"))
    view = View(resource=RESOURCE, asked=wanted(executor=executor), problem=None, status=status, observed=Observed(), now=now)
    with pytest.raises(Rejected, match="gpu"):
        apply(ActionContext(cluster, view, SETTINGS), CreateDriver())
    assert list(cluster.all("Pod")) == []
