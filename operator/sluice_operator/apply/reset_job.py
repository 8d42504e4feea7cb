"""The Job that moves positions, and its command line. Pure; the contract is docs/interfaces.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.apply.gated_job import Work, command, gated_job
from sluice_operator.apply.pod_parts import Json, owner_env
from sluice_operator.resource.changes import DesiredSpec, table_name

if TYPE_CHECKING:
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource
    from sluice_operator.state.status import PositionStatus


def reset_job(resource: Resource, wanted: DesiredSpec, position: PositionStatus, settings: Settings, clusters: tuple[str, ...] = ()) -> Json:
    """The Job of one try. `clusters`: by what this cluster is known.

    It takes the lease and writes what only drivers write, so it has the driver's account: a policy for executors does not allow that.
    """
    work = Work(
        name=position.job,
        account=wanted.spec.service_account_name,
        spec_hash=position.spec_hash,
        label={"sluice.dev/position": position.hash},
        arguments=reset_arguments(resource, wanted),
        env=owner_env(resource, clusters),
    )
    return gated_job(resource, wanted, work, settings)


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
    return command("reset", options, shards, *(["--accept-expired"] if position.accept_expired else []), "--yes")
