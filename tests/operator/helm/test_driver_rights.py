"""The rights of drivers in the chart are the calls that a real Spark driver and ours make in a whole life: nothing more, nothing less.

The API server is a real one, and lets the driver do what the chart's Role and its admission policy say; its audit has every call.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chart import of, one, rendered
from executors_kubelet import ADDRESS, Admin, Kubelet
from simulated_cluster import SPEC

from sluice_consumer import config as configs
from sluice_consumer.process import pod
from sluice_consumer.process.pod import PodAnnotations, PodCallRefused
from sluice_consumer.spark import conf, spark_home
from sluice_lab import places
from sluice_lab.machine import apiserver, processes
from sluice_operator.apply.manifests import driver_pod
from sluice_operator.apply.pod_parts import CONTAINER_SECURITY, POD_SECURITY
from sluice_operator.apply.spark_settings import UNNEEDED
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus

pytestmark = [pytest.mark.built, pytest.mark.slow, pytest.mark.spark]

Json = dict[str, Any]
Right = tuple[str, str, str]  # verb, API group, resource

HOME, ACCOUNT = "default", "sluice-consumer"
USER = f"system:serviceaccount:{HOME}:{ACCOUNT}"
ADMISSION = "apis/admissionregistration.k8s.io/v1"
POLICY = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}
OBJECTS = {"ServiceAccount": "api/v1", "Role": "apis/rbac.authorization.k8s.io/v1", "RoleBinding": "apis/rbac.authorization.k8s.io/v1"}
RESOURCE = Resource(namespace=HOME, name="orders", uid="u-1", version="7", generation=3)
HASTE = {
    # So that a minute is enough: what is asked is the same.
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.kubernetes.allocation.batch.delay": "500ms",
    "spark.kubernetes.executor.apiPollingInterval": "1s",
    "spark.kubernetes.executor.missingPodDetectDelta": "1s",
    "spark.executor.memory": "450m",
}


class Told:
    def __init__(self, settings: dict[str, str]) -> None:
        command = [sys.executable, str(Path(__file__).parents[1] / "spark_driver.py"), json.dumps(settings)]
        home = os.environ | spark_home.lean(os.environ)
        self._process = subprocess.Popen(command, env=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self, word: str) -> list[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = line.split()
            if said[:1] == [word]:
                return said[1:]
        raise AssertionError(f"the driver ended with {self._process.wait()} instead of '{word}'")

    def tell(self, order: str) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self.answer(order.partition(" ")[0])

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[apiserver.LocalApiServer]:
    chart = rendered(consumer={"namespaces": [HOME]}, admissionPolicy={"enabled": True})
    objects = [body for kind in OBJECTS for body in of(kind, chart) if body["metadata"]["namespace"] == HOME]
    with apiserver.running(places.work(), ("admin",), reads=True) as found:
        enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
        Admin(found).call("PATCH", f"api/v1/namespaces/{HOME}", {"metadata": {"labels": enforced}})
        for body in objects:
            Admin(found).call("POST", f"{OBJECTS[body['kind']]}/namespaces/{HOME}/{body['kind'].lower()}s", body)
        for kind, plural in POLICY.items():
            Admin(found).call("POST", f"{ADMISSION}/{plural}", one(kind, chart))
        yield found


@pytest.fixture(scope="module")
def calls(server: apiserver.LocalApiServer, tmp_path_factory: pytest.TempPathFactory) -> set[Right]:
    """Of an epoch: executors start, come and go, crash, are taken away, hang, and are not wanted any more; reports; the end."""
    folder, admin = tmp_path_factory.mktemp("driver"), Admin(server)
    here, settings = made(admin, folder, 1)
    reached = access(server, here)
    token = reached["spark.kubernetes.authenticate.oauthToken"]
    assert processes.poll(lambda: is_refused(server, token), 30), "the admission policy has no effect"
    with running(settings | HASTE | reached, admin, folder) as (driver, kubelet):
        live(driver, kubelet, admin)
    report(server, token, here, folder)
    found, refused = made_by_the_driver(server.audit)
    assert refused == set()
    return found


@contextmanager
def running(settings: dict[str, str], admin: Admin, folder: Path) -> Iterator[tuple[Told, Kubelet]]:
    with Kubelet(admin, HOME, folder) as kubelet:
        driver = Told(settings)
        try:
            driver.answer("started")
            driver.tell("live 2")
            yield driver, kubelet
        finally:
            driver.end()


def access(server: apiserver.LocalApiServer, here: conf.PodAddress) -> dict[str, str]:
    bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": here.name, "uid": here.uid}}
    token = Admin(server).call("POST", f"api/v1/namespaces/{HOME}/serviceaccounts/{ACCOUNT}/token", {"spec": bound})["status"]["token"]
    return {
        "spark.master": f"k8s://{server.url}",
        "spark.kubernetes.authenticate.caCertFile": str(server.authority),
        "spark.kubernetes.authenticate.oauthToken": token,
    }


def is_refused(server: apiserver.LocalApiServer, token: str) -> bool:
    """Whether a pod is refused that RBAC lets the driver make: nothing of Sluice's."""
    container = {"name": "web", "image": "web:1", "securityContext": dict(CONTAINER_SECURITY)}
    pod = {"metadata": {"generateName": "web-"}, "spec": {"securityContext": dict(POD_SECURITY), "containers": [container]}}
    url = f"{server.url}/api/v1/namespaces/{HOME}/pods?dryRun=All"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(pod).encode(), headers)  # noqa: S310 - ours, and https
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(server.authority)), timeout=10):  # noqa: S310
            return False
    except urllib.error.HTTPError as error:
        return "create only what has Sluice's labels" in error.read().decode()


