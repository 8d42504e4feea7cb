"""What is made: the contract of docs/interfaces.md, field by field."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from manifest_cases import DRIVER, RESOURCE, SETTINGS, TEMPLATE, config, driver_pod, wanted
from simulated_cluster import MIGRATING, SPEC

from sluice_consumer.process import configmap_code
from sluice_operator.apply import manifests
from sluice_operator.apply.jobs import migration_arguments, migration_job
from sluice_operator.apply.pod_parts import POD_SECURITY
from sluice_operator.observe import parse as observe
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.resource.pod_template import SCRATCH
from sluice_operator.settings import Settings, read
from sluice_operator.state.status import DriverStatus, MigrationStatus


def test_the_configuration_has_every_key_of_the_contract() -> None:
    found = config(driver_pod())
    assert set(found) == {
        "format", "name", "stream", "start", "checkpoints", "migrateFrom", "pipeline", "batch", "leaseDurationSeconds",
        "drainTimeoutSeconds", "executors", "force", "sparkConf",
    }  # fmt: skip
    assert found["checkpoints"] == {"table": "sluice_default_orders"}
    assert found["batch"] == {"intervalSeconds": 5, "maxRecordsPerShard": 10000, "maxBytesPerShard": 8388608, "shardsPerTask": 8}
    assert found["pipeline"] == {"entrypoint": "orders.pipeline:process", "args": {}}
    assert found["migrateFrom"] is None


def test_the_share_of_looks_is_left_out_unless_it_is_set() -> None:
    """Older drivers refuse an unknown setting."""
    assert "probeShare" not in config(driver_pod())["stream"]
    assert config(driver_pod(stream={"name": "orders", "region": "eu-west-1", "probeShare": 1}))["stream"]["probeShare"] == 1


THEIRS = {
    "arn": "arn:aws:kinesis:eu-west-1:444455556666:stream/orders",
    "roleArn": "arn:aws:iam::444455556666:role/orders-reader",
    "externalId": "shop-orders",
    "sessionName": "them",
}


def test_a_stream_of_another_account_reaches_the_driver_as_it_was_given() -> None:
    """And nothing of it is there unless it is set: older drivers refuse an unknown setting."""
    assert config(driver_pod(stream=THEIRS))["stream"] == THEIRS
    assert config(driver_pod())["stream"].keys() <= {"name", "region", "kinesisEndpoint", "dynamodbEndpoint"}


def test_the_migration_of_a_stream_of_another_account_reads_it_as_the_same_role() -> None:
    """The Job's own identity is that of its account, as for tables."""
    raw = {**MIGRATING, "stream": THEIRS, "migrateFrom": {"table": "old"}}
    words = " ".join(migration_arguments(RESOURCE, DesiredSpec(parse(raw), raw)))
    role = f"--role-arn {THEIRS['roleArn']} --external-id shop-orders --role-session-name them"
    assert f" --stream {THEIRS['arn']} --region eu-west-1 {role}" in words
    assert "--role-arn" not in " ".join(migration_arguments(RESOURCE, DesiredSpec(parse(MIGRATING), MIGRATING)))


def test_spark_learns_where_and_as_whom_it_runs() -> None:
    conf = config(driver_pod(sparkConf={"spark.executor.memory": "3g"}))["sparkConf"]
    assert conf["spark.app.id"] == conf["spark.kubernetes.executor.podNamePrefix"] == "orders-3"
    assert conf["spark.kubernetes.namespace"] == "default"
    assert conf["spark.kubernetes.container.image"] == "sluice-consumer:1"
    assert conf["spark.kubernetes.executor.podTemplateContainerName"] == "executor"
    assert conf["spark.kubernetes.executor.label.sluice.dev/consumer"] == "orders"
    assert conf["spark.kubernetes.executor.label.sluice.dev/attempt"] == "3"
    assert conf["spark.executor.memory"] == "3g"


