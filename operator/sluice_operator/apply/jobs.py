"""Jobs before whose end no driver starts: of a migration, or of a move of positions. Pure; the contract is docs/interfaces.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice_operator.apply.pod_parts import (
    SCRATCH_MOUNTS,
    SCRATCH_VOLUMES,
    TERMINATION_ENV,
    Json,
    container_part,
    labels,
    metadata,
    owner_env,
    pod_spec,
)
from sluice_operator.apply.spark_settings import idle_account
from sluice_operator.names import ARGO
from sluice_operator.observe.parse import CONTAINERS, SPEC_HASH
from sluice_operator.resource.changes import DesiredSpec, table_name
from sluice_operator.resource.pod_template import lay_under

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource
    from sluice_operator.state.status import MigrationStatus, PositionStatus

ROLE = "migration"
CONTAINER = CONTAINERS[ROLE]
FORMATS = {
    "Auto": "auto",
    "KCL": "kcl",
    "NiFi": "nifi",
    "VmwareGoKcl": "vmware-go-kcl",
    "Kinsumer": "kinsumer",
    "Sluice": "sluice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What one Job does. `label` names the kind of Job, with the hash of what was asked for. The account gets no API token."""

    name: str
    account: str
    spec_hash: str
    label: dict[str, str]
    arguments: list[str]
    env: list[Json] = field(default_factory=list)


def migration_job(resource: Resource, wanted: DesiredSpec, migration: MigrationStatus, settings: Settings) -> Json:
    """The Job of one try."""
    work = _Work(
        name=migration.job,
        account=idle_account(wanted.spec, settings),
        spec_hash=migration.spec_hash,
        label={"sluice.dev/migration": migration.hash},
        arguments=migration_arguments(resource, wanted),
    )
    return _gated_job(resource, wanted, work, settings)


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
        "--target": table_name(resource.namespace, resource.name, spec),
        "--format": FORMATS[source.format],
        "--unstarted": "now" if source.unstarted == "Now" else "trim-horizon",
        "--quiet-seconds": source.quiet_seconds,
        "--timestamp": source.timestamp,
        **spec.stream.options,
        "--kms-key": spec.checkpoints.kms_key_arn,
    }
    repeated = [
        *(("--ignore-attribute", name) for name in source.ignore_attributes),
        *(("--ignore-row", key) for key in source.ignore_rows),
        *(("--place", place) for place in source.places),
        *(("--tag", f"{name}={value}") for name, value in sorted(spec.checkpoints.tags.items())),
    ]
    return _command("migrate", options, repeated)


def reset_job(resource: Resource, wanted: DesiredSpec, position: PositionStatus, settings: Settings, clusters: tuple[str, ...] = ()) -> Json:
    """The Job of one try. `clusters`: by what this cluster is known.

    It takes the lease and writes what only drivers write, so it has the driver's account: a policy for executors does not allow that.
    """
    work = _Work(
        name=position.job,
        account=wanted.spec.service_account_name,
        spec_hash=position.spec_hash,
        label={"sluice.dev/position": position.hash},
        arguments=reset_arguments(resource, wanted),
        env=owner_env(resource, clusters),
    )
    return _gated_job(resource, wanted, work, settings)


def reset_arguments(resource: Resource, wanted: DesiredSpec) -> list[str]:
    """The command line of `sluice reset`.

    Raises:
        ValueError: there is no position.
    """
    spec, position = wanted.spec, wanted.spec.position
    if position is None:
        raise ValueError("no position, so nothing is moved")
    options = {
        "--table": table_name(resource.namespace, resource.name, spec),
        **spec.stream.options,
        "--id": position.id,
        **position.target,
        "--give-up-batch": position.give_up_batch,
        "--lease-seconds": spec.lease_duration_seconds,
    }
    shards = [("--shard", shard) for shard in position.shards]
    return _command("reset", options, shards, *(["--accept-expired"] if position.accept_expired else []), "--yes")


def pod_of(job: Json) -> Json:
    """A pod as the Job would make it, for a dry run by the operator. The Job's owner is its owner: no Job exists yet."""
    template, meta = job["spec"]["template"], job["metadata"]
    head = {**template["metadata"], **{key: meta[key] for key in ("name", "namespace", "ownerReferences")}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": template["spec"]}


def _command(name: str, options: Mapping[str, object], repeated: Iterable[tuple[str, str]] = (), *switches: str) -> list[str]:
    """The words of a command of `sluice_checkpoints`. An option that is None is left out; `repeated` are options with a value that may come again."""
    given = [(option, str(value)) for option, value in options.items() if value is not None]
    return ["python", "-m", "sluice_checkpoints", name, *(word for pair in (*given, *repeated) for word in pair), *switches, "--json"]


def _gated_job(resource: Resource, wanted: DesiredSpec, work: _Work, settings: Settings) -> Json:
    """The Job of one try: one pod, once, but for pods that the cluster took away."""
    spec = wanted.spec
    container = {
        **container_part(CONTAINER, wanted, settings),
        "args": [_literal(word) for word in work.arguments],
        "env": [TERMINATION_ENV, *work.env],
        "resources": spec.driver.resources.document(),
        "volumeMounts": list(SCRATCH_MOUNTS),
    }
    base = pod_spec(work.account, wanted, container)
    pod = {
        "metadata": {"labels": labels(resource, ROLE) | work.label, "annotations": dict(ARGO)},
        "spec": {**base, "automountServiceAccountToken": False, "volumes": list(SCRATCH_VOLUMES)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(resource, work.name, ROLE, work.label, {SPEC_HASH: work.spec_hash}),
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": lay_under(spec.driver_template, pod, CONTAINER),
        },
    }


def _literal(argument: str) -> str:
    """An argument that the kubelet hands over as it is: it replaces `$(NAME)` by a variable of the container, and `$$` by `$`."""
    return argument.replace("$", "$$")
