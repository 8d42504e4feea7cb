"""What becomes of an executor's pod: Spark's builder overwrites some of what the operator's template says, and only settings keep it from that."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from rendered_executor import HERE, RESOURCE, SPEC, Renderer

from sluice_operator.apply import manifests
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.resource.pod_template import SCRATCH
from sluice_operator.settings import Settings

pytestmark = pytest.mark.spark

Json = dict[str, Any]


@pytest.fixture(scope="module")
def spark_builds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    return Renderer(spark, tmp_path_factory.mktemp("template"))


def container(pod: Json) -> Json:
    (found,) = pod["spec"]["containers"]
    body: Json = found
    return body


def environment(pod: Json) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container(pod)["env"] if "value" in item}


@pytest.mark.parametrize("drain", [1, 120, 3600])
def test_an_executor_has_the_drain_timeout_and_a_margin_to_leave(spark_builds: Renderer, drain: int) -> None:
    """Spark sets the grace period of every executor, whatever its template says: 30 s, in which no longer task would end."""
    assert spark_builds.pod(drainTimeoutSeconds=drain)["spec"]["terminationGracePeriodSeconds"] == drain + 30


ACCOUNTS: dict[str, tuple[str | None, Json, str]] = {
    "nothing is said": (None, {}, "sluice-consumer"),
    "the chart has one for executors": ("idle", {}, "idle"),
    "the user names the driver's": ("idle", {"serviceAccountName": "orders"}, "orders"),
    "the user names the executors'": ("idle", {"serviceAccountName": "orders", "executor": {"serviceAccountName": "readers"}}, "readers"),
}


@pytest.mark.parametrize(("default", "change", "account"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_an_executor_has_its_account_and_no_token(spark_builds: Renderer, default: str | None, change: Json, account: str) -> None:
    """Spark knows of two fields for an account, and overwrites the one that a template is written with."""
    pod = spark_builds.pod(Settings(executor_account=default), **change)["spec"]
    assert (pod["serviceAccountName"], pod["serviceAccount"]) == (account, account)
    assert pod["automountServiceAccountToken"] is False
    assert not [volume for volume in pod["volumes"] if set(volume) & {"projected", "secret", "hostPath"}]


SIZES: dict[str, Json] = {
    "nothing is said": {},
    "cores": {"executor": {"cores": 4}},
    "a whole pod": {"executor": {"cores": 2, "resources": {"requests": {"cpu": "500m", "memory": "3Gi"}, "limits": {"cpu": "2", "memory": "3Gi"}}}},
    "a request": {"executor": {"resources": {"requests": {"cpu": "100m", "memory": "1500M"}}}},
    "Spark's own settings": {"sparkConf": {"spark.executor.memory": "2g", "spark.executor.memoryOverheadFactor": "0.25"}},
    "an overhead": {"sparkConf": {"spark.executor.memory": "3072m", "spark.executor.memoryOverhead": "1g", "spark.executor.pyspark.memory": "256m"}},
    "the cluster's factor": {"sparkConf": {"spark.executor.memory": "8g", "spark.kubernetes.memoryOverheadFactor": "0.4"}},
    "a template": {
        "executor": {"podTemplate": {"spec": {"containers": [{"name": "executor", "resources": {"limits": {"example.com/gpu": "1"}}}]}}},
    },
}


@pytest.mark.parametrize("change", SIZES.values(), ids=SIZES)
def test_the_sample_for_a_dry_run_has_the_sizes_that_spark_gives(spark_builds: Renderer, change: Json) -> None:
    """A quota or a limit range of the namespace refuses a pod without sizes, and so the sample; Spark's executors have them."""
    raw = {**SPEC, **change}
    sample = manifests.executor_sample(RESOURCE, DesiredSpec(parse(raw), raw), Settings())
    assert container(sample)["resources"] == container(spark_builds.pod(**change))["resources"]


def is_restricted(pod: Json) -> None:
    """By the level that Kubernetes calls restricted; a real executor's pod: tests/operator/helm/test_driver_rights.py."""
    assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    assert restricted.items() <= container(pod)["securityContext"].items()
    assert not {"hostPID", "hostNetwork", "hostIPC", "nodeName", "initContainers"} & set(pod["spec"])
    kinds = {kind for volume in pod["spec"].get("volumes", []) for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def test_an_executor_is_restricted(spark_builds: Renderer) -> None:
    pod = spark_builds.pod()
    is_restricted(pod)
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container(pod)["volumeMounts"]}
    assert all("emptyDir" in volume for volume in mounts.values())
    assert {*SCRATCH.values(), environment(pod)["SPARK_LOCAL_DIRS"]} == set(mounts)


