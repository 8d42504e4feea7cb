"""What `helm install` brings: two replicas that elect one, probes, a budget; restricted pods; and no value that is not understood."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from chart import NAMESPACE, of, one, rendered
from operator_world import SPEC

from sluice_operator.change import Wanted
from sluice_operator.manifests import driver_pod
from sluice_operator.model import Driver, Resource
from sluice_operator.settings import read
from sluice_operator.spec import parse

Json = dict[str, Any]


def container(objects: list[Json]) -> Json:
    """The operator's."""
    (found,) = one("Deployment", objects)["spec"]["template"]["spec"]["containers"]
    body: Json = found
    return body


def settings(objects: list[Json]) -> dict[str, str]:
    """The environment, as far as it is written out."""
    return {item["name"]: item["value"] for item in container(objects)["env"] if "value" in item}


def test_two_replicas_elect_one_by_the_lease_that_is_shipped() -> None:
    """Empty: Helm never writes what replicas write."""
    objects = rendered()
    lease = one("Lease", objects)
    assert one("Deployment", objects)["spec"]["replicas"] == 2
    assert read(settings(objects)).lease == (lease["metadata"]["namespace"], lease["metadata"]["name"])
    assert "spec" not in lease


def test_an_update_never_takes_the_last_replica() -> None:
    """The new one is ready, with a warm cache, before an old one goes."""
    strategy = one("Deployment", rendered())["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (2, 1)])
def test_a_budget_keeps_one_replica_where_there_are_two(replicas: int, budgets: int) -> None:
    """With one replica a budget would only block the drain of its node."""
    assert len(of("PodDisruptionBudget", rendered(replicas=replicas))) == budgets


def test_probes_ask_what_is_served() -> None:
    """Liveness and readiness are two questions."""
    found = container(rendered())
    port = found["ports"][0]
    assert port["containerPort"] == read({}).port
    paths = {kind: found[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")}
    assert {kind: probe["path"] for kind, probe in paths.items()} == {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert {probe["port"] for probe in paths.values()} == {port["name"]}


def test_the_pod_is_restricted() -> None:
    """By the letter of Kubernetes' Pod Security Standards, level restricted; and it cannot write to its own files."""
    objects = rendered()
    pod, found = one("Deployment", objects)["spec"]["template"]["spec"], container(objects)
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    expected = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert found["securityContext"] == expected
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert [set(volume) - {"name"} for volume in pod["volumes"]] == [{"emptyDir"}]


def test_what_not_every_cluster_has_is_off_until_it_is_asked_for() -> None:
    """A NetworkPolicy and PodMonitors."""
    assert of("NetworkPolicy", rendered()) == of("PodMonitor", rendered()) == []
    peer = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    asked = rendered(networkPolicy={"enabled": True, "metricsFrom": [peer]}, podMonitor={"enabled": True, "labels": {"team": "a"}})
    policy, monitor = one("NetworkPolicy", asked), one("PodMonitor", asked)
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "http"}], "from": [peer]}]
    assert {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} == {53, 443, 6443}
    assert monitor["spec"]["podMetricsEndpoints"][0]["path"] == "/metrics"
    assert monitor["metadata"]["labels"]["team"] == "a"
    selector = one("Deployment", asked)["spec"]["selector"]
    assert policy["spec"]["podSelector"] == monitor["spec"]["selector"] == selector


def test_drivers_serve_metrics_where_the_chart_says() -> None:
    """On no port until one is given; `extraEnv` still wins, for the last of a name counts."""
    port = "SLUICE_DRIVER_METRICS_PORT"
    assert port not in settings(rendered())
    asked = settings(rendered(driverMetrics={"port": 9404}))
    assert (asked[port], read(asked).driver_metrics) == ("9404", 9404)
    assert settings(rendered(driverMetrics={"port": 9404}, extraEnv=[{"name": port, "value": "1"}]))[port] == "1"


@pytest.mark.parametrize(("watched", "where"), [([], {"any": True}), (["a", "b"], {"matchNames": ["a", "b"]})])
def test_drivers_are_scraped_in_every_namespace_that_is_looked_after(watched: list[str], where: Json) -> None:
    """By what the operator really gives a driver's pod; a series says whose driver it is."""
    asked = rendered(watchNamespaces=watched, driverMetrics={"port": 9404, "podMonitor": {"enabled": True, "labels": {"team": "a"}}})
    spec = one("PodMonitor", asked)["spec"]
    assert spec["namespaceSelector"] == where
    resource = Resource(namespace="a", name="orders", uid="u", version="7", generation=3)
    pod = driver_pod(resource, Wanted(parse(SPEC), SPEC), Driver(attempt=3, pod="orders-driver-3"), read(settings(asked)))
    labels = pod["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert set(spec["podTargetLabels"]) <= set(labels)
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    assert endpoint["path"] == "/metrics"
    assert one("PodMonitor", asked)["metadata"]["labels"]["team"] == "a"


def test_replicas_prefer_different_nodes_unless_told_otherwise() -> None:
    """A node that is lost should not take both."""
    spread = one("Deployment", rendered())["spec"]["template"]["spec"]["affinity"]
    assert "podAntiAffinity" in spread
    told = one("Deployment", rendered(affinity={"nodeAffinity": {}}))["spec"]["template"]["spec"]["affinity"]
    assert told == {"nodeAffinity": {}}


UNKNOWN: tuple[Json, ...] = (
    {"replica": 2},
    {"replicas": 0},
    {"podMonitor": {"interval": "often"}},
    {"networkPolicy": {"on": True}},
    {"driverMetrics": {"port": "9404"}},
    {"driverMetrics": {"podMonitor": {"enabled": True}}},  # there is nothing to scrape without a port
)


@pytest.mark.parametrize("values", UNKNOWN)
def test_a_value_that_is_not_understood_is_refused(values: Json) -> None:
    """By values.schema.json, before anything is installed."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered(**values)
    assert "schema" in caught.value.stderr


def test_everything_namespaced_says_where() -> None:
    """`kubectl apply` of a rendered chart goes where Helm would have put it."""
    drivers = {"port": 9404, "podMonitor": {"enabled": True}}
    for body in rendered(watchNamespaces=["a"], networkPolicy={"enabled": True}, podMonitor={"enabled": True}, driverMetrics=drivers):
        cluster_wide = body["kind"] in {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
        assert ("namespace" in body["metadata"]) != cluster_wide
    assert one("Deployment", rendered())["metadata"]["namespace"] == NAMESPACE
