"""The objects of a driver: its pod with its configuration, and the template of its executors; and the pod of a pool, with its seats. Pure.

The contracts are docs/interfaces.md, and docs/pools.md, "The contract of operator and driver". The driver's configuration is in annotations of its
pod, which the downward API mounts as files. So there is no second object to create, lose or leak.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.apply.pod_parts import (
    CONTAINER_SECURITY,
    SCRATCH_MOUNTS,
    SCRATCH_VOLUMES,
    TERMINATION_ENV,
    Json,
    container_part,
    labels,
    metadata,
    owner,
    owner_env,
    pod_spec,
)
from sluice_operator.apply.spark_settings import executor_account, grace_seconds, spark_settings
from sluice_operator.names import ARGO, CONFIG, EXECUTOR_TEMPLATE
from sluice_operator.observe.parse import ATTEMPT, SPEC_HASH, TABLE_HASH, TARGET
from sluice_operator.resource import pools
from sluice_operator.resource.changes import DesiredSpec, table_name
from sluice_operator.resource.pod_template import lay_under
from sluice_operator.resource.sizes import executor_resources, other_resources
from sluice_operator.untrusted.values import part

if TYPE_CHECKING:
    from sluice_operator.resource.fields import Spec
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource
    from sluice_operator.state.status import DriverStatus

FILES = {"config.json": CONFIG, "executor.yaml": EXECUTOR_TEMPLATE}
FIELDS = {
    "SLUICE_POD_NAME": "metadata.name",
    "SLUICE_POD_NAMESPACE": "metadata.namespace",
    "SLUICE_POD_UID": "metadata.uid",
    "SLUICE_POD_IP": "status.podIP",
}
SOURCE = "sluice-source"
OF_POOL = ("executors", "metrics", "sparkConf")  # settings that one process can have only once


def driver_pod(
    resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings, clusters: tuple[str, ...] = (), *, standby: bool = False
) -> Json:
    """The pod that `driver` (from the status) names. `clusters`: by what this cluster is known. `standby`: it waits until the lease is free."""
    env = [*owner_env(resource, clusters), *_table_made(driver), *_version_env(wanted, driver, settings)]
    given = ["--config", "/etc/sluice/config.json", *(["--standby"] if standby else [])]
    program = PodProgram("driver", given, driver_config(resource, wanted, driver, settings), env, apart=standby)
    return spark_pod(resource, wanted, driver, settings, program)


class PodProgram(NamedTuple):
    """What runs in a driver's pod: its role, arguments of `python -m sluice_consumer`, configuration and own variables. `apart`: beside no driver."""

    role: str
    arguments: list[str]
    config: Json
    env: list[Json]
    apart: bool = False


def spark_pod(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings, program: PodProgram) -> Json:
    """A pod that makes executors, with its configuration in annotations."""
    spec, config = wanted.spec, program.config
    notes = {CONFIG: json.dumps(config, sort_keys=True), TARGET: str(spec.replicas), SPEC_HASH: driver.spec_hash or "", TABLE_HASH: wanted.table_hash}
    files = dict(FILES)
    if spec.executor.in_driver:
        del files["executor.yaml"]
    else:
        notes[EXECUTOR_TEMPLATE] = json.dumps(executor_template(resource, wanted, settings), sort_keys=True)
    container = {
        **container_part("driver", wanted, settings),
        "args": ["python", "-m", "sluice_consumer", *program.arguments],
        "env": [
            *(_field(name, path) for name, path in FIELDS.items()),
            TERMINATION_ENV,
            *program.env,
            *_source_env(spec),
        ],
        "resources": spec.driver.resources.document(),
        "volumeMounts": [{"name": "sluice-config", "mountPath": "/etc/sluice", "readOnly": True}, *_source_mount(spec), *SCRATCH_MOUNTS],
        "ports": [{"name": "metrics", "containerPort": settings.driver_metrics}] if settings.driver_metrics else [],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(resource, driver.pod or "", program.role, {ATTEMPT: str(driver.attempt)}, notes),
        "spec": {
            **pod_spec(spec.service_account_name, wanted, container),
            **(_apart(resource) if program.apart and not spec.driver_template.get("spec", {}).get("affinity") else {}),
            "automountServiceAccountToken": True,
            "terminationGracePeriodSeconds": grace_seconds(spec),
            "volumes": [
                {"name": "sluice-config", "downwardAPI": {"items": [_file(*item) for item in files.items()]}},
                *_source_volume(spec),
                *SCRATCH_VOLUMES,
            ],
        },
    }
    return lay_under(spec.driver_template, pod, "driver")


