"""What is made: the contract of docs/interfaces.md, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from operator_world import MIGRATING, SPEC

from sluice_operator.apply import manifests, spark_settings
from sluice_operator.observe import parse as observe
from sluice_operator.settings import Settings, read
from sluice_operator.spec.changes import DesiredSpec
from sluice_operator.spec.fields import parse
from sluice_operator.spec.pod_template import SCRATCH
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus, MigrationStatus

Json = dict[str, Any]

RESOURCE = Resource(namespace="default", name="orders", uid="u-1", version="7", generation=3)
DRIVER = DriverStatus(attempt=3, pod="orders-driver-3", spec_hash="abc")
SETTINGS = Settings(image="sluice-consumer:1")
TEMPLATE: Json = {
    "metadata": {"labels": {"team": "x"}, "annotations": {"a": "b"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "securityContext": {"fsGroup": 7},
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "driver",
                "env": [{"name": "AWS_PROFILE", "value": "x"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                "resources": {"limits": {"memory": "3Gi"}},
            },
        ],
    },
}


def wanted(**change: Any) -> DesiredSpec:
    """A spec with changes."""
    raw = {**SPEC, **change}
    return DesiredSpec(parse(raw), raw)


def driver_pod(**change: Any) -> Json:
    """The pod of attempt 3."""
    return manifests.driver_pod(RESOURCE, wanted(**change), DRIVER, SETTINGS)


def config(pod: Json) -> Json:
    """What the driver reads."""
    loaded: Json = json.loads(pod["metadata"]["annotations"]["sluice.dev/config"])
    return loaded


def test_the_configuration_has_every_key_of_the_contract() -> None:
    """Format 1."""
    found = config(driver_pod())
    assert set(found) == {
        "format", "name", "stream", "start", "checkpoints", "migrateFrom", "pipeline", "batch", "leaseDurationSeconds",
        "drainTimeoutSeconds", "executors", "force", "sparkConf",
    }  # fmt: skip
    assert found["checkpoints"] == {"table": "sluice_default_orders"}
    assert found["batch"] == {"intervalSeconds": 5, "maxRecordsPerShard": 10000, "maxBytesPerShard": 8388608, "shardsPerTask": 8}
    assert found["pipeline"] == {"entrypoint": "orders.pipeline:process", "args": {}}
    assert found["migrateFrom"] is None


def test_spark_learns_where_and_as_whom_it_runs() -> None:
    """And users' settings cannot replace that; they may replace sizes."""
    conf = config(driver_pod(sparkConf={"spark.executor.memory": "3g"}))["sparkConf"]
    assert conf["spark.app.id"] == conf["spark.kubernetes.executor.podNamePrefix"] == "orders-3"
    assert conf["spark.kubernetes.namespace"] == "default"
    assert conf["spark.kubernetes.container.image"] == "sluice-consumer:1"
    assert conf["spark.kubernetes.executor.podTemplateContainerName"] == "executor"
    assert conf["spark.kubernetes.executor.label.sluice.dev/consumer"] == "orders"
    assert conf["spark.executor.memory"] == "3g"


def test_the_driver_pod_is_ours_and_restricted() -> None:
    """Labels, owner, grace period, security."""
    pod = driver_pod(drainTimeoutSeconds=60)
    meta, spec = pod["metadata"], pod["spec"]
    assert meta["labels"] == {
        "app.kubernetes.io/managed-by": "sluice",
        "sluice.dev/consumer": "orders",
        "sluice.dev/role": "driver",
        "sluice.dev/attempt": "3",
    }
    assert meta["ownerReferences"][0]["uid"] == "u-1"
    assert meta["annotations"]["sluice.dev/executors"] == "2"
    assert meta["annotations"]["argocd.argoproj.io/ignore-restart-policy"] == "true"
    assert spec["terminationGracePeriodSeconds"] == 90
    assert spec["restartPolicy"] == "Never"
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {item["name"] for item in spec["containers"][0]["env"]} >= {"SLUICE_POD_NAME", "SLUICE_POD_IP", "SLUICE_TERMINATION_LOG"}


