"""One meaning has one hash, and two meanings have two: of a driver, and of a migration Job."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import TEMPLATE, put, specs
from simulated_cluster import SPEC

from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.resource.normal_form import normal, quantity
from sluice_operator.resource.pod_template import lay_under
from sluice_operator.resource.quantities import amount

Json = dict[str, Any]
PIPELINE = SPEC["pipeline"]


def hashes(change: Json) -> tuple[str, str]:
    raw = {**SPEC, **change}
    wanted = DesiredSpec(parse(raw), raw)
    return wanted.driver_hash, wanted.job_hash


def asks(**requests: Any) -> Json:
    return {"driver": {"resources": {"requests": requests}}}


def pod(**spec: Any) -> Json:
    return {"driver": {"podTemplate": {"spec": spec}}}


def container(**fields: Any) -> Json:
    return pod(containers=[{"name": "driver", **fields}])


def shared(**fields: Any) -> Json:
    return {"pipeline": {**PIPELINE, **fields}}


MOUNT = {"name": "v", "mountPath": "/x"}
SAME: list[tuple[Json, Json]] = [
    (asks(cpu=1), asks(cpu="1")),
    (asks(cpu=1), asks(cpu="1000m")),
    (asks(cpu="500m"), asks(cpu="0.5")),
    (asks(cpu="500m"), asks(cpu=".50")),
    (asks(memory="2Gi"), asks(memory="2048Mi")),
    (asks(memory="2Gi"), asks(memory=2**31)),
    (asks(memory="1500M"), asks(memory="1.5G")),
    (asks(memory="2e9"), asks(memory="2G")),
    ({}, {"driver": {}}),
    ({}, {"driver": {"resources": {}}}),
    ({}, {"driver": {"resources": {"requests": {}, "limits": {}}}}),
    ({}, {"driver": {"podTemplate": {"metadata": {}}}}),
    ({}, {"driver": {"podTemplate": {"metadata": {"labels": {}, "annotations": {}}, "spec": {}}}}),
    ({}, pod(tolerations=[], volumes=[], nodeSelector={}, affinity={"podAffinity": {}}, securityContext={}, hostNetwork=False, priorityClassName="")),
    ({}, shared(env=[], envFrom=[], volumes=[], volumeMounts=[], imagePullSecrets=[], args={})),
    ({}, {"sparkConf": {}, "batch": {}, "executor": {"cores": 1, "resources": {"limits": {}}, "podTemplate": {}}}),
    (container(), container(resources={}, env=[], securityContext={"capabilities": {"add": []}}, tty=False)),
    (container(), container(resources={"requests": {}, "limits": None})),
    (container(resources={"limits": {"cpu": "1"}}), container(resources={"limits": {"cpu": "1000m"}, "requests": {}})),
    (container(env=[{"name": "A"}]), container(env=[{"name": "A", "value": ""}])),
    (shared(env=[{"name": "A"}]), shared(env=[{"name": "A", "value": ""}])),
    (shared(env=[{"name": "A"}]), shared(env=[{"name": "A", "value": None}])),
    (shared(volumeMounts=[MOUNT]), shared(volumeMounts=[{**MOUNT, "readOnly": False, "subPath": ""}])),
    (shared(envFrom=[{"secretRef": {"name": "s"}}]), shared(envFrom=[{"secretRef": {"name": "s", "optional": False}, "prefix": ""}])),
    (pod(volumes=[{"name": "v", "emptyDir": {}}]), pod(volumes=[{"name": "v", "emptyDir": {"medium": "", "sizeLimit": None}}])),
    (pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]), pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}])),
]
OTHER: list[tuple[Json, Json]] = [
    (asks(cpu=1), asks(cpu=2)),
    (asks(cpu=1), asks(cpu="1m")),
    (asks(memory="2Gi"), asks(memory="2G")),
    (asks(memory="1"), asks(memory="1m")),
    (asks(cpu=1), {"driver": {"resources": {"limits": {"cpu": 1}}}}),
    (pod(volumes=[{"name": "v"}]), pod(volumes=[{"name": "v", "emptyDir": {}}])),
    (pod(), pod(enableServiceLinks=False)),
    (container(), container(securityContext={"readOnlyRootFilesystem": False})),
    (container(), container(securityContext={"runAsUser": 0})),
    (pod(tolerations=[{"key": "k"}]), pod(tolerations=[{"key": "k", "tolerationSeconds": 0}])),
    (pod(affinity={"a": [{}]}), pod(affinity={"a": [{"labelSelector": {}}]})),
    (pod(nodeSelector={"a": "1"}), pod(nodeSelector={"a": "1000m"})),
    (pod(nodeSelector={"sizeLimit": "1"}), pod(nodeSelector={"sizeLimit": "1000m"})),
    ({"driver": {"podTemplate": {"metadata": {"labels": {"medium": ""}}}}}, {"driver": {"podTemplate": {"metadata": {"labels": {"x": ""}}}}}),
    (shared(env=[{"name": "A", "value": "1"}]), shared(env=[{"name": "A", "value": "1000m"}])),
    (shared(env=[{"name": "A", "value": ""}]), shared(env=[{"name": "A", "value": " "}])),
    (shared(args={"a": []}), shared(args={"a": ""})),
    (shared(args={}), shared(args={"columns": {}})),
    (shared(args={}), shared(args={"columns": []})),
    (shared(args={}), shared(args={"resources": {}})),
    (shared(args={"requests": {"cpu": "1"}}), shared(args={"requests": {"cpu": "1000m"}})),
    (shared(volumeMounts=[MOUNT]), shared(volumeMounts=[{**MOUNT, "readOnly": True}])),
    ({}, {"serviceAccountName": "sluice-consumer"}),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=json.dumps)
def test_another_way_to_write_the_same_is_no_change(one: Json, other: Json) -> None:
    """A formatter of the user's chart writes it out: no driver restarts, and no migration Job is made again."""
    assert hashes(one) == hashes(other)


