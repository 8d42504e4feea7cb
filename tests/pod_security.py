"""What Kubernetes' Pod Security Standards forbid, as data: a pod that breaks each control of the levels baseline and restricted, for Linux, in 1.34.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/ (kubernetes/website,
content/en/docs/concepts/security/pod-security-standards.md). A real API server refuses each of these pods, and takes them without the breach:
tests/operator/helm/test_pod_security_admission.py.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Path = tuple[str, ...]

BASELINE, RESTRICTED = "baseline", "restricted"
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True)
class Breach:
    """One field with a value that its level forbids.

    Attributes:
        path: `[*]` is an element of a list.
        value: None stands for a field that is not there.
        beside: what the API server wants beside the field, to take it for a pod.
    """

    level: str
    control: str
    path: Path
    value: Any
    beside: Json = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.level}, {self.control}: {'.'.join(self.path)}={self.value!r}"

    def into(self, body: Json) -> Json:
        pod = copy.deepcopy(body)
        _put(pod, self.path, self.value, self.beside)
        return pod


def _put(where: Any, path: Path, value: Any, beside: Json) -> None:
    head, rest = path[0], path[1:]
    if not rest:
        where.update(beside)
        where.pop(head, None)
        if value is not None:
            where[head] = value
    elif rest[0] == "[*]":
        items = where.setdefault(head, [])
        if head not in CONTAINERS or not items:
            items.append({})
        if rest[1:]:
            _put(items[-1], rest[1:], value, beside)
        else:
            items[-1].update(value)
    else:
        _put(where.setdefault(head, {}), rest, value, beside)
        if not where[head]:  # a profile without a type is none
            del where[head]


def _each(text: str, kinds: tuple[str, ...] = CONTAINERS) -> tuple[Path, ...]:
    return tuple(("spec", kind, "[*]", *text.split(".")) for kind in kinds)


def _pod(*texts: str) -> tuple[Path, ...]:
    return tuple(("spec", *text.split(".")) for text in texts)


def _all(text: str) -> tuple[Path, ...]:
    return (*_pod(text), *_each(text))


def _hosts() -> tuple[Path, ...]:
    handlers = [*(f"{probe}Probe" for probe in ("liveness", "readiness", "startup")), "lifecycle.postStart", "lifecycle.preStop"]
    return tuple(path for handler in handlers for way in ("httpGet", "tcpSocket") for path in _each(f"{handler}.{way}.host", CONTAINERS[:2]))


CONTEXT = "securityContext"
APPARMOR = ("metadata", "annotations", "container.apparmor.security.beta.kubernetes.io/driver")
NFS = {"name": "broken", "nfs": {"server": "s", "path": "/"}}
ROWS: tuple[tuple[str, str, tuple[Path, ...], tuple[Any, ...], Json], ...] = (
    (BASELINE, "HostProcess", _all(f"{CONTEXT}.windowsOptions.hostProcess"), (True,), {}),
    (BASELINE, "Host Namespaces", _pod("hostNetwork", "hostPID", "hostIPC"), (True,), {}),
    (BASELINE, "Privileged Containers", _each(f"{CONTEXT}.privileged"), (True,), {}),
    (BASELINE, "Capabilities", _each(f"{CONTEXT}.capabilities.add"), (["NET_ADMIN"], ["CHOWN", "NET_RAW"]), {}),
    (BASELINE, "HostPath Volumes", _pod("volumes.[*].hostPath"), ({"path": "/"},), {"name": "broken"}),
    (BASELINE, "Host Ports", _each("ports.[*].hostPort"), (80,), {"containerPort": 80}),
    (BASELINE, "Host Probes / Lifecycle Hooks", _hosts(), ("10.0.0.1",), {"port": 80}),
    (BASELINE, "AppArmor", _all(f"{CONTEXT}.appArmorProfile.type"), ("Unconfined",), {}),
    (BASELINE, "AppArmor", (APPARMOR,), ("unconfined",), {}),
    (BASELINE, "SELinux", _all(f"{CONTEXT}.seLinuxOptions.type"), ("spc_t",), {}),
    (BASELINE, "SELinux", (*_all(f"{CONTEXT}.seLinuxOptions.user"), *_all(f"{CONTEXT}.seLinuxOptions.role")), ("sysadm",), {}),
    (BASELINE, "/proc Mount Type", _each(f"{CONTEXT}.procMount"), ("Unmasked",), {}),
    (BASELINE, "Seccomp", _all(f"{CONTEXT}.seccompProfile.type"), ("Unconfined",), {}),
    (BASELINE, "Sysctls", _pod(f"{CONTEXT}.sysctls.[*].name"), ("kernel.msgmax",), {"value": "1"}),
    (RESTRICTED, "Volume Types", _pod("volumes.[*]"), (NFS,), {}),
    (RESTRICTED, "Privilege Escalation", _each(f"{CONTEXT}.allowPrivilegeEscalation"), (True, None), {}),
    (RESTRICTED, "Running as Non-root", _all(f"{CONTEXT}.runAsNonRoot"), (False,), {}),
    (RESTRICTED, "Running as Non-root", _pod(f"{CONTEXT}.runAsNonRoot"), (None,), {}),
    (RESTRICTED, "Running as Non-root user", _all(f"{CONTEXT}.runAsUser"), (0,), {}),
    (RESTRICTED, "Seccomp", _all(f"{CONTEXT}.seccompProfile.type"), ("Unconfined",), {}),
    (RESTRICTED, "Seccomp", _pod(f"{CONTEXT}.seccompProfile.type"), (None,), {}),
    (RESTRICTED, "Capabilities", _each(f"{CONTEXT}.capabilities.drop"), (["NET_RAW"], None), {}),
    (RESTRICTED, "Capabilities", _each(f"{CONTEXT}.capabilities.add"), (["CHOWN"],), {}),
)


def breaches(level: str) -> Iterator[Breach]:
    """Each field and value of the level's own controls."""
    for own, control, paths, values, beside in ROWS:
        yield from (Breach(level, control, path, value, beside) for path in paths for value in values if own == level)