def test_a_pod_template_is_laid_under_and_joined() -> None:
    """Lists are joined, the user's resources and security context count, our labels stay."""
    pod = driver_pod(driver={"podTemplate": TEMPLATE, "resources": {"limits": {"memory": "1Gi"}}})
    container = pod["spec"]["containers"][0]
    assert pod["metadata"]["labels"]["team"] == "x"
    assert pod["metadata"]["labels"]["sluice.dev/role"] == "driver"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["securityContext"] == {"fsGroup": 7, **manifests.POD_SECURITY}
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["sluice-config", *SCRATCH, "scratch"]
    assert [mount["name"] for mount in container["volumeMounts"]] == ["sluice-config", *SCRATCH, "scratch"]
    assert "AWS_PROFILE" in [item["name"] for item in container["env"]]
    assert container["resources"]["limits"] == {"memory": "3Gi"}
    assert pod["spec"]["initContainers"][0]["name"] == "proxy"


def test_the_executor_template_is_restricted_and_labelled() -> None:
    """Spark fills in the rest."""
    template = json.loads(driver_pod()["metadata"]["annotations"]["sluice.dev/executor-template"])
    assert template["metadata"]["labels"]["sluice.dev/role"] == "executor"
    assert template["spec"]["containers"][0]["name"] == "executor"
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True


def test_a_driver_given_up_by_the_user_makes_the_next_one_forced() -> None:
    """The driver takes the lease at once, and waits its promise out."""
    forced = DriverStatus(attempt=4, pod="orders-driver-4", forced=True)
    assert manifests.driver_config(RESOURCE, wanted(), forced, SETTINGS)["force"] is True


@pytest.mark.parametrize(("generation", "told"), [(None, []), (7, ["true"])], ids=["no driver has reported", "a driver has"])
def test_a_driver_is_told_that_there_was_a_table(generation: int | None, told: list[str]) -> None:
    """It would make a table that was deleted again, and leave out what lies between. Not in the configuration, which an older driver would refuse."""
    pod = manifests.driver_pod(RESOURCE, wanted(), DriverStatus(attempt=4, pod="orders-driver-4", generation=generation), SETTINGS)
    assert [item["value"] for item in pod["spec"]["containers"][0]["env"] if item["name"] == "SLUICE_TABLE_MADE"] == told
    assert "tableMade" not in config(pod)


def test_drivers_serve_metrics_where_the_operator_was_told_to_have_them() -> None:
    """Prometheus finds the port by its name; without one the key is left out, for older drivers refuse it."""
    told = read({"SLUICE_DRIVER_METRICS_PORT": "9404"})
    pod = manifests.driver_pod(RESOURCE, wanted(), DRIVER, told)
    assert config(pod)["metrics"] == {"port": 9404}
    assert pod["spec"]["containers"][0]["ports"] == [{"name": "metrics", "containerPort": 9404}]
    without = manifests.driver_pod(RESOURCE, wanted(), DRIVER, read({}))
    assert "metrics" not in config(without)
    assert without["spec"]["containers"][0]["ports"] == []


@pytest.mark.parametrize(("said", "told"), [("41", 41), ("all", "all"), ("²", "²")], ids=["a number", "a word", "a digit that is no number"])
def test_an_accepted_loss_is_told_to_the_next_driver(said: str, told: object) -> None:
    """Only the number of a batch means anything; the driver refuses anything else, and nothing restarts for it."""
    meta = {"namespace": "default", "name": "orders", "uid": "u-1", "resourceVersion": "7", "annotations": {"sluice.dev/accept-loss": said}}
    resource = observe.resource({"metadata": meta})
    assert manifests.driver_config(resource, wanted(), DriverStatus(attempt=4), SETTINGS)["acceptLossOfBatch"] == told