def test_the_driver_pod_is_ours_and_restricted() -> None:
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
    pod = driver_pod(driver={"podTemplate": TEMPLATE, "resources": {"limits": {"memory": "1Gi"}}})
    container = pod["spec"]["containers"][0]
    assert pod["metadata"]["labels"]["team"] == "x"
    assert pod["metadata"]["labels"]["sluice.dev/role"] == "driver"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["securityContext"] == {"fsGroup": 7, **POD_SECURITY}
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["sluice-config", *SCRATCH, "scratch"]
    assert [mount["name"] for mount in container["volumeMounts"]] == ["sluice-config", *SCRATCH, "scratch"]
    assert "AWS_PROFILE" in [item["name"] for item in container["env"]]
    assert container["resources"]["limits"] == {"memory": "3Gi"}
    assert pod["spec"]["initContainers"][0]["name"] == "proxy"


SHARED: dict[str, Any] = {
    "env": [{"name": "AWS_PROFILE", "value": "shared"}, {"name": "LAKE", "valueFrom": {"secretKeyRef": {"name": "lake", "key": "url"}}}],
    "envFrom": [{"secretRef": {"name": "lake"}}],
    "volumes": [{"name": "code", "configMap": {"name": "orders"}}],
    "volumeMounts": [{"name": "code", "mountPath": "/code", "readOnly": True}],
}


def test_driver_executors_and_migration_share_what_the_pipeline_names() -> None:
    spec = wanted(pipeline={**SPEC["pipeline"], **SHARED}, migrateFrom={"table": "orders-kcl"})
    migration = MigrationStatus(job="orders-migrate-1", hash="h", spec_hash="s", tries=1)
    pods = (
        manifests.driver_pod(RESOURCE, spec, DRIVER, SETTINGS),
        manifests.executor_template(RESOURCE, spec, SETTINGS),
        migration_job(RESOURCE, spec, migration, SETTINGS)["spec"]["template"],
    )
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert container.get("env", [])[-2:] == SHARED["env"]
        assert container["envFrom"] == SHARED["envFrom"]
        assert SHARED["volumeMounts"][0] in container["volumeMounts"]
        assert SHARED["volumes"][0] in pod["spec"]["volumes"]
        assert {"name": "sluice-tmp", "mountPath": "/tmp"} in container["volumeMounts"]  # noqa: S108
    assert "AWS_PROFILE" in pods[0]["metadata"]["annotations"]["sluice.dev/executor-template"]


def test_a_driver_pod_says_what_decides_which_table_it_finds() -> None:
    """A standby is made only beside a driver that says the same."""
    assert driver_pod()["metadata"]["annotations"][observe.TABLE_HASH] == wanted().table_hash


def test_a_standby_prefers_another_node_than_the_drivers() -> None:
    alone, standby = (
        manifests.driver_pod(RESOURCE, DesiredSpec(parse(SPEC), SPEC), DRIVER, SETTINGS, standby=each)["spec"] for each in (False, True)
    )
    assert "affinity" not in alone
    (term,) = standby["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"] == {"matchLabels": {"sluice.dev/consumer": "orders", "sluice.dev/role": "driver"}}
    theirs: dict[str, Any] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    raw = {**SPEC, "driver": {"podTemplate": {"spec": {"affinity": theirs}}}}
    assert manifests.driver_pod(RESOURCE, DesiredSpec(parse(raw), raw), DRIVER, SETTINGS, standby=True)["spec"]["affinity"] == theirs


def test_a_pod_template_wins_over_what_is_shared() -> None:
    """Of two variables with one name Kubernetes takes the last."""
    pod = driver_pod(pipeline={**SPEC["pipeline"], **SHARED}, driver={"podTemplate": TEMPLATE})
    found = [item["value"] for item in pod["spec"]["containers"][0]["env"] if item["name"] == "AWS_PROFILE"]
    assert found == ["shared", "x"]


def test_the_executor_template_is_restricted_and_labelled() -> None:
    template = json.loads(driver_pod()["metadata"]["annotations"]["sluice.dev/executor-template"])
    assert template["metadata"]["labels"]["sluice.dev/role"] == "executor"
    assert template["spec"]["containers"][0]["name"] == "executor"
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True


