"""The migration Job, and the migrator's command line in it. Pure; the contract is docs/interfaces.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.apply.gated_job import Work, command, gated_job
from sluice_operator.apply.spark_settings import idle_account
from sluice_operator.resource.changes import DesiredSpec, table_name

if TYPE_CHECKING:
    from sluice_operator.apply.pod_parts import Json
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
    """The Job of one try."""
    work = Work(
        name=migration.job,
        account=idle_account(wanted.spec, settings),
        spec_hash=migration.spec_hash,
        label={"sluice.dev/migration": migration.hash},
        arguments=migration_arguments(resource, wanted),
    )
    return gated_job(resource, wanted, work, settings)


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
    return command("migrate", options, repeated)