RESTRICTED: dict[str, Json] = {
    "code and secrets": {
        "pipeline": {
            **SPEC["pipeline"],
            "source": {"configMap": "code"},
            "volumes": [{"name": "keys", "secret": {"secretName": "keys"}}],
            "volumeMounts": [{"name": "keys", "mountPath": "/keys", "readOnly": True}],
        }
    },
    "a user of its own": {
        "executor": {"podTemplate": {"spec": {"containers": [{"name": "executor", "securityContext": {"runAsUser": 1000, "capabilities": {}}}]}}}
    },
    "a claim for shuffles": {
        "sparkConf": {
            "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1.options.claimName": "OnDemand",
            "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1.options.storageClass": "gp3",
            "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1.options.sizeLimit": "9Gi",
            "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1.mount.path": "/shuffle",
        }
    },
}


@pytest.mark.parametrize("change", RESTRICTED.values(), ids=RESTRICTED)
def test_an_executor_stays_restricted_whatever_a_spec_asks_for(spark_builds: Renderer, change: Json) -> None:
    """By Spark's own hand, too: it adds volumes, variables and sizes."""
    is_restricted(spark_builds.pod(**change))


def test_an_executors_image_may_write_to_its_root_if_the_template_says_so(spark_builds: Renderer) -> None:
    said = {"name": "executor", "securityContext": {"readOnlyRootFilesystem": False}}
    pod = spark_builds.pod(executor={"podTemplate": {"spec": {"containers": [said]}}})
    assert container(pod)["securityContext"]["readOnlyRootFilesystem"] is False


def test_an_executor_is_known_by_its_labels_and_goes_with_its_driver(spark_builds: Renderer) -> None:
    """The operator finds it by the former, and Kubernetes collects it by the latter."""
    meta = spark_builds.pod(executor={"podTemplate": {"metadata": {"labels": {"team": "x"}}}})["metadata"]
    ours = {"app.kubernetes.io/managed-by": "sluice", "sluice.dev/consumer": "orders", "sluice.dev/role": "executor", "team": "x"}
    assert ours.items() <= meta["labels"].items()
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", HERE.name, HERE.uid, True)
    assert meta["annotations"]["argocd.argoproj.io/ignore-restart-policy"] == "true"


@pytest.mark.parametrize(
    ("image", "asked", "policy"), [("orders:1", None, "IfNotPresent"), ("orders", None, "Always"), ("orders:1", "Never", "Never")]
)
def test_an_executor_is_pulled_as_its_driver_is(spark_builds: Renderer, image: str, asked: str | None, policy: str) -> None:
    """Spark overwrites the policy of a template."""
    pipeline = {"entrypoint": "a:b", "image": image, "imagePullSecrets": ["registry"]} | ({"imagePullPolicy": asked} if asked else {})
    pod = spark_builds.pod(pipeline=pipeline)
    assert (container(pod)["image"], container(pod)["imagePullPolicy"]) == (image, policy)
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_an_executor_proves_to_the_driver_who_it_is(spark_builds: Renderer) -> None:
    """With a secret that Spark makes again for each driver and hands to the executors that it makes."""
    first, second = (environment(spark_builds.pod()) for _ in range(2))
    assert "-Dspark.authenticate=true" in first.values()
    assert len(first["_SPARK_AUTH_SECRET"]) == 64
    assert first["_SPARK_AUTH_SECRET"] != second["_SPARK_AUTH_SECRET"]
    assert "_SPARK_AUTH_SECRET" not in environment(spark_builds.pod(sparkConf={"spark.authenticate": "false"}))


def test_an_executor_needs_no_other_object(spark_builds: Renderer) -> None:
    """No ConfigMap, no Service, no claim: the driver's account may make none."""
    pod = spark_builds.pod()
    assert pod["others"] == []
    assert not [volume for volume in pod["spec"]["volumes"] if set(volume) & {"configMap", "persistentVolumeClaim"}]
    with_map = spark_builds.pod(sparkConf={"spark.kubernetes.executor.disableConfigMap": "false"})
    assert [volume for volume in with_map["spec"]["volumes"] if "configMap" in volume], "else this test looks at the wrong place"


def test_an_executor_gets_what_its_resources_say(spark_builds: Renderer) -> None:
    resources = {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    sizes = container(spark_builds.pod(executor={"cores": 3, "resources": resources}))["resources"]
    assert sizes == {"requests": {"cpu": "500m", "memory": "2048Mi"}, "limits": {"cpu": "2", "memory": "2048Mi"}}
