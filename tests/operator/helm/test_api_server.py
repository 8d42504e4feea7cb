"""A real API server takes whatever the chart renders, and `helm test` passes beside a real operator and fails without one.

The server sees what schemas do not: two fields that exclude one another, names that are too long, expressions of policies.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import chart
import pytest
from admission_scene import ADMIN, Caller
from chart import NAMESPACE, of, one, rendered
from chart_switches import SWITCHES
from patience import PATIENCE

from sluice_lab import places
from sluice_lab.machine import apiserver, processes, prometheus
from sluice_lab.machine.listening import LOOPBACK, free_port

pytestmark = pytest.mark.built

Json = dict[str, Any]

NAMESPACES = (NAMESPACE, "a", "b")
MONITORING = ("PodMonitor", "ServiceMonitor", "PrometheusRule")
STRICT = "dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def admin() -> Iterator[Caller]:
    with apiserver.running(places.work(), (ADMIN,)) as server:
        caller = Caller(server)
        for name in NAMESPACES:
            caller.call("POST", "api/v1/namespaces", {"metadata": {"name": name}})
        crds: list[Any] = prometheus.operator_crds()
        for crd in crds:
            if crd["spec"]["names"]["kind"] in MONITORING:
                caller.call("POST", path(caller, crd), crd)
        assert processes.poll(lambda: all(kind(caller, "monitoring.coreos.com/v1", name) for name in MONITORING), PATIENCE)
        yield caller


def kind(caller: Caller, version: str, name: str) -> Json:
    where = "api/v1" if version == "v1" else f"apis/{version}"
    try:
        served = caller.call("GET", where)["resources"]
    except AssertionError:  # 404: the group is not there yet
        return {}
    return next((each for each in served if each["kind"] == name and "/" not in each["name"]), {})


def path(caller: Caller, body: Json) -> str:
    found = kind(caller, body["apiVersion"], body["kind"])
    group = "api/v1" if body["apiVersion"] == "v1" else f"apis/{body['apiVersion']}"
    return f"{group}/namespaces/{body['metadata']['namespace']}/{found['name']}" if found["namespaced"] else f"{group}/{found['name']}"


@pytest.mark.parametrize("name", SWITCHES)
def test_the_api_server_takes_it(admin: Caller, name: str) -> None:
    """As a strict dry run: unknown and doubled fields are refused, and nothing is made."""
    for body in rendered(**{**SWITCHES[name], "extraObjects": []}):
        admin.call("POST", f"{path(admin, body)}?{STRICT}", body)


def test_the_api_server_would_refuse_a_mistake(admin: Caller) -> None:
    """A probe of liveness that succeeds twice passes every schema."""
    body = one("Deployment", rendered(livenessProbe={"successThreshold": 2}))
    with pytest.raises(AssertionError, match="successThreshold"):
        admin.call("POST", f"{path(admin, body)}?{STRICT}", body)


@pytest.fixture
def empty() -> Iterator[apiserver.LocalApiServer]:
    with apiserver.running(places.work(), (ADMIN,)) as server:
        Caller(server).call("POST", "api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield server


def environment(server: apiserver.LocalApiServer, pod: Json) -> dict[str, str]:
    return {
        **os.environ,
        **chart.environment(pod["containers"][0]),
        "KUBECONFIG": str(server.kubeconfig(ADMIN)),
        "SLUICE_PORT": str(free_port(LOOPBACK)),
    }


def helm_test(server: apiserver.LocalApiServer) -> subprocess.Popen[str]:
    pod = one("Pod", rendered())["spec"]
    command = [sys.executable, *pod["containers"][0]["command"][1:]]
    return subprocess.Popen(command, env=environment(server, pod), stdout=subprocess.PIPE, text=True)


def test_helm_test_passes_beside_an_operator(empty: apiserver.LocalApiServer) -> None:
    caller, objects = Caller(empty), rendered()
    early = helm_test(empty)
    assert early.stdout is not None
    assert "FAILED" in early.stdout.readline()
    crd = of("CustomResourceDefinition", objects)[0]
    caller.call("POST", path(caller, crd), crd)
    assert processes.poll(lambda: bool(kind(caller, "sluice.dev/v1alpha1", "KinesisConsumer")), PATIENCE)
    pod = one("Deployment", objects)["spec"]["template"]["spec"]
    program = processes.Program("helm-operator", (sys.executable, "-m", "sluice_operator"), environment(empty, pod))
    operator = processes.start(places.work(), program)
    try:
        test = helm_test(empty)
        said, _ = test.communicate(timeout=PATIENCE * 2)
        assert test.returncode == 0, said
        assert [line.split()[0] for line in said.splitlines()] == ["ok", "ok"]
        assert early.wait(PATIENCE * 2) == 1
    finally:
        operator.stop()
        early.kill()
