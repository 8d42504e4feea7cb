"""What the pods that the operator makes have in common: labels, owner, security, scratch volumes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.names import ARGO
from sluice_operator.observe.parse import CONSUMER, POOL, ROLE
from sluice_operator.resource.pod_template import SCRATCH

if TYPE_CHECKING:
    from sluice_operator.resource.changes import DesiredSpec
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource

Json = dict[str, Any]

POD_SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
SCRATCH_MOUNTS = [{"name": name, "mountPath": path} for name, path in SCRATCH.items()]
SCRATCH_VOLUMES = [{"name": name, "emptyDir": {}} for name in SCRATCH]
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_ENV = {"name": "SLUICE_TERMINATION_LOG", "value": TERMINATION_LOG}


def labels(resource: Resource, role: str) -> dict[str, str]:
    """What every pod and Job of ours carries; nothing of the resource's own labels is handed down."""
    whose = {CONSUMER: resource.name} if resource.kind == CONSUMER_KIND else {CONSUMER: "", POOL: resource.name}  # the watches ask for CONSUMER
    return {"app.kubernetes.io/managed-by": "sluice", **whose, ROLE: role}


def owner(resource: Resource) -> Json:
    """The resource as controller."""
    ref = {"apiVersion": "sluice.dev/v1alpha1", "kind": resource.kind, "name": resource.name, "uid": resource.uid}
    return {**ref, "controller": True, "blockOwnerDeletion": True}


def owner_env(resource: Resource, clusters: tuple[str, ...]) -> list[Json]:
    """Whose the checkpoint table is to be. They are variables: older programs ignore one, and refuse an unknown setting."""
    named = {"SLUICE_OWNER": f"{resource.namespace}/{resource.name}", "SLUICE_CLUSTER": " ".join(clusters)}
    return [{"name": name, "value": value} for name, value in named.items() if value]


def metadata(resource: Resource, name: str, role: str, extra: dict[str, str], notes: dict[str, str]) -> Json:
    """Of an object that is ours."""
    return {
        "name": name,
        "namespace": resource.namespace,
        "labels": labels(resource, role) | extra,
        "annotations": notes | ARGO,
        "ownerReferences": [owner(resource)],
    }


def container_part(name: str, wanted: DesiredSpec, settings: Settings) -> Json:
    """What the containers of driver and migration have in common."""
    pipeline = wanted.spec.pipeline
    return {
        "name": name,
        "image": pipeline.image or settings.image,
        **({"imagePullPolicy": pipeline.image_pull_policy} if pipeline.image_pull_policy else {}),
        "securityContext": dict(CONTAINER_SECURITY),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def pod_spec(account: str, wanted: DesiredSpec, container: Json) -> Json:
    """What all pods have in common."""
    secrets = [{"name": name} for name in wanted.spec.pipeline.image_pull_secrets]
    return {
        "serviceAccountName": account,
        "restartPolicy": "Never",
        "securityContext": dict(POD_SECURITY),
        **({"imagePullSecrets": secrets} if secrets else {}),
        "containers": [container],
    }