def test_the_migration_job_runs_once_with_the_migrators_arguments() -> None:
    """Disruptions are not its failure; credentials come from the driver's template."""
    raw = {
        **MIGRATING,
        "stream": {**SPEC["stream"], "kinesisEndpoint": "http://k:1"},
        "migrateFrom": {"table": "old", "format": "KCL", "unstarted": "Now", "quietSeconds": 3},
        "driver": {"podTemplate": TEMPLATE},
    }
    migration = MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
    job = manifests.migration_job(RESOURCE, DesiredSpec(parse(raw), raw), migration, SETTINGS)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["name"] == "migrate"
    assert container["resources"] == {"limits": {"memory": "3Gi"}}, "the template's, as for a driver"
    assert " ".join(container["args"]) == (
        "python -m sluice_checkpoints migrate --source old --stream orders --target sluice_default_orders --region eu-west-1"
        " --format kcl --unstarted now --quiet-seconds 3 --kinesis-endpoint http://k:1 --json"
    )
    assert "AWS_PROFILE" in [item["name"] for item in container["env"]]
    assert job["spec"]["backoffLimit"] == 0
    assert job["metadata"]["labels"]["sluice.dev/migration"] == "a1b2c3"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_the_longest_name_still_fits() -> None:
    """63 characters: 45 of the resource and our suffixes."""
    assert len("n" * 45 + "-migrate-a1b2c3-99") == 63


def test_settings_come_from_the_environment() -> None:
    """Blank is absent."""
    found = read({"WATCH_NAMESPACES": "a, b,", "SLUICE_CONSUMER_IMAGE": ""})
    assert found == Settings(namespaces=("a", "b"))


# what all three pods have in common

TMP = "/tmp"  # noqa: S108 - a pod's own
TRIED = MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
CONTAINERS = {"driver": "driver", "executor": "executor", "migrate": "driver"}  # and whose template each of them is laid over


def pods(settings: Settings = SETTINGS, **change: Any) -> dict[str, Json]:
    """The specs of the three pods, by the name of their container. Spark has its say on the executor's: tests/contract/spark/test_executor_pod.py."""
    raw = {**MIGRATING, **change}
    asked = DesiredSpec(parse(raw), raw)
    driver = manifests.driver_pod(RESOURCE, asked, DRIVER, settings)
    job = manifests.migration_job(RESOURCE, asked, TRIED, settings)
    template = json.loads(driver["metadata"]["annotations"]["sluice.dev/executor-template"])
    return {"driver": driver["spec"], "executor": template["spec"], "migrate": job["spec"]["template"]["spec"]}


def in_container(role: str, **said: Any) -> Json:
    """The change of a spec by which the template of that container says something."""
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
    """Of which each pod has its own, gone with it."""
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
    """And no more than that."""
    said = {"securityContext": {"readOnlyRootFilesystem": False, "allowPrivilegeEscalation": True, "runAsUser": 1000}}
    (container,) = pods(**in_container(role, **said))[role]["containers"]
    expected = {"readOnlyRootFilesystem": False, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1000}
    assert container["securityContext"] == expected


@pytest.mark.parametrize("role", CONTAINERS)
@pytest.mark.parametrize("said", [True, None, "false", 0])
def test_nothing_but_a_plain_no_lets_an_image_write_to_its_root(role: str, said: object) -> None:
    """As for every other field of ours."""
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
def test_mounts_that_are_none_go_to_the_api_server_as_they_are(nonsense: object) -> None:
    """It says what is wrong with them."""
    assert pods(driver={"podTemplate": {"spec": {"volumes": nonsense, "containers": [{"name": "driver", "volumeMounts": nonsense}]}}})


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
    """And asks for nothing that the driver's account has no right to."""
    conf = config(driver_pod())["sparkConf"]
    assert conf["spark.authenticate"] == "true"
    assert spark_settings.UNNEEDED.items() <= conf.items()
    told = {"spark.authenticate": "false", "spark.kubernetes.executor.disableConfigMap": "false"}
    assert told.items() <= config(driver_pod(sparkConf=told))["sparkConf"].items()
