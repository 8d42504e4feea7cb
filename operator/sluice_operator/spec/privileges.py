"""What in a pod template exceeds a tenant's rights: access to the node, root, rights of others. Pure.

The list is that of Kubernetes' Pod Security Standards, as far as a template can set it. What a pod must have is in `manifests`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluice_operator.untrusted.values import objects, part

Json = dict[str, Any]

HOST = ("hostPID", "hostNetwork", "hostIPC")
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
HARMLESS = {"NET_BIND_SERVICE"}  # the one capability that the level restricted lets a container add
SYSTEM = "system-"  # priority classes of the cluster's own pods


def privilege_problem(template: Json) -> str | None:
    """The first privilege that the template asks for, naming the place in it; None if it asks for none."""
    spec = template.get("spec")
    return next(_problems(spec), None) if isinstance(spec, dict) else None


def automount_problem(template: Json) -> str | None:
    """Why the template is refused if it sets the API token of a pod, or None. The operator decides: only a driver needs one."""
    spec = template.get("spec")
    asked = isinstance(spec, dict) and "automountServiceAccountToken" in spec
    return "spec.automountServiceAccountToken: is set by the operator" if asked else None


def _problems(spec: Json) -> Iterator[str]:
    yield from (f"spec.{name}: shares what belongs to the node" for name in HOST if spec.get(name))
    if spec.get("nodeName"):
        yield "spec.nodeName: passes the scheduler by; use nodeSelector or affinity"
    if str(spec.get("priorityClassName") or "").startswith(SYSTEM):
        yield f"spec.priorityClassName: classes that begin with {SYSTEM} are for the cluster's own pods"
    for volume in objects(spec, "volumes"):
        if "hostPath" in volume:
            yield f"spec.volumes.{volume.get('name')}: hostPath mounts a folder of the node"
    yield from (f"spec.{why}" for why in _security(spec))
    for kind in CONTAINERS:
        for container in objects(spec, kind):
            yield from (f"spec.{kind}.{container.get('name')}.{why}" for why in (*_security(container), *_ports(container)))


def _security(where: Json) -> Iterator[str]:
    asked = where.get("securityContext")
    if not isinstance(asked, dict):
        return
    wrong = {
        "privileged": bool(asked.get("privileged")),
        "allowPrivilegeEscalation": bool(asked.get("allowPrivilegeEscalation")),
        "runAsUser": asked.get("runAsUser") == 0,
        "runAsNonRoot": asked.get("runAsNonRoot") is False,
        "procMount": asked.get("procMount") not in (None, "Default"),
        "seccompProfile": part(asked, "seccompProfile").get("type") == "Unconfined",
        "windowsOptions.hostProcess": bool(part(asked, "windowsOptions").get("hostProcess")),
    }
    yield from (f"securityContext.{name}: {asked.get(name, True)} is more than a pipeline may have" for name, is_wrong in wrong.items() if is_wrong)
    added = part(asked, "capabilities").get("add")
    if more := sorted({str(name) for name in added} - HARMLESS) if isinstance(added, list) else []:
        yield f"securityContext.capabilities.add: {', '.join(more)} is more than a pipeline may have"


def _ports(container: Json) -> Iterator[str]:
    yield from (f"ports.hostPort: {port['hostPort']} is a port of the node" for port in objects(container, "ports") if port.get("hostPort"))
