"""What in a pod template exceeds a tenant's rights: access to the node, root, rights of others. Pure.

The list has every control of the level baseline of Kubernetes' Pod Security Standards (1.34) that a template can set, and what the level restricted
forbids to ask for. What a pod must have is in `manifests`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from sluice_operator.untrusted.values import objects, part

Json = dict[str, Any]

HOST = ("hostPID", "hostNetwork", "hostIPC")
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"  # the annotation of before 1.30
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
}  # fmt: skip
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HARMLESS = {"NET_BIND_SERVICE"}  # the one capability that the level restricted lets a container add
SYSTEM = "system-"  # priority classes of the cluster's own pods


def privilege_problem(template: Json) -> str | None:
    """The first privilege that the template asks for, naming the field in it; None if it asks for none."""
    return next(itertools.chain(_annotations(template), _problems(part(template, "spec"))), None)


def automount_problem(template: Json) -> str | None:
    """Why the template is refused if it sets the API token of a pod, or None. The operator decides: only a driver needs one."""
    spec = template.get("spec")
    asked = isinstance(spec, dict) and "automountServiceAccountToken" in spec
    return "spec.automountServiceAccountToken: is set by the operator" if asked else None


def _annotations(template: Json) -> Iterator[str]:
    for key, value in part(template, "metadata", "annotations").items():
        if key.startswith(APPARMOR) and not str(value).startswith(("runtime/default", "localhost/")):
            yield f"metadata.annotations.{key}: {str(value)[:64]} is not allowed for a pipeline"


def _problems(spec: Json) -> Iterator[str]:
    yield from (f"spec.{name}: shares a namespace of the node, which is not allowed for a pipeline" for name in HOST if spec.get(name))
    if spec.get("nodeName"):
        yield "spec.nodeName: bypasses the scheduler; use nodeSelector or affinity"
    if str(spec.get("priorityClassName") or "").startswith(SYSTEM):
        yield f"spec.priorityClassName: classes that begin with {SYSTEM} are for the cluster's own pods"
    for volume in objects(spec, "volumes"):
        if "hostPath" in volume:
            yield f"spec.volumes.{volume.get('name')}: hostPath mounts a folder of the node"
    yield from (f"spec.{why}" for why in _security(spec))
    for kind in CONTAINERS:
        for container in objects(spec, kind):
            yield from (f"spec.{kind}.{container.get('name')}.{why}" for why in (*_security(container), *_ports(container), *_hosts(container)))


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
        "seLinuxOptions.type": part(asked, "seLinuxOptions").get("type", "") not in SELINUX,
        "seLinuxOptions.user": bool(part(asked, "seLinuxOptions").get("user")),
        "seLinuxOptions.role": bool(part(asked, "seLinuxOptions").get("role")),
        "appArmorProfile": part(asked, "appArmorProfile").get("type", "RuntimeDefault") not in ("RuntimeDefault", "Localhost"),
        "sysctls": any(str(item.get("name")) not in SYSCTLS for item in objects(asked, "sysctls")),
        "windowsOptions.hostProcess": bool(part(asked, "windowsOptions").get("hostProcess")),
    }
    yield from (f"securityContext.{name}: {asked.get(name, True)} is not allowed for a pipeline" for name, is_wrong in wrong.items() if is_wrong)
    added = part(asked, "capabilities").get("add")
    if more := sorted({str(name) for name in added} - HARMLESS) if isinstance(added, list) else []:
        yield f"securityContext.capabilities.add: {', '.join(more)} is not allowed for a pipeline"


def _hosts(container: Json) -> Iterator[str]:
    """A probe or a hook of another host than the pod: the kubelet would call it from the node."""
    handlers = [(name, part(container, name)) for name in PROBES]
    handlers += [(f"lifecycle.{name}", part(container, "lifecycle", name)) for name in ("postStart", "preStop")]
    for name, handler in handlers:
        for way in ("httpGet", "tcpSocket"):
            if part(handler, way).get("host"):
                yield f"{name}.{way}.host: a probe may only call its own pod"


def _ports(container: Json) -> Iterator[str]:
    yield from (f"ports.hostPort: {port['hostPort']} is a port of the node" for port in objects(container, "ports") if port.get("hostPort"))