def _apart(resource: Resource) -> Json:
    """A standby prefers another node than the driver's: one lost node then ends one of them. It is a wish, so one node is enough."""
    drivers = {"matchLabels": {key: value for key, value in labels(resource, "driver").items() if key.startswith("sluice.dev/")}}
    term = {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": drivers}}
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def driver_config(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The driver's configuration, format 1."""
    spec = wanted.spec
    return {
        "format": 1,
        "name": resource.name,
        "stream": spec.stream.document(),
        "start": spec.start.document(),
        "checkpoints": {"table": table_name(resource.namespace, resource.name, spec), **_made_with(spec)},
        "migrateFrom": {"table": spec.migrate_from.table} if spec.migrate_from else None,
        "pipeline": {"entrypoint": spec.pipeline.entrypoint, "args": spec.pipeline.args},
        "batch": spec.batch.document(),
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "drainTimeoutSeconds": spec.drain_timeout_seconds,
        "executors": spec.replicas,
        "force": driver.forced,
        "sparkConf": spark_conf(resource, wanted, driver, settings),
        **({"until": spec.until.document()} if spec.until else {}),
        **(
            {"onError": spec.on_error.document()} if spec.on_error else {}
        ),  # as `until`, left out unless set: older drivers refuse an unknown setting
        **_accepted(resource.accept_loss),
        **({"metrics": {"port": settings.driver_metrics}} if settings.driver_metrics else {}),
    }


def _made_with(spec: Spec) -> Json:
    """Left out unless set: older drivers refuse an unknown setting."""
    tags, key = spec.checkpoints.tags, spec.checkpoints.kms_key_arn
    return ({"tags": tags} if tags else {}) | ({"kmsKeyArn": key} if key else {})


def _source_env(spec: Spec) -> list[Json]:
    """The driver refuses a ConfigMap that is not there, by this name. It is a variable: older drivers refuse an unknown setting."""
    return [{"name": "SLUICE_SOURCE", "value": spec.pipeline.source.config_map}] if spec.pipeline.source else []


def _source_mount(spec: Spec) -> list[Json]:
    return [{"name": SOURCE, "mountPath": "/opt/sluice/source", "readOnly": True}] if spec.pipeline.source else []


def _source_volume(spec: Spec) -> list[Json]:
    """Optional, for else a pod without its ConfigMap only waits, and says why in an event alone."""
    if spec.pipeline.source is None:
        return []
    return [{"name": SOURCE, "configMap": {"name": spec.pipeline.source.config_map, "optional": True}}]


def spark_conf(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> dict[str, str]:
    """Spark's settings of the driver that `driver` names."""
    conf = spark_settings(resource.app(driver.attempt), resource.namespace, wanted.spec, settings)
    return conf if wanted.spec.executor.in_driver else conf | _labelled(resource, driver)


def _table_made(driver: DriverStatus) -> list[Json]:
    """Informs a driver that there was a checkpoint table. It is a variable: older drivers ignore one, and refuse an unknown setting."""
    return [] if driver.generation is None else [{"name": "SLUICE_TABLE_MADE", "value": "true"}]


def _version_env(wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> list[Json]:
    """By what the checkpoint table knows the driver's version. They are variables, as `_table_made`."""
    named = {"SLUICE_SPEC_HASH": driver.spec_hash, "SLUICE_IMAGE": wanted.spec.pipeline.image or settings.image}
    return [{"name": name, "value": value} for name, value in named.items() if value]


def _accepted(batch: str | None) -> Json:
    """Left out unless set: older drivers refuse an unknown setting. The driver refuses a value that is not a number, and names its key."""
    if batch is None:
        return {}
    return {"acceptLossOfBatch": int(batch) if batch.isascii() and batch.isdecimal() else batch}


def _labelled(resource: Resource, driver: DriverStatus) -> dict[str, str]:
    """With the driver's attempt, for a standby has executors of its own: `status.selector` leaves them out."""
    named = labels(resource, "executor") | {ATTEMPT: str(driver.attempt)}
    return {f"spark.kubernetes.executor.label.{key}": value for key, value in named.items() if value}


def executor_template(resource: Resource, wanted: DesiredSpec, settings: Settings) -> Json:
    """The template of executor pods. Spark fills in image, command, ports and sizes, and overwrites some fields (`spark_settings`)."""
    container = {"name": "executor", "securityContext": dict(CONTAINER_SECURITY), "volumeMounts": list(SCRATCH_MOUNTS)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": labels(resource, "executor"), "annotations": dict(ARGO)},
        "spec": {
            **pod_spec(executor_account(wanted.spec, settings), wanted, container),
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": grace_seconds(wanted.spec),
            "volumes": list(SCRATCH_VOLUMES),
        },
    }
    return _with_others(lay_under(wanted.spec.executor_template, pod, "executor"), other_resources(wanted.spec.executor))


def _with_others(pod: Json, others: dict[str, dict[str, str | int]]) -> Json:
    """The template with the resources that Spark takes from nowhere else, under those that it names itself."""
    if not others:
        return pod
    containers = [{**each, "resources": _under(each, others)} if each["name"] == "executor" else each for each in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def _under(container: Json, others: dict[str, dict[str, str | int]]) -> Json:
    theirs = part(container, "resources")
    return {**theirs, **{kind: {**given, **part(theirs, kind)} for kind, given in others.items()}}


def executor_sample(resource: Resource, wanted: DesiredSpec, settings: Settings) -> Json:
    """A pod as Spark will create it, for a dry run. Without it only the driver would learn of an error in the user's template.

    It has the sizes that Spark will give it: a quota or a limit range of the namespace may ask for them.
    """
    pod = executor_template(resource, wanted, settings)
    spark = spark_settings(resource.app(1), resource.namespace, wanted.spec, settings)
    meta = {**pod["metadata"], "namespace": resource.namespace, "name": f"{resource.name}-executor-check", "ownerReferences": [owner(resource)]}
    own = [container for container in pod["spec"]["containers"] if container["name"] == "executor"]
    others = [container for container in pod["spec"]["containers"] if container["name"] != "executor"]
    image = {"image": wanted.spec.pipeline.image or settings.image}
    sized = [{**container, **image, "resources": _sized(container, executor_resources(spark))} for container in own]
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "containers": [*sized, *others]}}


def _sized(container: Json, sizes: dict[str, dict[str, str]]) -> Json:
    theirs = part(container, "resources")
    return {**theirs, **{kind: {**part(theirs, kind), **given} for kind, given in sizes.items()}}


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _file(path: str, annotation: str) -> Json:
    return {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}


def pool_pod(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings, clusters: tuple[str, ...] = ()) -> Json:
    """The pod that `driver` (from the status of a pool) names. It has no seats yet."""
    named = {"SLUICE_CLUSTER": " ".join(clusters), "SLUICE_IMAGE": wanted.spec.pipeline.image or settings.image}
    env = [{"name": name, "value": value} for name, value in named.items() if value]
    arguments = ["pool", "--config", "/etc/sluice/config.json"]
    return spark_pod(resource, wanted, driver, settings, PodProgram("pool", arguments, pool_config(resource, wanted, driver, settings), env))


def pool_config(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The pool's configuration, format 1."""
    return {
        "format": 1,
        "name": resource.name,
        "slotShare": pools.parse(wanted.raw).slot_share,
        "drainTimeoutSeconds": wanted.spec.drain_timeout_seconds,
        "executors": wanted.spec.replicas,
        "sparkConf": spark_conf(resource, wanted, driver, settings),
        **({"metrics": {"port": settings.driver_metrics}} if settings.driver_metrics else {}),
    }


def seat_config(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The configuration of a driver without what belongs to the pool."""
    return {key: value for key, value in driver_config(resource, wanted, driver, settings).items() if key not in OF_POOL}