def test_a_driver_that_runs_the_tasks_has_no_executors_and_asks_kubernetes_for_none() -> None:
    spec = wanted(executor={"inDriver": True, "cores": 2}, driver={"resources": {"limits": {"memory": "2Gi"}}}, replicas=1)
    pod = manifests.driver_pod(RESOURCE, spec, DRIVER, SETTINGS)
    conf = manifests.driver_config(RESOURCE, spec, DRIVER, SETTINGS)["sparkConf"]
    assert conf["spark.master"] == "local[2,4]"
    assert conf["spark.app.id"] == "orders-3"
    assert not [key for key in conf if key.startswith(("spark.kubernetes.", "spark.executor."))]
    assert "sluice.dev/executor-template" not in pod["metadata"]["annotations"]
    (files,) = (volume["downwardAPI"]["items"] for volume in pod["spec"]["volumes"] if "downwardAPI" in volume)
    assert [item["path"] for item in files] == ["config.json"]


def test_modules_of_a_configmap_are_mounted_in_the_driver_alone() -> None:
    """Spark hands the driver's copy to executors. The mount is optional: the driver says that the ConfigMap is not there."""
    spec = wanted(pipeline={**SPEC["pipeline"], "source": {"configMap": "orders-code"}})
    pod = manifests.driver_pod(RESOURCE, spec, DRIVER, SETTINGS)
    (container,) = pod["spec"]["containers"]
    assert {"name": "SLUICE_SOURCE", "value": "orders-code"} in container["env"]
    (mount,) = (each for each in container["volumeMounts"] if each["mountPath"] == str(configmap_code.MOUNTED))
    assert mount == {"name": "sluice-source", "mountPath": "/opt/sluice/source", "readOnly": True}
    assert {"name": "sluice-source", "configMap": {"name": "orders-code", "optional": True}} in pod["spec"]["volumes"]
    assert "orders-code" not in json.dumps(manifests.executor_template(RESOURCE, spec, SETTINGS))


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


def test_tags_and_key_of_the_table_reach_whoever_creates_it() -> None:
    key = "arn:aws:kms:eu-west-1:111122223333:key/0a1b"
    raw = {**MIGRATING, "checkpoints": {"tags": {"team": "orders", "cost": "a=b"}, "kmsKeyArn": key}}
    spec = DesiredSpec(parse(raw), raw)
    made = manifests.driver_config(RESOURCE, spec, DRIVER, SETTINGS)["checkpoints"]
    assert (made["tags"], made["kmsKeyArn"]) == ({"team": "orders", "cost": "a=b"}, key)
    words = migration_arguments(RESOURCE, spec)
    assert words[words.index("--kms-key") + 1] == key
    assert [words[at + 1] for at, word in enumerate(words) if word == "--tag"] == ["cost=a=b", "team=orders"]
    assert set(manifests.driver_config(RESOURCE, wanted(), DRIVER, SETTINGS)["checkpoints"]) == {"table"}


def test_a_driver_knows_its_version() -> None:
    pod = manifests.driver_pod(RESOURCE, wanted(), DriverStatus(attempt=4, pod="orders-driver-4", spec_hash="0a1b"), SETTINGS)
    container = pod["spec"]["containers"][0]
    given = {item["name"]: item.get("value") for item in container["env"]}
    assert (given["SLUICE_SPEC_HASH"], given["SLUICE_IMAGE"]) == ("0a1b", container["image"])


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
    meta = {"namespace": "default", "name": "orders", "uid": "u-1", "resourceVersion": "7", "annotations": {"sluice.dev/accept-loss": said}}
    resource = observe.resource({"metadata": meta})
    assert manifests.driver_config(resource, wanted(), DriverStatus(attempt=4), SETTINGS)["acceptLossOfBatch"] == told


