"""A Job before whose end no driver starts: of a migration, or of a move of positions. Pure; the contract is docs/interfaces.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice_operator.apply.pod_parts import SCRATCH_MOUNTS, SCRATCH_VOLUMES, TERMINATION_ENV, Json, container_part, labels, metadata, pod_spec
from sluice_operator.names import ARGO
from sluice_operator.observe.parse import CONTAINERS, SPEC_HASH
from sluice_operator.resource.pod_template import lay_under

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice_operator.resource.changes import DesiredSpec
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource

ROLE = "migration"
CONTAINER = CONTAINERS[ROLE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one Job does. `label` names the kind of Job, with the hash of what was asked for. The account gets no API token."""

    name: str
    account: str
    spec_hash: str
    label: dict[str, str]
    arguments: list[str]
    env: list[Json] = field(default_factory=list)


def command(name: str, options: Mapping[str, object], repeated: Iterable[tuple[str, str]] = (), *switches: str) -> list[str]:
    """The words of a command of `sluice_checkpoints`. An option that is None is left out; `repeated` are options with a value that may come again."""
    given = [(option, str(value)) for option, value in options.items() if value is not None]
    return ["python", "-m", "sluice_checkpoints", name, *(word for pair in (*given, *repeated) for word in pair), *switches, "--json"]


def gated_job(resource: Resource, wanted: DesiredSpec, work: Work, settings: Settings) -> Json:
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


def pod_of(job: Json) -> Json:
    """A pod as the Job would make it, for a dry run by the operator. The Job's owner is its owner: no Job exists yet."""
    template, meta = job["spec"]["template"], job["metadata"]
    head = {**template["metadata"], **{key: meta[key] for key in ("name", "namespace", "ownerReferences")}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": template["spec"]}


def _literal(argument: str) -> str:
    """An argument that the kubelet hands over as it is: it replaces `$(NAME)` by a variable of the container, and `$$` by `$`."""
    return argument.replace("$", "$$")
