"""What each value of the chart does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chart
import pytest
import yaml
from chart import CHART, NAMESPACE, RELEASE, environment, notes, of, one, refused, rendered

from sluice_operator.settings import read

pytestmark = pytest.mark.built

Json = dict[str, Any]

KINDS_OF_RIGHTS = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


def pod(**values: Any) -> Json:
    spec: Json = one("Deployment", rendered(**values))["spec"]["template"]["spec"]
    return spec


def operator(**values: Any) -> Json:
    return chart.operator(rendered(**values))


def images(**values: Any) -> tuple[str, str]:
    found = operator(**values)
    return found["image"], read(environment(found)).image


REGISTRY = "registry.example/team"
IMAGES: tuple[tuple[Json, tuple[str, str]], ...] = (
    ({}, ("sluice-operator:0.1.0", "sluice-consumer:0.1.0")),
    ({"global": {"imageRegistry": REGISTRY}}, (f"{REGISTRY}/sluice-operator:0.1.0", f"{REGISTRY}/sluice-consumer:0.1.0")),
    ({"global": {"imageRegistry": f"{REGISTRY}/"}, "consumer": {"image": "mine:1"}}, (f"{REGISTRY}/sluice-operator:0.1.0", f"{REGISTRY}/mine:1")),
    (
        {"global": {"imageRegistry": REGISTRY}, "image": {"repository": "other.example/o"}, "consumer": {"image": "localhost:5000/c:1"}},
        ("other.example/o:0.1.0", "localhost:5000/c:1"),
    ),
    (
        {"global": {"imageRegistry": REGISTRY}, "image": {"repository": "team/o", "tag": "v1"}, "consumer": {"image": "localhost/c:1"}},
        (f"{REGISTRY}/team/o:v1", "localhost/c:1"),
    ),
)


@pytest.mark.parametrize(("values", "expected"), IMAGES)
def test_the_global_registry_is_put_before_names_without_one(values: Json, expected: tuple[str, str]) -> None:
    """By the rule of image references: a registry has a dot or a port, or is localhost."""
    assert images(**values) == expected


def test_global_pull_secrets_join_those_of_operator_and_consumers() -> None:
    mine, both = [{"name": "mine"}], [{"name": "mine"}, {"name": "all"}]
    values: Json = {"global": {"imagePullSecrets": [{"name": "all"}, *mine]}, "imagePullSecrets": mine, "watchNamespaces": ["a"]}
    assert pod(**values)["imagePullSecrets"] == both
    objects = rendered(**values)
    assert one("Pod", objects)["spec"]["imagePullSecrets"] == both
    accounts = [body for body in of("ServiceAccount", objects) if body["metadata"]["namespace"] == "a"]
    assert [body["imagePullSecrets"] for body in accounts] == [[{"name": "all"}, *mine]] * 2
    assert "imagePullSecrets" not in pod()


def test_an_account_that_is_there_is_used_and_not_made() -> None:
    objects = rendered(serviceAccount={"create": False, "name": "there"})
    assert of("ServiceAccount", objects) == []
    assert one("Deployment", objects)["spec"]["template"]["spec"]["serviceAccountName"] == "there"
    assert {subject["name"] for body in of("RoleBinding", objects) for subject in body["subjects"]} == {"there"}
    assert "serviceAccount.name" in refused(serviceAccount={"create": False})


def test_without_rbac_no_right_is_given() -> None:
    values: Json = {"watchNamespaces": ["a"]}
    assert {body["kind"] for body in rendered(**values)} > set(KINDS_OF_RIGHTS)
    objects = rendered(**values, rbac={"create": False})
    assert not {body["kind"] for body in objects} & set(KINDS_OF_RIGHTS)
    assert len(of("ServiceAccount", objects)) == 3


def test_the_crds_are_the_generated_ones_with_what_the_values_add() -> None:
    crds = of("CustomResourceDefinition", rendered(crds={"labels": {"a": "b"}, "annotations": {"c": "d"}}))
    for file, crd in zip(("crd.yaml", "crd-pools.yaml"), crds, strict=True):
        shipped = yaml.safe_load((CHART / "files" / file).read_text())
        assert crd["spec"] == shipped["spec"]
        assert crd["metadata"]["name"] == shipped["metadata"]["name"]
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep", "c": "d"}
        assert crd["metadata"]["labels"]["a"] == "b"
    assert not any("annotations" in crd["metadata"] for crd in of("CustomResourceDefinition", rendered(crds={"keep": False})))
    assert of("CustomResourceDefinition", rendered(crds={"install": False})) == []


def budget(**values: Any) -> Json:
    spec: Json = one("PodDisruptionBudget", rendered(podDisruptionBudget=values))["spec"]
    return {key: value for key, value in spec.items() if key != "selector"}


def test_a_budget_is_of_what_the_values_say() -> None:
    assert budget() == {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    assert budget(maxUnavailable="50%", unhealthyPodEvictionPolicy="") == {"maxUnavailable": "50%"}
    assert budget(minAvailable=1, unhealthyPodEvictionPolicy="IfHealthyBudget") == {
        "minAvailable": 1,
        "unhealthyPodEvictionPolicy": "IfHealthyBudget",
    }
    assert budget(minAvailable=0)["minAvailable"] == 0
    assert of("PodDisruptionBudget", rendered(podDisruptionBudget={"enabled": False})) == []


def test_a_constraint_spreads_the_operators_pods_unless_it_selects_others() -> None:
    """A constraint without a selector would select nothing."""
    spread: Json = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    other: Json = {"matchLabels": {"a": "b"}}
    selector = one("Deployment", rendered())["spec"]["selector"]
    assert pod(topologySpreadConstraints=[spread, {**spread, "labelSelector": other}])["topologySpreadConstraints"] == [
        {**spread, "labelSelector": selector},
        {**spread, "labelSelector": other},
    ]


def test_updates_go_as_the_values_say() -> None:
    """By default no update takes the last replica. Recreate has no numbers: the API server refuses them beside it."""
    usual = one("Deployment", rendered())["spec"]["strategy"]
    assert usual == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert one("Deployment", rendered(updateStrategy={"type": "Recreate"}))["spec"]["strategy"] == {"type": "Recreate"}
    slow = one("Deployment", rendered(updateStrategy={"rollingUpdate": {"maxSurge": "50%"}}, revisionHistoryLimit=0))["spec"]
    assert slow["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}
    assert slow["revisionHistoryLimit"] == 0


def test_probes_have_other_times_and_ask_the_same() -> None:
    found = operator(livenessProbe={"failureThreshold": 9}, startupProbe={"periodSeconds": 1, "failureThreshold": 60})
    assert found["livenessProbe"] == operator()["livenessProbe"] | {"failureThreshold": 9}
    assert found["startupProbe"] == {"httpGet": found["livenessProbe"]["httpGet"], "periodSeconds": 1, "failureThreshold": 60}
    assert "startupProbe" not in operator()
    assert "httpGet" in refused(livenessProbe={"httpGet": {"path": "/"}})


def test_security_contexts_are_added_to_and_taken_from() -> None:
    """As OpenShift and others want it: a key goes by null."""
    defaults = pod()
    assert pod(podSecurityContext={"fsGroup": 7})["securityContext"] == defaults["securityContext"] | {"fsGroup": 7}
    assert "seccompProfile" not in pod(podSecurityContext={"seccompProfile": None})["securityContext"]
    assert operator(securityContext={"readOnlyRootFilesystem": False})["securityContext"]["readOnlyRootFilesystem"] is False
    assert "hostUsers" not in defaults
    assert [pod(hostUsers=choice)["hostUsers"] for choice in (False, True)] == [False, True]


def test_a_service_of_the_releases_name_does_not_reach_the_environment() -> None:
    """Kubernetes would set SLUICE_PORT=tcp://… for a Service `sluice`, and SLUICE_PORT is the operator's port: it would not start."""
    with pytest.raises(ValueError, match="tcp"):
        read({"SLUICE_PORT": "tcp://10.0.0.1:80"})
    assert pod()["enableServiceLinks"] is False
    assert one("Pod", rendered())["spec"]["enableServiceLinks"] is False


