"""A real API server that enforces Pod Security takes the pods of Sluice; and the table of `pod_security` says of each breach what the server says."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from admission_scene import ADMIN, SETTINGS, WANTED, Caller, Denied, driver, executor, job
from admission_scene import RESOURCE as HERES
from chart import of, rendered
from pod_security import BASELINE, RESTRICTED, Breach, breaches, violations

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_operator.apply.jobs import pod_of
from sluice_operator.apply.manifests import executor_sample

pytestmark = pytest.mark.built

Json = dict[str, Any]
SECURE: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
BASES: dict[str, Json] = {
    BASELINE: {
        "spec": {
            "containers": [{"name": "driver", "image": "i"}],
            "initContainers": [{"name": "first", "image": "i", "restartPolicy": "Always"}],
        }
    },
    RESTRICTED: {
        "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "driver", "image": "i", "securityContext": SECURE}],
            "initContainers": [{"name": "first", "image": "i", "restartPolicy": "Always", "securityContext": SECURE}],
        }
    },
}
BREACHES = [breach for level in BASES for breach in breaches(level) if "ephemeralContainers" not in breach.path]  # no new pod has one


@pytest.fixture(scope="module")
def admin() -> Iterator[Caller]:
    with apiserver.running(places.work(), (ADMIN,)) as server:
        caller = Caller(server)
        for level in BASES:
            enforced = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}
            caller.call("POST", "api/v1/namespaces", {"metadata": {"name": level, "labels": enforced}})
        yield caller


def asked(admin: Caller, level: str, pod: Json) -> None:
    """A dry run of a pod in the namespace of that level.

    Raises:
        Denied: with the server's words.
    """
    body = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(pod)}
    body["metadata"] = {key: value for key, value in body.get("metadata", {}).items() if key in {"labels", "annotations"}}
    body["metadata"] |= {"name": "asked", "namespace": level}
    admin.call("POST", f"api/v1/namespaces/{level}/pods?dryRun=All&fieldValidation=Strict", body)


def ours() -> dict[str, Json]:
    mine = driver()
    mine["metadata"]["uid"] = "u"
    chart = rendered()
    (replica,) = of("Deployment", chart)
    (test,) = of("Pod", chart)
    spark = executor(mine)  # Spark's builder: tests/contract/spark/test_executor_pod.py; a real driver's: test_driver_rights.py
    found = {"driver": mine, "executor": spark, "sample": executor_sample(HERES, WANTED, SETTINGS), "migration": pod_of(job())}
    return found | {"operator": replica["spec"]["template"], "helm test": test}


@pytest.mark.parametrize("level", BASES)
@pytest.mark.parametrize("role", ["driver", "executor", "sample", "migration", "operator", "helm test"])
def test_the_server_takes_every_pod_of_sluice(admin: Caller, role: str, level: str) -> None:
    asked(admin, level, ours()[role])


def applicable(breach: Breach) -> Json:
    """A pod with the breach, and with what the server wants beside it before it asks for security."""
    pod = breach.into(BASES[breach.control.level])
    if breach.control.name == "HostProcess":
        pod["spec"]["hostNetwork"] = True
        for container in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
            container.setdefault("securityContext", {}).setdefault("windowsOptions", {})["hostProcess"] = True
    if breach.control.name == "/proc Mount Type":
        pod["spec"]["hostUsers"] = False
    return pod


@pytest.mark.parametrize("breach", BREACHES, ids=str)
def test_the_server_refuses_what_the_table_forbids(admin: Caller, breach: Breach) -> None:
    """So the table is what is enforced. Without the breach the server takes the pod."""
    level = breach.control.level
    asked(admin, level, BASES[level])
    assert violations(applicable(breach), level)
    with pytest.raises(Denied) as denied:
        asked(admin, level, applicable(breach))
    assert f'violates PodSecurity \\"{level}:latest\\"' in str(denied.value)