@pytest.mark.parametrize("place", [{"path": "s3a://lake/letters"}, {"sqs": "https://sqs.eu-west-1.amazonaws.com/1/q"}, {"kinesis": "letters"}])
def test_a_driver_hears_of_on_error_only_if_it_is_given(place: dict[str, str]) -> None:
    told = config(driver_pod(onError={"deadLetter": place}))
    assert told["onError"] == {"attempts": 3, "isolate": True, "deadLetter": place, "maxExcludedPerHour": 100}
    assert "onError" not in config(driver_pod())


def test_the_migration_job_runs_once_with_the_migrators_arguments() -> None:
    raw = {
        **MIGRATING,
        "stream": {**SPEC["stream"], "kinesisEndpoint": "http://k:1"},
        "migrateFrom": {"table": "old", "format": "KCL", "unstarted": "Now", "quietSeconds": 3},
        "driver": {"podTemplate": TEMPLATE},
    }
    migration = MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
    job = migration_job(RESOURCE, DesiredSpec(parse(raw), raw), migration, SETTINGS)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["name"] == "migrate"
    assert container["resources"] == {"limits": {"memory": "3Gi"}}, "the template's, as for a driver"
    assert " ".join(container["args"]) == (
        "python -m sluice_checkpoints migrate --source old --target sluice_default_orders --format kcl --unstarted now --quiet-seconds 3"
        " --stream orders --region eu-west-1 --kinesis-endpoint http://k:1 --json"
    )
    assert "AWS_PROFILE" in [item["name"] for item in container["env"]]
    assert job["spec"]["backoffLimit"] == 0
    assert job["metadata"]["labels"]["sluice.dev/migration"] == "a1b2c3"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_a_migration_that_was_refused_goes_on_by_the_fields_that_its_message_names() -> None:
    source = {
        "table": "old",
        "ignoreAttributes": ["ttl", "a b"],
        "ignoreRows": ["lock"],
        "places": ["shardId-000000000003=END", "shardId-000000000004=4960"],
    }
    raw = {**MIGRATING, "migrateFrom": source}
    words = migration_arguments(RESOURCE, DesiredSpec(parse(raw), raw))
    at = words.index("--ignore-attribute")
    assert words[at:-1] == [
        *("--ignore-attribute", "ttl", "--ignore-attribute", "a b", "--ignore-row", "lock"),
        *("--place", "shardId-000000000003=END", "--place", "shardId-000000000004=4960"),
    ]
    plain = {**MIGRATING, "migrateFrom": {"table": "old"}}
    assert DesiredSpec(parse(raw), raw).job_hash != DesiredSpec(parse(plain), plain).job_hash, "an edit lets a refused migration try again"


@pytest.mark.parametrize("name", ["$(PATH)", "a$$b", "$$(PATH)", "$", "cost$"])
def test_a_name_with_a_dollar_sign_reaches_the_migrator_as_it_is_written(name: str) -> None:
    """The kubelet replaces `$(VARIABLE)` in arguments, and makes one `$` of two. The command line that a person is shown has no such rule."""
    raw = {**MIGRATING, "migrateFrom": {"table": "old", "ignoreAttributes": [name]}}
    wanted, migration = DesiredSpec(parse(raw), raw), MigrationStatus(hash="a1b2c3", spec_hash="s", job="orders-migrate-a1b2c3-1", tries=1)
    (container,) = migration_job(RESOURCE, wanted, migration, SETTINGS)["spec"]["template"]["spec"]["containers"]
    words = migration_arguments(RESOURCE, wanted)
    assert name in words
    assert [expanded(word) for word in container["args"]] == words


def expanded(argument: str) -> str:
    """What the kubelet makes of an argument (Kubernetes API reference, `Container.args`), where each variable is "replaced"."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda found: "$" if found[0] == "$$" else "replaced", argument)


def test_the_longest_name_still_fits() -> None:
    """63 characters: 45 of the resource and our suffixes."""
    assert len("n" * 45 + "-migrate-a1b2c3-99") == 63


def test_settings_come_from_the_environment() -> None:
    found = read({"WATCH_NAMESPACES": "a, b,", "SLUICE_CONSUMER_IMAGE": ""})
    assert found == Settings(namespaces=("a", "b"))