def test_extras_join_what_the_chart_has() -> None:
    added: Json = {"name": "ca", "configMap": {"name": "ca"}}
    mount: Json = {"name": "ca", "mountPath": "/ca"}
    values: Json = {
        "extraEnv": [{"name": "A", "value": "1"}],
        "extraEnvFrom": [{"secretRef": {"name": "s"}}],
        "extraVolumes": [added],
        "extraVolumeMounts": [mount],
        "extraContainers": [{"name": "proxy", "image": "p"}],
        "extraInitContainers": [{"name": "before", "image": "b"}],
    }
    found, container = pod(**values), operator(**values)
    assert found["volumes"] == [*pod()["volumes"], added]
    assert container["volumeMounts"] == [*operator()["volumeMounts"], mount]
    assert container["env"] == [*operator()["env"], {"name": "A", "value": "1"}]
    assert container["envFrom"] == values["extraEnvFrom"]
    assert [each["name"] for each in found["containers"]] == ["operator", "proxy"]
    assert [each["name"] for each in found["initContainers"]] == ["before"]


def test_extra_objects_are_templates() -> None:
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-a"}}
    text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ include "sluice.fullname" . }}-b}'
    assert [each["metadata"]["name"] for each in of("ConfigMap", rendered(extraObjects=[body, text]))] == [f"{RELEASE}-a", f"{RELEASE}-b"]


