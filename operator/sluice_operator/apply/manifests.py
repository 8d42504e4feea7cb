"""The objects that the operator creates: driver pod, executor template, migration Job. Pure; the contract is docs/interfaces.md.

The driver's configuration is in annotations of its pod, which the downward API mounts as files. So there is no second object to
create, lose or leak.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sluice_operator.apply.spark_settings import executor_account, grace_seconds, idle_account, spark_settings
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.parse import ATTEMPT, CONSUMER, ROLE, SPEC_HASH, TARGET
from sluice_operator.spec.changes import DesiredSpec, table_name
from sluice_operator.spec.pod_template import SCRATCH, lay_under

if TYPE_CHECKING:
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource
    from sluice_operator.state.status import DriverStatus, MigrationStatus

Json = dict[str, Any]

ARGO = {"argocd.argoproj.io/ignore-restart-policy": "true"}
POD_SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
SCRATCH_MOUNTS = [{"name": name, "mountPath": path} for name, path in SCRATCH.items()]
SCRATCH_VOLUMES = [{"name": name, "emptyDir": {}} for name in SCRATCH]
FILES = {"config.json": "sluice.dev/config", "executor.yaml": "sluice.dev/executor-template"}
FIELDS = {
    "SLUICE_POD_NAME": "metadata.name",
    "SLUICE_POD_NAMESPACE": "metadata.namespace",
    "SLUICE_POD_UID": "metadata.uid",
    "SLUICE_POD_IP": "status.podIP",
}
TERMINATION_LOG = "/dev/termination-log"


def driver_pod(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The pod that `driver` (from the status) names."""
    spec = wanted.spec
    config = driver_config(resource, wanted, driver, settings)
    notes = {
        "sluice.dev/config": json.dumps(config, sort_keys=True),
        "sluice.dev/executor-template": json.dumps(executor_template(resource, wanted, settings), sort_keys=True),
        TARGET: str(spec.replicas),
        SPEC_HASH: driver.spec_hash or "",
    }
    container = {
        **_container("driver", wanted, settings),
        "args": ["python", "-m", "sluice_consumer", "--config", "/etc/sluice/config.json"],
        "env": [*(_field(name, path) for name, path in FIELDS.items()), _TERMINATION_ENV, *_table_made(driver)],
        "resources": spec.driver.resources.document(),
        "volumeMounts": [{"name": "sluice-config", "mountPath": "/etc/sluice", "readOnly": True}, *SCRATCH_MOUNTS],
        "ports": [{"name": "metrics", "containerPort": settings.driver_metrics}] if settings.driver_metrics else [],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(resource, driver.pod or "", "driver", {ATTEMPT: str(driver.attempt)}, notes),
        "spec": {
            **_pod_spec(spec.service_account_name, wanted, container),
            "automountServiceAccountToken": True,
            "terminationGracePeriodSeconds": grace_seconds(spec),
            "volumes": [{"name": "sluice-config", "downwardAPI": {"items": [_file(*item) for item in FILES.items()]}}, *SCRATCH_VOLUMES],
        },
    }
    return lay_under(spec.driver_template, pod, "driver")


def driver_config(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The driver's configuration, format 1."""
    spec = wanted.spec
    return {
        "format": 1,
        "name": resource.name,
        "stream": spec.stream.document(),
        "start": spec.start.document(),
        "checkpoints": {"table": table_name(resource.namespace, resource.name, spec)},
        "migrateFrom": {"table": spec.migrate_from.table} if spec.migrate_from else None,
        "pipeline": {"entrypoint": spec.pipeline.entrypoint, "args": spec.pipeline.args},
        "batch": spec.batch.document(),
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "drainTimeoutSeconds": spec.drain_timeout_seconds,
        "executors": spec.replicas,
        "force": driver.forced,
        "sparkConf": spark_settings(f"{resource.name}-{driver.attempt}", resource.namespace, wanted.spec, settings) | _labelled(resource),
        **({"onError": spec.on_error.document()} if spec.on_error else {}),  # left out unless set: older drivers refuse an unknown setting
        **_accepted(resource.accept_loss),
        **({"metrics": {"port": settings.driver_metrics}} if settings.driver_metrics else {}),
    }


def _table_made(driver: DriverStatus) -> list[Json]:
    """Tells a driver that there was a checkpoint table. It is a variable: older drivers ignore one, and refuse an unknown setting."""
    return [] if driver.generation is None else [{"name": "SLUICE_TABLE_MADE", "value": "true"}]


def _accepted(batch: str | None) -> Json:
    """Left out unless set: older drivers refuse an unknown setting. The driver refuses a value that is not a number, and names its key."""
    if batch is None:
        return {}
    return {"acceptLossOfBatch": int(batch) if batch.isascii() and batch.isdecimal() else batch}


def _labelled(resource: Resource) -> dict[str, str]:
    return {f"spark.kubernetes.executor.label.{key}": value for key, value in labels(resource, "executor").items()}


def executor_template(resource: Resource, wanted: DesiredSpec, settings: Settings) -> Json:
    """The template of executor pods. Spark fills in image, command, ports and sizes, and overwrites some fields (`spark_settings`)."""
    container = {"name": "executor", "securityContext": dict(CONTAINER_SECURITY), "volumeMounts": list(SCRATCH_MOUNTS)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": labels(resource, "executor"), "annotations": dict(ARGO)},
        "spec": {
            **_pod_spec(executor_account(wanted.spec, settings), wanted, container),
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": grace_seconds(wanted.spec),
            "volumes": list(SCRATCH_VOLUMES),
        },
    }
    return lay_under(wanted.spec.executor_template, pod, "executor")


def executor_sample(resource: Resource, wanted: DesiredSpec, settings: Settings) -> Json:
    """A pod as Spark will create it, for a dry run. Without it only the driver would learn of an error in the user's template."""
    pod = executor_template(resource, wanted, settings)
    meta = {**pod["metadata"], "namespace": resource.namespace, "name": f"{resource.name}-executor-check", "ownerReferences": [owner(resource)]}
    own = [one for one in pod["spec"]["containers"] if one["name"] == "executor"]
    others = [one for one in pod["spec"]["containers"] if one["name"] != "executor"]
    image = {"image": wanted.spec.pipeline.image or settings.image}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "containers": [*({**one, **image} for one in own), *others]}}


