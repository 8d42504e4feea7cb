"""The pods of Sluice and of its chart hold each control of Kubernetes' Pod Security Standards; the operator judges templates by the same table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chart import of, rendered
from chart_switches import SWITCHES
from manifest_cases import DRIVER, RESOURCE, SETTINGS
from pod_security import BASELINE, RESTRICTED, TABLES, Breach, breaches, violations
from simulated_cluster import MIGRATING, SPEC

from sluice_operator.apply import manifests
from sluice_operator.apply.jobs import migration_job, pod_of
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.resource.privileges import privilege_problem
from sluice_operator.settings import Settings
from sluice_operator.state.status import MigrationStatus

Json = dict[str, Any]
TRIED = MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
SECURE: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
COMPLIANT: Json = {
    "metadata": {"annotations": {}},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "driver", "securityContext": SECURE}],
        "initContainers": [{"name": "first", "restartPolicy": "Always", "securityContext": SECURE}],
        "ephemeralContainers": [{"name": "debug", "securityContext": SECURE}],
        "volumes": [{"name": "x", "emptyDir": {}}],
    },
}
VARIANTS: dict[str, tuple[Settings, Json]] = {
    "as little as can be said": (SETTINGS, {}),
    "metrics": (Settings(driver_metrics=9404), {}),
    "an account for executors": (Settings(executor_account="idle"), {}),
    "tasks in the driver": (SETTINGS, {"replicas": 1, "executor": {"inDriver": True}}),
    "code, volumes and secrets": (
        SETTINGS,
        {
            "pipeline": {
                **SPEC["pipeline"],
                "source": {"configMap": "code"},
                "env": [{"name": "A", "value": "b"}],
                "imagePullSecrets": ["registry"],
                "volumes": [{"name": "keys", "mountPath": "/keys", "secret": {"secretName": "keys"}}],
            }
        },
    ),
    "images that write to their root": (
        SETTINGS,
        {
            role: {"podTemplate": {"spec": {"containers": [{"name": role, "securityContext": {"readOnlyRootFilesystem": False, "runAsUser": 1000}}]}}}
            for role in ("driver", "executor")
        },
    ),
}


def made(settings: Settings, **change: Any) -> dict[str, Json]:
    """Every pod that the operator makes for a spec; Spark's executors: tests/contract/spark/test_executor_pod.py."""
    raw = {**MIGRATING, **change}
    asked = DesiredSpec(parse(raw), raw)
    driver = manifests.driver_pod(RESOURCE, asked, DRIVER, settings, ("prod", "uid"))
    template = json.loads(driver["metadata"]["annotations"].get("sluice.dev/executor-template", "{}"))
    found = {"driver": driver, "migration": pod_of(migration_job(RESOURCE, asked, TRIED, settings))}
    return found | ({"executor": template, "sample": manifests.executor_sample(RESOURCE, asked, settings)} if template else {})


@pytest.mark.parametrize("level", TABLES)
@pytest.mark.parametrize(("settings", "change"), VARIANTS.values(), ids=VARIANTS)
def test_every_pod_that_the_operator_makes_holds_the_level(settings: Settings, change: Json, level: str) -> None:
    found = made(settings, **change)
    assert {role: violations(pod, level) for role, pod in found.items()} == {name: [] for name in found}


@pytest.mark.built
@pytest.mark.parametrize("name", SWITCHES)
def test_every_pod_of_the_chart_holds_the_level(name: str) -> None:
    objects = rendered(**{key: value for key, value in SWITCHES[name].items() if key not in {"extraContainers", "extraInitContainers"}})
    pods = [*of("Pod", objects), *(body["spec"]["template"] for kind in ("Deployment", "Job") for body in of(kind, objects))]
    assert len(pods) == 2
    assert [violations(pod) for pod in pods] == [[], []]


@pytest.mark.parametrize("breach", [*breaches(BASELINE), *breaches(RESTRICTED)], ids=str)
def test_a_pod_that_breaks_one_row_is_caught_by_that_row(breach: Breach) -> None:
    """By no other of its level: each row is a check of its own, and none hides behind another."""
    assert violations(COMPLIANT) == []
    caught = {broken.partition(":")[0] for broken in violations(breach.into(COMPLIANT), breach.control.level)}
    assert caught == {breach.control.name}


@pytest.mark.parametrize("breach", breaches(BASELINE), ids=str)
def test_a_template_that_breaks_the_level_baseline_is_refused(breach: Breach) -> None:
    assert privilege_problem(COMPLIANT) is None
    assert privilege_problem(breach.into(COMPLIANT)) is not None


OURS = [breach for breach in breaches(RESTRICTED) if breach.path[1] in {"securityContext", "containers"}]


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize("breach", OURS, ids=str)
def test_no_template_takes_a_restriction_off_our_own_container(breach: Breach, role: str) -> None:
    template = breach.into({"spec": {"securityContext": {}, "containers": [{"name": role, "securityContext": {}}]}})
    if privilege_problem(template) is not None:
        return
    try:
        found = made(SETTINGS, **{role: {"podTemplate": template}})
    except InvalidSpec:
        return
    assert {name: violations(pod) for name, pod in found.items()} == {name: [] for name in found}
