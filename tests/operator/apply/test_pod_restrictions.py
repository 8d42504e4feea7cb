"""What every pod may do, wherever it comes from: accounts, restrictions, scratch space, pulling, heap."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manifest_cases import DRIVER, RESOURCE, SETTINGS, TEMPLATE, Json, config, driver_pod
from simulated_cluster import MIGRATING, SPEC

from sluice_operator.apply import manifests, spark_settings
from sluice_operator.apply.jobs import migration_job
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.settings import Settings
from sluice_operator.state.status import MigrationStatus

# what all three pods have in common
TMP = "/tmp"  # noqa: S108 - a pod's own
TRIED = MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
CONTAINERS = {"driver": "driver", "executor": "executor", "migrate": "driver"}  # and whose template each of them is laid over


def pods(settings: Settings = SETTINGS, **change: Any) -> dict[str, Json]:
    """The specs of the three pods, by the name of their container. Spark has its say on the executor's: tests/contract/spark/test_executor_pod.py."""
    raw = {**MIGRATING, **change}
    asked = DesiredSpec(parse(raw), raw)
    driver = manifests.driver_pod(RESOURCE, asked, DRIVER, settings)
    job = migration_job(RESOURCE, asked, TRIED, settings)
    template = json.loads(driver["metadata"]["annotations"]["sluice.dev/executor-template"])
    return {"driver": driver["spec"], "executor": template["spec"], "migrate": job["spec"]["template"]["spec"]}


def in_container(role: str, **said: Any) -> Json:
    whose = CONTAINERS[role]
    return {whose: {"podTemplate": {"spec": {"containers": [{"name": whose, **said}]}}}}


ACCOUNTS: dict[str, tuple[str | None, Json, tuple[str, str, str]]] = {
    "nothing is said": (None, {}, ("sluice-consumer", "sluice-consumer", "sluice-consumer")),
    "the chart has one for executors": ("idle", {}, ("sluice-consumer", "idle", "idle")),
    "the user names the driver's": ("idle", {"serviceAccountName": "orders"}, ("orders", "orders", "orders")),
    "the user names the executors'": ("idle", {"executor": {"serviceAccountName": "readers"}}, ("sluice-consumer", "readers", "idle")),
    "the user names both": (None, {"serviceAccountName": "orders", "executor": {"serviceAccountName": "readers"}}, ("orders", "readers", "orders")),
}