def made(admin: Admin, folder: Path, attempt: int) -> tuple[conf.PodAddress, dict[str, str]]:
    name = f"orders-driver-{attempt}"
    pod = driver_pod(RESOURCE, DesiredSpec(parse(SPEC), SPEC), DriverStatus(attempt=attempt, pod=name), Settings())
    pod["metadata"].pop("ownerReferences")  # of a resource that is not there
    there = admin.call("POST", f"api/v1/namespaces/{HOME}/pods", pod)
    status = {"phase": "Running", "podIP": ADDRESS, "conditions": [{"type": "Ready", "status": "True"}]}
    admin.call("PATCH", f"api/v1/namespaces/{HOME}/pods/{name}/status", {"status": status})
    here = conf.PodAddress(name, HOME, ADDRESS, there["metadata"]["uid"])
    notes, template = pod["metadata"]["annotations"], folder / "executor.yaml"
    template.write_text(notes["sluice.dev/executor-template"])
    settings = conf.settings(configs.parse(notes["sluice.dev/config"]), here)
    for key in ("spark.driver.extraClassPath", "spark.driver.defaultJavaOptions"):
        settings.pop(key)  # of the image
    return here, settings | {"spark.kubernetes.executor.podTemplateFile": str(template)}


def live(driver: Told, kubelet: Kubelet, admin: Admin) -> None:
    driver.tell("job")
    driver.tell("target 3")
    driver.tell("live 3")
    driver.tell("target 2")
    driver.tell("live 2")
    assert processes.poll(lambda: len(kubelet.names()) == 2, 30)
    kubelet.crash(kubelet.names()[0])
    replaced(driver, kubelet, kubelet.names()[0])
    gone = kubelet.names()[0]
    admin.call("DELETE", f"api/v1/namespaces/{HOME}/pods/{gone}?gracePeriodSeconds=0")
    replaced(driver, kubelet, gone)
    ids = driver.tell("live 2")
    driver.tell(f"kill {ids[0]}")
    kubelet.idle.set()
    driver.tell("target 5")
    pods = f"api/v1/namespaces/{HOME}/pods?labelSelector=spark-role%3Dexecutor"
    assert processes.poll(lambda: len(admin.call("GET", pods)["items"]) >= 5, 60)
    driver.tell("target 2")
    assert processes.poll(lambda: len(admin.call("GET", pods)["items"]) <= 2, 60)
    kubelet.idle.clear()
    driver.tell("live 2")
    driver.tell("stop")
    assert processes.poll(lambda: admin.call("GET", pods)["items"] == [], 60)