@pytest.mark.parametrize(("one", "other"), OTHER, ids=json.dumps)
def test_what_means_something_else_is_a_change(one: Json, other: Json) -> None:
    """Of the last: without an account in the spec, executors and migration run as the operator's account for them (`idle_account`)."""
    driver, job = zip(hashes(one), hashes(other), strict=True)
    assert driver[0] != driver[1]
    assert job[0] != job[1]


def test_the_default_account_is_no_change_where_it_is_the_drivers_only() -> None:
    """Executors have an account of their own, or there are none."""
    for executor in ({"serviceAccountName": "idle"}, {"inDriver": True}):
        change = {"replicas": 1, "executor": executor}
        assert hashes(change)[0] == hashes({**change, "serviceAccountName": "sluice-consumer"})[0]


def test_a_template_whose_resources_say_nothing_leaves_those_of_the_spec() -> None:
    """Otherwise what has one hash would be two pods."""
    ours = {"metadata": {}, "spec": {"containers": [{"name": "driver", "resources": {"limits": {"cpu": "1"}}}]}}
    nothing: tuple[dict[str, Any], ...] = ({}, {"requests": {}}, {"requests": None, "limits": {}})
    for said in nothing:
        template = container(resources=said)["driver"]["podTemplate"]
        made = lay_under(template, ours, "driver")["spec"]["containers"][0]["resources"]
        assert {key: value for key, value in made.items() if value} == {"limits": {"cpu": "1"}}


NOTHING: list[tuple[tuple[str, ...], Any]] = [
    (("driver",), {}),
    (("driver", "resources"), {"requests": {}}),
    (("driver", "podTemplate"), {"metadata": {"labels": {}}, "spec": {"hostPID": False, "volumes": []}}),
    (("executor",), {"cores": 1, "inDriver": False}),
    (("executor", "resources"), {}),
    (("pipeline", "env"), []),
    (("pipeline", "volumes"), []),
    (("sparkConf",), {}),
    (("batch",), {"intervalSeconds": 5}),
    (("leaseDurationSeconds",), 20),
]
"""What may be added where nothing is."""


@settings(max_examples=100)
@given(specs(), st.lists(st.sampled_from(NOTHING), max_size=6))
def test_a_spec_with_edits_without_meaning_has_its_hash(spec: Json, edits: list[tuple[tuple[str, ...], Any]]) -> None:
    edited = spec
    for path, value in edits:
        inside = edited.get(path[0]) if len(path) > 1 else edited
        if isinstance(inside, dict) and path[-1] not in inside:
            edited = {**edited, path[0]: {**inside, path[-1]: value}} if len(path) > 1 else {**edited, path[-1]: value}
    try:
        one, other = DesiredSpec(parse(spec), spec), DesiredSpec(parse(edited), edited)
    except InvalidSpec:
        return
    assert (one.driver_hash, one.job_hash) == (other.driver_hash, other.job_hash)
    assert normal(normal(spec)) == normal(spec)


@given(st.integers(0, 2**40), st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-2"]), st.integers(0, 3))
def test_an_amount_is_one_however_it_is_written(number: int, suffix: str, zeros: int) -> None:
    text = f"{number}{suffix}"
    try:
        short = quantity(text)
        assert amount(short) == amount(text)
    except ValueError:
        return
    fraction = f".{'0' * zeros}"
    assert quantity(f"+0{number}{fraction}{suffix}") == short == quantity(short)


@pytest.mark.parametrize(
    "path", [("spec", "containers", 0, "env", 0, "value"), ("spec", "priorityClassName"), ("spec", "securityContext", "runAsUser")]
)
def test_another_value_in_a_full_template_is_a_change(path: tuple[Any, ...]) -> None:
    full = {"driver": {"podTemplate": TEMPLATE}}
    assert hashes(full)[0] != hashes({"driver": {"podTemplate": put(TEMPLATE, path, "other")}})[0]


@pytest.mark.parametrize("written", ["abc", "", None, True, [], {}, -1, "1e99", "9" * 400])
def test_what_is_no_quantity_stays_as_it_is(written: Any) -> None:
    assert quantity(written) == written