@pytest.mark.parametrize(("default", "change", "expected"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_only_the_driver_has_a_token_and_who_runs_as_whom_is_said_once(default: str | None, change: Json, expected: tuple[str, str, str]) -> None:
    """One that the user names for drivers is everybody's, so that a role bound to it still works. A migration does what a driver's role allows."""
    found = pods(Settings(executor_account=default), **change)
    assert tuple(pod["serviceAccountName"] for pod in found.values()) == expected
    assert {role: pod["automountServiceAccountToken"] for role, pod in found.items()} == {"driver": True, "executor": False, "migrate": False}


def test_every_container_is_restricted_and_writes_only_to_scratch_space() -> None:
    for pod in pods().values():
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert set(mounts) == {TMP, "/opt/sluice/work"}
        assert [volume["name"] for volume in pod["volumes"] if volume.get("emptyDir") == {}] == list(mounts.values())


@pytest.mark.parametrize("role", CONTAINERS)
def test_a_template_may_say_that_its_image_writes_to_its_root(role: str) -> None:
    said = {"securityContext": {"readOnlyRootFilesystem": False, "allowPrivilegeEscalation": True, "runAsUser": 1000}}
    (container,) = pods(**in_container(role, **said))[role]["containers"]
    expected = {"readOnlyRootFilesystem": False, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1000}
    assert container["securityContext"] == expected


@pytest.mark.parametrize("role", CONTAINERS)
@pytest.mark.parametrize("said", [True, None, "false", 0])
def test_nothing_but_a_plain_no_lets_an_image_write_to_its_root(role: str, said: object) -> None:
    (container,) = pods(**in_container(role, securityContext={"readOnlyRootFilesystem": said}))[role]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("role", CONTAINERS)
def test_what_a_template_mounts_over_scratch_space_takes_its_place(role: str) -> None:
    """Two mounts of one path would be refused by the API server, and so would two volumes of one name."""
    whose = CONTAINERS[role]
    mounts, big = [{"name": "mine", "mountPath": f"{TMP}/"}], {"name": "sluice-work", "emptyDir": {"sizeLimit": "9Gi"}}
    template = {"spec": {"volumes": [{"name": "mine", "emptyDir": {}}, big], "containers": [{"name": whose, "volumeMounts": mounts}]}}
    change: Json = {whose: {"podTemplate": template}}
    pod = pods(**change)[role]
    (container,) = pod["containers"]
    assert {mount["mountPath"].rstrip("/"): mount["name"] for mount in container["volumeMounts"]}.items() >= {
        (TMP, "mine"),
        ("/opt/sluice/work", "sluice-work"),
    }
    assert [volume for volume in pod["volumes"] if volume["name"] != "sluice-config"] == [{"name": "mine", "emptyDir": {}}, big]


@pytest.mark.parametrize("nonsense", [5, "x", [7], {"a": 1}])
@pytest.mark.parametrize("place", ["volumes", "volumeMounts"])
def test_mounts_that_are_none_are_refused_by_their_field(nonsense: object, place: str) -> None:
    container = {"name": "driver"} | ({place: nonsense} if place == "volumeMounts" else {})
    with pytest.raises(InvalidSpec, match=rf"spec\.driver\.podTemplate: spec\.(containers\.driver\.)?{place}: must be a list"):
        pods(driver={"podTemplate": {"spec": {"containers": [container]} | ({place: nonsense} if place == "volumes" else {})}})


def test_the_job_asks_for_what_the_driver_asks_for() -> None:
    """Else a quota on requests would keep its pod away for ever."""
    sizes = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    found = pods(driver={"resources": sizes})
    assert [found[role]["containers"][0]["resources"] for role in ("driver", "migrate")] == [sizes, sizes]


def test_secrets_and_policy_for_pulling_the_image_reach_every_pod() -> None:
    """Spark overwrites the executor's policy, so that goes by a setting; secrets it adds to those of the template."""
    pipeline = {**SPEC["pipeline"], "imagePullPolicy": "Always", "imagePullSecrets": ["registry", "other"]}
    template = {"spec": {"imagePullSecrets": [{"name": "mine"}]}}
    found = pods(pipeline=pipeline, driver={"podTemplate": template})
    asked = [{"name": "registry"}, {"name": "other"}]
    assert [found[role]["imagePullSecrets"] for role in found] == [[*asked, {"name": "mine"}], asked, [*asked, {"name": "mine"}]]
    assert [found[role]["containers"][0]["imagePullPolicy"] for role in ("driver", "migrate")] == ["Always", "Always"]
    assert config(driver_pod(pipeline=pipeline))["sparkConf"]["spark.kubernetes.container.image.pullPolicy"] == "Always"
    assert not [role for role, pod in pods().items() if "imagePullSecrets" in pod or "imagePullPolicy" in pod["containers"][0]]


PULLED = {
    "orders": "Always", "orders:latest": "Always", "r.io:5000/a/orders": "Always", "orders:1": "IfNotPresent", "r.io:5000/a/orders:1": "IfNotPresent",
    "orders@sha256:" + "0" * 64: "IfNotPresent", "orders:latest@sha256:" + "0" * 64: "IfNotPresent",
}  # fmt: skip


@pytest.mark.parametrize(("image", "policy"), PULLED.items())
def test_without_a_policy_executors_pull_as_kubernetes_lets_the_driver_pull(image: str, policy: str) -> None:
    """Spark's own default would run two builds of a moving tag side by side."""
    conf = config(driver_pod(pipeline={**SPEC["pipeline"], "image": image}))["sparkConf"]
    assert conf["spark.kubernetes.container.image.pullPolicy"] == policy
    asked = driver_pod(pipeline={**SPEC["pipeline"], "image": image}, **in_container("executor", imagePullPolicy="Never"))
    assert config(asked)["sparkConf"]["spark.kubernetes.container.image.pullPolicy"] == "Never"
    nonsense = driver_pod(pipeline={**SPEC["pipeline"], "image": image}, **in_container("executor", imagePullPolicy=["Never"]))
    assert config(nonsense)["sparkConf"]["spark.kubernetes.container.image.pullPolicy"] == policy


HEAPS: dict[str, tuple[Json, str | None]] = {
    "nothing is said": ({}, None),
    "a limit": ({"resources": {"limits": {"memory": "8Gi"}}}, "4916m"),
    "a request": ({"resources": {"requests": {"memory": "2Gi"}}}, "1229m"),
    "a limit counts before a request": ({"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}}, "1229m"),
    "a request that a driver outgrows": ({"resources": {"requests": {"memory": "256Mi"}}}, None),
    "resources of the template": ({"resources": {"limits": {"memory": "8Gi"}}, "podTemplate": TEMPLATE}, "1844m"),
}


@pytest.mark.parametrize(("driver", "heap"), HEAPS.values(), ids=HEAPS)
def test_the_drivers_heap_follows_its_memory(driver: Json, heap: str | None) -> None:
    """The rest is for the supervisor, PySpark and the workers that plan; what the user sets himself stands."""
    assert config(driver_pod(driver=driver))["sparkConf"].get("spark.driver.memory") == heap
    told = {"spark.driver.memory": "700m"}
    assert config(driver_pod(driver=driver, sparkConf=told))["sparkConf"]["spark.driver.memory"] == "700m"


def test_spark_authenticates_unless_the_user_says_otherwise() -> None:
    conf = config(driver_pod())["sparkConf"]
    assert conf["spark.authenticate"] == "true"
    assert spark_settings.UNNEEDED.items() <= conf.items()
    told = {"spark.authenticate": "false", "spark.kubernetes.executor.disableConfigMap": "false"}
    assert told.items() <= config(driver_pod(sparkConf=told))["sparkConf"].items()