def migration_job(resource: Resource, wanted: DesiredSpec, migration: MigrationStatus, settings: Settings) -> Json:
    """The Job of one try: one pod, once, but for pods that the cluster took away."""
    spec = wanted.spec
    extra = {"sluice.dev/migration": migration.hash}
    container = {
        **_container("migrate", wanted, settings),
        "args": migration_arguments(resource, wanted),
        "env": [_TERMINATION_ENV],
        "resources": spec.driver.resources.document(),
        "volumeMounts": list(SCRATCH_MOUNTS),
    }
    base = _pod_spec(idle_account(spec, settings), wanted, container)
    pod = {
        "metadata": {"labels": labels(resource, "migration") | extra, "annotations": dict(ARGO)},
        "spec": {**base, "automountServiceAccountToken": False, "volumes": list(SCRATCH_VOLUMES)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(resource, migration.job, "migration", extra, {SPEC_HASH: migration.spec_hash}),
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": lay_under(spec.driver_template, pod, "migrate"),
        },
    }


def pod_of(job: Json) -> Json:
    """A pod as the Job would make it."""
    template, meta = job["spec"]["template"], job["metadata"]
    head = {**template["metadata"], "name": meta["name"], "namespace": meta["namespace"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": template["spec"]}


def migration_arguments(resource: Resource, wanted: DesiredSpec) -> list[str]:
    """The migrator's command line; spec.format `VmwareGoKcl` is `vmware-go-kcl` there.

    Raises:
        ValueError: there is no migrateFrom.
    """
    spec, source = wanted.spec, wanted.spec.migrate_from
    if source is None:
        raise ValueError("no migrateFrom, so no migration")
    options = {
        "--source": source.table,
        "--stream": spec.stream.name,
        "--target": table_name(resource.namespace, resource.name, spec),
        "--region": spec.stream.region,
        "--format": FORMATS[source.format],
        "--unstarted": "now" if source.unstarted == "Now" else "trim-horizon",
        "--quiet-seconds": source.quiet_seconds,
        "--timestamp": source.timestamp,
        "--kinesis-endpoint": spec.stream.kinesis_endpoint,
        "--dynamodb-endpoint": spec.stream.dynamodb_endpoint,
    }
    given = [[option, str(value)] for option, value in options.items() if value is not None]
    return ["python", "-m", "sluice_checkpoints", "migrate", *(word for pair in given for word in pair), "--json"]


FORMATS = {
    "Auto": "auto",
    "KCL": "kcl",
    "NiFi": "nifi",
    "VmwareGoKcl": "vmware-go-kcl",
    "Kinsumer": "kinsumer",
    "Sluice": "sluice",
}
_TERMINATION_ENV = {"name": "SLUICE_TERMINATION_LOG", "value": TERMINATION_LOG}


def labels(resource: Resource, role: str) -> dict[str, str]:
    """What every pod and Job of ours carries; nothing of the resource's own labels is handed down."""
    return {"app.kubernetes.io/managed-by": "sluice", CONSUMER: resource.name, ROLE: role}


def owner(resource: Resource) -> Json:
    """The resource as controller."""
    ref = {"apiVersion": "sluice.dev/v1alpha1", "kind": CONSUMER_KIND, "name": resource.name, "uid": resource.uid}
    return {**ref, "controller": True, "blockOwnerDeletion": True}


def _metadata(resource: Resource, name: str, role: str, extra: dict[str, str], notes: dict[str, str]) -> Json:
    return {
        "name": name,
        "namespace": resource.namespace,
        "labels": labels(resource, role) | extra,
        "annotations": notes | ARGO,
        "ownerReferences": [owner(resource)],
    }


def _container(name: str, wanted: DesiredSpec, settings: Settings) -> Json:
    pipeline = wanted.spec.pipeline
    return {
        "name": name,
        "image": pipeline.image or settings.image,
        **({"imagePullPolicy": pipeline.image_pull_policy} if pipeline.image_pull_policy else {}),
        "securityContext": dict(CONTAINER_SECURITY),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _pod_spec(account: str, wanted: DesiredSpec, container: Json) -> Json:
    secrets = [{"name": name} for name in wanted.spec.pipeline.image_pull_secrets]
    return {
        "serviceAccountName": account,
        "restartPolicy": "Never",
        "securityContext": dict(POD_SECURITY),
        **({"imagePullSecrets": secrets} if secrets else {}),
        "containers": [container],
    }


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _file(path: str, annotation: str) -> Json:
    return {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}