def replaced(driver: Told, kubelet: Kubelet, lost: str) -> None:
    assert processes.poll(lambda: lost not in kubelet.names() and len(kubelet.names()) == 2, 60)
    driver.tell("live 2")


def report(server: apiserver.LocalApiServer, token: str, here: conf.PodAddress, folder: Path) -> None:
    (folder / "token").write_text(f"{token}\n")
    (folder / "ca.crt").write_bytes(server.authority.read_bytes())
    host, _, port = server.url.removeprefix("https://").partition(":")
    reached = {pod.HOST: host, pod.PORT: port}
    annotations = PodAnnotations(here, folder, reached)
    assert annotations.read()["sluice.dev/executors"] == "2"
    annotations.write({"sluice.dev/report": "{}"})
    assert annotations.read()["sluice.dev/report"] == "{}"
    with pytest.raises(PodCallRefused, match=r"PATCH of the pod: 422 .*metadata\.uid: .*field is immutable"):
        PodAnnotations(replace(here, uid="another"), folder, reached).write({"sluice.dev/report": "of an earlier pod"})
    assert annotations.read()["sluice.dev/report"] == "{}"


def made_by_the_driver(audit: Path) -> tuple[set[Right], set[Right]]:
    every = (json.loads(line) for line in audit.read_text().splitlines())
    entries = [entry for entry in every if entry["user"]["username"] == USER and "dryRun" not in entry["requestURI"]]
    named = [entry for entry in entries if "objectRef" in entry]  # not the server's version
    return {right(entry) for entry in named}, {right(entry) for entry in named if entry.get("responseStatus", {}).get("code") == 403}


def right(entry: Json) -> Right:
    about = entry["objectRef"]
    return entry["verb"], about.get("apiGroup", ""), "/".join(filter(None, (about["resource"], about.get("subresource"))))


def granted(objects: list[Json]) -> set[Right]:
    (role,) = (body for body in of("Role", objects) if body["metadata"]["name"] == ACCOUNT)
    return {(verb, group, kind) for rule in role["rules"] for group in rule["apiGroups"] for kind in rule["resources"] for verb in rule["verbs"]}


def test_rights_are_the_calls(calls: set[Right]) -> None:
    assert granted(rendered(consumer={"namespaces": [HOME]})) == calls


def test_a_driver_that_an_older_operator_made_goes_on_with_these_rights(server: apiserver.LocalApiServer, calls: set[Right], tmp_path: Path) -> None:
    """It asks for claims and Services, is refused, and scales and ends as before: a chart is upgraded beside running drivers."""
    assert calls, "first what may not be refused"
    admin = Admin(server)
    here, settings = made(admin, tmp_path, 2)
    older = {key: "false" if value == "true" else "true" for key, value in UNNEEDED.items()} | {"spark.kubernetes.executor.disableConfigMap": "true"}
    pods = f"api/v1/namespaces/{HOME}/pods?labelSelector=spark-role%3Dexecutor"
    with running(settings | HASTE | access(server, here) | older, admin, tmp_path) as (driver, _):
        driver.tell("target 3")
        driver.tell("live 3")
        driver.tell("target 1")
        driver.tell("live 1")
        driver.tell("stop")
        assert processes.poll(lambda: admin.call("GET", pods)["items"] == [], 60)
    _, refused = made_by_the_driver(server.audit)
    assert {kind for _, _, kind in refused} == {"persistentvolumeclaims", "services"}
