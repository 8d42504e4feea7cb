"""What `helm install` brings: two replicas that elect one, probes, a budget; restricted pods; and no value that is not understood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chart import NAMESPACE, environment, notes, of, one, operator, refused, rendered
from simulated_cluster import SPEC

from sluice_operator.apply.manifests import driver_pod
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import Spec, parse
from sluice_operator.resource.policy import Policy
from sluice_operator.settings import read
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus

pytestmark = pytest.mark.built

Json = dict[str, Any]


def settings(objects: list[Json]) -> dict[str, str]:
    return environment(operator(objects))


def test_two_replicas_elect_one_by_a_lease_of_the_release() -> None:
    """Theirs to make, or shipped empty: Helm never writes what replicas write. Argo CD warns of a Lease in a chart for good."""
    assert of("Lease", rendered()) == []
    objects = rendered(lease={"install": True})
    lease = one("Lease", objects)
    assert one("Deployment", objects)["spec"]["replicas"] == 2
    assert read(settings(objects)).lease == (lease["metadata"]["namespace"], lease["metadata"]["name"])
    assert "spec" not in lease


def homes(objects: list[Json]) -> set[tuple[str, str]]:
    here = one("Deployment", objects)["metadata"]["namespace"]
    return {(a["metadata"]["namespace"], a["metadata"]["name"]) for a in of("ServiceAccount", objects) if a["metadata"]["namespace"] != here}


def test_consumers_get_an_account_where_the_operator_looks_after_them() -> None:
    assert homes(rendered()) == set()
    assert homes(rendered(watchNamespaces=["a", "b"])) >= {("a", "sluice-consumer"), ("b", "sluice-consumer")}
    assert {namespace for namespace, _ in homes(rendered(watchNamespaces=["a", "b"], consumer={"namespaces": ["b"]}))} == {"b"}
    assert {namespace for namespace, _ in homes(rendered(consumer={"namespaces": ["c"]}))} == {"c"}
    assert homes(rendered(watchNamespaces=["a"], consumer={"serviceAccount": {"create": False}})) == set()


def test_notes_say_what_is_missing(tmp_path: Path) -> None:
    bare = notes(tmp_path)
    assert "consumer.namespaces={my-namespace}" in bare
    assert "names no registry" in bare
    partly = notes(tmp_path, watchNamespaces=["a", "b"], consumer={"namespaces": ["b"]}, image={"repository": "registry.example/sluice-operator"})
    assert 'Namespace a is managed but has no account "sluice-consumer"' in partly
    assert "Namespace b is looked" not in partly
    assert "names no registry" not in partly


def test_an_account_where_nobody_looks_is_refused() -> None:
    words = refused(watchNamespaces=["a"], consumer={"namespaces": ["a", "default"]})
    assert all(word in words for word in ("consumer.namespaces", "default", "watchNamespaces"))


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (2, 1)])
def test_a_budget_keeps_one_replica_where_there_are_two(replicas: int, budgets: int) -> None:
    """With one replica a budget would only block the drain of its node."""
    assert len(of("PodDisruptionBudget", rendered(replicas=replicas))) == budgets


def test_probes_ask_what_is_served() -> None:
    found = operator(rendered())
    port = found["ports"][0]
    assert port["containerPort"] == read({}).port
    paths = {kind: found[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")}
    assert {kind: probe["path"] for kind, probe in paths.items()} == {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert {probe["port"] for probe in paths.values()} == {port["name"]}


def test_the_pod_is_restricted() -> None:
    objects = rendered()
    pod, found = one("Deployment", objects)["spec"]["template"]["spec"], operator(objects)
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    expected = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert found["securityContext"] == expected
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert [set(volume) - {"name"} for volume in pod["volumes"]] == [{"emptyDir"}]


def test_drivers_serve_metrics_where_the_chart_says() -> None:
    port = "SLUICE_DRIVER_METRICS_PORT"
    assert port not in settings(rendered())
    asked = settings(rendered(driverMetrics={"port": 9404}))
    assert (asked[port], read(asked).driver_metrics) == ("9404", 9404)
    assert settings(rendered(driverMetrics={"port": 9404}, extraEnv=[{"name": port, "value": "1"}]))[port] == "1"


@pytest.mark.parametrize(("watched", "where"), [([], {"any": True}), (["a", "b"], {"matchNames": ["a", "b"]})])
def test_drivers_are_scraped_in_every_namespace_that_is_looked_after(watched: list[str], where: Json) -> None:
    asked = rendered(watchNamespaces=watched, driverMetrics={"port": 9404, "podMonitor": {"enabled": True, "labels": {"team": "a"}}})
    spec = one("PodMonitor", asked)["spec"]
    assert spec["namespaceSelector"] == where
    resource = Resource(namespace="a", name="orders", uid="u", version="7", generation=3)
    pod = driver_pod(resource, DesiredSpec(parse(SPEC), SPEC), DriverStatus(attempt=3, pod="orders-driver-3"), read(settings(asked)))
    labels = pod["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    (role,) = spec["selector"]["matchExpressions"]
    assert labels[role["key"]] in role["values"]
    assert set(spec["podTargetLabels"]) <= {*labels, "sluice.dev/pool"}  # that of a pool's pod
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


def accounts(objects: list[Json]) -> dict[str, Json]:
    return {body["metadata"]["name"]: body for body in of("ServiceAccount", objects) if body["metadata"]["namespace"] == "team"}


DRIVERS = Spec.model_fields["service_account_name"].default
TEAM: Json = {"namespaces": ["team"], "serviceAccount": {"annotations": {"role": "a", "kept": "b"}}}


def test_executors_have_an_account_that_may_do_nothing() -> None:
    objects = rendered(consumer={**TEAM, "executorServiceAccount": {"name": "idle", "annotations": {"role": "x"}}})
    found = accounts(objects)
    assert found[DRIVERS]["metadata"]["annotations"] == {"role": "a", "kept": "b"}
    assert found["idle"]["metadata"]["annotations"] == {"role": "x", "kept": "b"}
    assert found["idle"]["automountServiceAccountToken"] is False
    bound = {subject["name"] for kind in ("RoleBinding", "ClusterRoleBinding") for body in of(kind, objects) for subject in body["subjects"]}
    assert DRIVERS in bound
    assert "idle" not in bound
    assert read(settings(objects)).executor_account == "idle"
    assert read(settings(rendered())).executor_account == "sluice-executor"


def test_without_a_name_there_is_no_account_for_executors() -> None:
    objects = rendered(consumer={**TEAM, "executorServiceAccount": {"name": ""}})
    assert set(accounts(objects)) == {DRIVERS}
    assert read(settings(objects)).executor_account is None


def test_secrets_for_pulling_are_given_to_every_account_of_consumers() -> None:
    found = accounts(rendered(consumer={**TEAM, "imagePullSecrets": [{"name": "registry"}]}))
    assert [body["imagePullSecrets"] for body in found.values()] == [[{"name": "registry"}]] * 2
    assert not [body for body in accounts(rendered(consumer=TEAM)).values() if "imagePullSecrets" in body]


def test_the_operator_is_told_the_policy_and_who_it_is_itself() -> None:
    account = one("Deployment", rendered())["spec"]["template"]["spec"]["serviceAccountName"]
    assert read(settings(rendered())).policy == Policy(own=(NAMESPACE, account))
    told = read(settings(rendered(policy={"privilegedPods": True, "serviceAccounts": ["a", "b"]}, serviceAccount={"name": "me"}))).policy
    assert told == Policy(privileged_pods=True, service_accounts=("a", "b"), own=(NAMESPACE, "me"))


def test_everything_namespaced_says_where() -> None:
    """`kubectl apply` of a rendered chart goes where Helm would have put it."""
    drivers = {"port": 9404, "podMonitor": {"enabled": True}}
    network = {"enabled": True, "consumers": {"ingress": True}}
    options = {"lease": {"install": True}, "admissionPolicy": {"enabled": True}, "podMonitor": {"enabled": True}, "driverMetrics": drivers}
    for body in rendered(watchNamespaces=["a"], networkPolicy=network, **options):
        cluster_wide = body["kind"].startswith(("ClusterRole", "CustomResource", "ValidatingAdmission"))
        assert ("namespace" in body["metadata"]) != cluster_wide
    assert one("Deployment", rendered())["metadata"]["namespace"] == NAMESPACE
