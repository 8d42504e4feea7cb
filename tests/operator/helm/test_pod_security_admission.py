"""A real API server that enforces Pod Security takes each pod of Sluice and of its chart; and it refuses what `pod_security` says is forbidden."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from admission_scene import ADMIN, Caller, Denied
from chart import of, rendered
from chart_switches import SWITCHES
from manifest_cases import DRIVER, RESOURCE, SETTINGS
from pod_security import BASELINE, RESTRICTED, Breach, breaches
from simulated_cluster import MIGRATING, SPEC

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_operator.apply import manifests
from sluice_operator.apply.jobs import migration_job, pod_of
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.resource.privileges import privilege_problem
from sluice_operator.settings import Settings
from sluice_operator.state.status import MigrationStatus

pytestmark = pytest.mark.built

Json = dict[str, Any]
TRIED = MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
SECURE: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
BASES: dict[str, Json] = {
    BASELINE: {"spec": {"containers": [{"name": "driver"}], "initContainers": [{"name": "first", "restartPolicy": "Always"}]}},
    RESTRICTED: {
        "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "driver", "securityContext": SECURE}],
            "initContainers": [{"name": "first", "restartPolicy": "Always", "securityContext": SECURE}],
        }
    },
}
BREACHES = [breach for level in BASES for breach in breaches(level) if "ephemeralContainers" not in breach.path]  # no new pod has one
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
                "volumes": [{"name": "keys", "secret": {"secretName": "keys"}}],
                "volumeMounts": [{"name": "keys", "mountPath": "/keys", "readOnly": True}],
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


@pytest.fixture(scope="module")
def admin() -> Iterator[Caller]:
    with apiserver.running(places.work(), (ADMIN,)) as server:
        caller = Caller(server)
        for level in BASES:
            enforced = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}
            caller.call("POST", "api/v1/namespaces", {"metadata": {"name": level, "labels": enforced}})
        yield caller


def asked(admin: Caller, pod: Json, level: str = RESTRICTED) -> None:
    """A dry run of a pod in the namespace of that level.

    Raises:
        Denied: with the server's words.
    """
    body = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(pod)}
    body["metadata"] = {key: value for key, value in body.get("metadata", {}).items() if key in {"labels", "annotations"}}
    body["metadata"] |= {"name": "asked", "namespace": level}
    for container in (*body["spec"]["containers"], *body["spec"].get("initContainers", ())):
        container.setdefault("image", "i")  # Spark names that of an executor
    admin.call("POST", f"api/v1/namespaces/{level}/pods?dryRun=All&fieldValidation=Strict", body)


def made(settings: Settings, **change: Any) -> list[Json]:
    """Every pod that the operator makes for a spec; Spark's executors: tests/contract/spark/test_executor_pod.py, test_driver_rights.py."""
    raw = {**MIGRATING, **change}
    wanted = DesiredSpec(parse(raw), raw)
    driver = manifests.driver_pod(RESOURCE, wanted, DRIVER, settings, ("prod", "uid"))
    migration = pod_of(migration_job(RESOURCE, wanted, TRIED, settings))
    if not (template := driver["metadata"]["annotations"].get("sluice.dev/executor-template")):
        return [driver, migration]
    return [driver, migration, json.loads(template), manifests.executor_sample(RESOURCE, wanted, settings)]


@pytest.mark.parametrize(("settings", "change"), VARIANTS.values(), ids=VARIANTS)
def test_the_server_takes_every_pod_that_the_operator_makes(admin: Caller, settings: Settings, change: Json) -> None:
    for pod in made(settings, **change):
        asked(admin, pod)


@pytest.mark.parametrize("name", SWITCHES)
def test_the_server_takes_every_pod_of_the_chart(admin: Caller, name: str) -> None:
    objects = rendered(**{key: value for key, value in SWITCHES[name].items() if key not in {"extraContainers", "extraInitContainers"}})
    pods = [*of("Pod", objects), *(body["spec"]["template"] for kind in ("Deployment", "Job") for body in of(kind, objects))]
    assert len(pods) == 2
    for pod in pods:
        asked(admin, pod)


OURS = [breach for breach in breaches(RESTRICTED) if breach.path[1] in {"securityContext", "containers"}]


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize("breach", OURS, ids=str)
def test_no_template_takes_a_restriction_off_our_own_container(admin: Caller, breach: Breach, role: str) -> None:
    template = breach.into({"spec": {"securityContext": {}, "containers": [{"name": role, "securityContext": {}}]}})
    if privilege_problem(template) is not None:
        return
    try:
        pods = made(SETTINGS, **{role: {"podTemplate": template}})
    except InvalidSpec:
        return
    for pod in pods:
        asked(admin, pod)


def applicable(breach: Breach) -> Json:
    """A pod with the breach, and with what the server wants beside it before it asks for security."""
    pod = breach.into(BASES[breach.level])
    if breach.control == "HostProcess":
        pod["spec"]["hostNetwork"] = True
        for container in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
            container.setdefault("securityContext", {}).setdefault("windowsOptions", {})["hostProcess"] = True
    if breach.control == "/proc Mount Type":
        pod["spec"]["hostUsers"] = False
    return pod


@pytest.mark.parametrize("breach", BREACHES, ids=str)
def test_the_server_refuses_a_breach_and_takes_the_pod_without_it(admin: Caller, breach: Breach) -> None:
    asked(admin, BASES[breach.level], breach.level)
    with pytest.raises(Denied) as denied:
        asked(admin, applicable(breach), breach.level)
    assert f'violates PodSecurity \\"{breach.level}:latest\\"' in str(denied.value)