UNKNOWN: tuple[Json, ...] = (
    {"extraArgs": ["--verbose"]},
    {"crds": {"kept": True}},
    {"rbac": {"created": True}},
    {"serviceAccount": {"automount": True}},
    {"podDisruptionBudget": {"maxUnavailable": "half"}},
    {"podDisruptionBudget": {"unhealthyPodEvictionPolicy": "Always"}},
    {"updateStrategy": {"type": "OnDelete"}},
    {"topologySpreadConstraints": [{"maxSkew": 1}]},
    {"serviceMonitor": {"enable": True}},
    {"prometheusRule": {"runbookUrl": "docs"}},
    {"prometheusRule": {"runbookUrl": "https://example.com/sluice/"}},
    {"prometheusRule": {"lagSeconds": 0}},
    {"grafanaDashboards": {"labels": {"grafana_dashboard": 1}}},
    {"hostUsers": "no"},
    {"global": {"imageRegistry": 5}},
    {"global": {"imageRegistry": "https://registry.example/"}},
    {"nameOverride": 'a"b'},
    {"nameOverride": "A"},
    {"fullnameOverride": "a: b"},
    {"consumer": {"image": "a b"}},
    {"consumer": {"image": "https://registry.example/sluice-consumer:1"}},
    {"image": {"repository": "registry.example/sluice operator"}},
    {"image": {"tag": "v1 "}},
    {"commonLabels": {"a": 1}},
    {"replica": 2},
    {"replicas": 0},
    {"podMonitor": {"interval": "often"}},
    {"networkPolicy": {"on": True}},
    {"driverMetrics": {"port": "9404"}},
    {"policy": {"privilegedPods": "yes"}},
    {"consumer": {"executorServiceAccount": {"create": True}}},
    {"driverMetrics": {"podMonitor": {"enabled": True}}},  # there is nothing to scrape without a port
)


@pytest.mark.parametrize("values", UNKNOWN, ids=json.dumps)
def test_a_value_that_is_not_understood_is_refused(values: Json) -> None:
    words = refused(**values)
    assert "schema" in words
    assert next(iter(values)) in words


def test_the_schema_knows_the_values_that_there_are() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["additionalProperties"] is False
    differing(yaml.safe_load((CHART / "values.yaml").read_text()), schema, schema["definitions"])


def differing(values: Json, schema: Json, definitions: Json, path: str = "") -> None:
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "properties" not in schema or schema == definitions["probe"]:
        return
    assert set(values) == {key for key, item in schema["properties"].items() if not item.get("deprecated")}, path
    for key, value in values.items():
        if isinstance(value, dict):
            differing(value, schema["properties"][key], definitions, f"{path}.{key}")


def test_parent_charts_may_share_more_than_is_known_here() -> None:
    """`global` belongs to all charts of a parent."""
    assert rendered(**{"global": {"storageClass": "fast"}}) == rendered()


NOTES: tuple[tuple[Json, str], ...] = (
    ({"rbac": {"create": False}}, "No Role and no binding was created"),
    ({"prometheusRule": {"enabled": True}}, "nothing in this chart scrapes the operator"),
    ({"prometheusRule": {"enabled": True}, "podMonitor": {"enabled": True}}, "Drivers serve no metrics"),
    ({"grafanaDashboards": {"enabled": True}}, "no dashboard of a shard"),
    ({"crds": {"keep": False}}, "Uninstalling deletes the CRD"),
)


@pytest.mark.parametrize(("values", "said"), NOTES)
def test_notes_say_what_the_values_leave_to_do(tmp_path: Path, values: Json, said: str) -> None:
    assert said in notes(tmp_path / "with", **values)
    quiet = notes(tmp_path / "without", **{"global": {"imageRegistry": REGISTRY}})
    assert said not in quiet
    assert "names no registry" not in quiet
    assert f"helm test {RELEASE} --namespace {NAMESPACE}" in quiet
