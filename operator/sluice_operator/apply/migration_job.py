"""The migration Job, and the migrator's command line in it. Pure; the contract is docs/interfaces.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.apply.pod_parts import SCRATCH_MOUNTS, SCRATCH_VOLUMES, TERMINATION_ENV, Json, container_part, labels, metadata, pod_spec
from sluice_operator.apply.spark_settings import idle_account
from sluice_operator.names import ARGO
from sluice_operator.observe.parse import SPEC_HASH
from sluice_operator.resource.changes import DesiredSpec, table_name
from sluice_operator.resource.pod_template import lay_under

if TYPE_CHECKING:
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource
    from sluice_operator.state.status import MigrationStatus

FORMATS = {
    "Auto": "auto",
    "KCL": "kcl",
    "NiFi": "nifi",
    "VmwareGoKcl": "vmware-go-kcl",
    "Kinsumer": "kinsumer",
    "Sluice": "sluice",
}


def migration_job(resource: Resource, wanted: DesiredSpec, migration: MigrationStatus, settings: Settings) -> Json:
    """The Job of one try: one pod, once, but for pods that the cluster took away."""
    spec = wanted.spec
    extra = {"sluice.dev/migration": migration.hash}
    container = {
        **container_part("migrate", wanted, settings),
        "args": [_literal(word) for word in migration_arguments(resource, wanted)],
        "env": [TERMINATION_ENV],
        "resources": spec.driver.resources.document(),
        "volumeMounts": list(SCRATCH_MOUNTS),
    }
    base = pod_spec(idle_account(spec, settings), wanted, container)
    pod = {
        "metadata": {"labels": labels(resource, "migration") | extra, "annotations": dict(ARGO)},
        "spec": {**base, "automountServiceAccountToken": False, "volumes": list(SCRATCH_VOLUMES)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(resource, migration.job, "migration", extra, {SPEC_HASH: migration.spec_hash}),
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": lay_under(spec.driver_template, pod, "migrate"),
        },
    }


def pod_of(job: Json) -> Json:
    """A pod as the Job would make it, for a dry run by the operator. The Job's owner is its owner: no Job exists yet."""
    template, meta = job["spec"]["template"], job["metadata"]
    head = {**template["metadata"], **{key: meta[key] for key in ("name", "namespace", "ownerReferences")}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": template["spec"]}


def _literal(argument: str) -> str:
    """An argument that the kubelet hands over as it is: it replaces `$(NAME)` by a variable of the container, and `$$` by `$`."""
    return argument.replace("$", "$$")


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
    given += [["--ignore-attribute", name] for name in source.ignore_attributes] + [["--place", place] for place in source.places]
    return ["python", "-m", "sluice_checkpoints", "migrate", *(word for pair in given for word in pair), "--json"]
