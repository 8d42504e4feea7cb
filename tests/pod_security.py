"""Kubernetes' Pod Security Standards as data: every control of the levels baseline and restricted, for Linux, as published for Kubernetes 1.34.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/ (kubernetes/website,
content/en/docs/concepts/security/pod-security-standards.md). Fields and values are those of the page's two tables. Two sysctls are in the code of
the admission plugin since 1.32, and not on the page (kubernetes/pod-security-admission, policy/check_sysctls.go). The table is held against that
plugin, in a real API server: tests/operator/helm/test_pod_security_admission.py.
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
EACH, EFFECTIVE, INCLUDES, ONE_OF = "each", "effective", "includes", "one of"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/*"


class Special:
    """A value that is none of JSON: nothing there, or whatever is not 0."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNSET, NON_ZERO = Special("undefined"), Special("non-zero")


@dataclass(frozen=True, kw_only=True)
class Control:
    """A row of a table.

    Attributes:
        fields: the restricted fields; `[*]` is each element of a list, and a key that ends with `/*` each key that begins so.
        allowed: the allowed values.
        forbidden: values that are not, each of which makes a pod that breaks this row alone.
        how: each value, or each element of one, is allowed; a container's value or else the pod's is (effective); a list includes one that is
            allowed; or an element has one of the keys that are.
        beside: what a field that is forbidden needs beside it, for the API server to take it for a pod.
    """

    level: str
    name: str
    fields: tuple[Path, ...]
    allowed: tuple[Any, ...]
    forbidden: tuple[Any, ...]
    how: str = EACH
    beside: Json = field(default_factory=dict)

    def broken(self, pod: Json) -> Iterator[str]:
        own = next(found(pod, self.fields[0]), UNSET) if self.how == EFFECTIVE else UNSET
        for path in self.fields:
            for value in found(pod, path):
                inherited = own if self.how == EFFECTIVE and value is UNSET else value
                if not self._allows(inherited) and not (self.how == EFFECTIVE and path == self.fields[0] and value is UNSET):
                    yield f"{self.name}: {'.'.join(path)}: {value!r}"

    def _allows(self, value: Any) -> bool:
        if self.how == INCLUDES:
            return isinstance(value, list) and any(_is(one, self.allowed) for one in value)
        if self.how == ONE_OF:
            return any(isinstance(value, dict) and value.get(key) is not None for key in self.allowed)
        return all(_is(one, self.allowed) for one in (value if isinstance(value, list) else [value]))


def _is(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(
        value is one
        or (one is NON_ZERO and type(value) is int and value != 0)
        or (type(value) is type(one) and (value == one or (isinstance(one, str) and one.endswith("/*") and value.startswith(one[:-1]))))
        for one in allowed
    )


def found(where: Any, path: Path) -> Iterator[Any]:
    """The values at a path; UNSET where there is none. A list that is not there has no elements."""
    if not path:
        yield UNSET if where is None else where
    elif path[0] == "[*]":
        for item in where if isinstance(where, list) else ():
            yield from found(item, path[1:])
    elif path[0].endswith("/*"):
        for key in where if isinstance(where, dict) else ():
            if key.startswith(path[0][:-1]):
                yield from found(where[key], path[1:])
    else:
        yield from found(where.get(path[0]) if isinstance(where, dict) else None, path[1:])


def _each(text: str, kinds: tuple[str, ...] = CONTAINERS) -> tuple[Path, ...]:
    return tuple(("spec", kind, "[*]", *text.split(".")) for kind in kinds)


def _all(text: str) -> tuple[Path, ...]:
    return (("spec", *text.split(".")), *_each(text))


def _hosts() -> tuple[Path, ...]:
    handlers = [*(f"{probe}Probe" for probe in ("liveness", "readiness", "startup")), "lifecycle.postStart", "lifecycle.preStop"]
    return tuple(path for handler in handlers for way in ("httpGet", "tcpSocket") for path in _each(f"{handler}.{way}.host", CONTAINERS[:2]))


OPTIONS = "securityContext.seLinuxOptions"
BASELINE_TABLE = (
    Control(
        level=BASELINE,
        name="HostProcess",
        fields=_all("securityContext.windowsOptions.hostProcess"),
        allowed=(UNSET, False),
        forbidden=(True,),
    ),
    Control(
        level=BASELINE,
        name="Host Namespaces",
        fields=(("spec", "hostNetwork"), ("spec", "hostPID"), ("spec", "hostIPC")),
        allowed=(UNSET, False),
        forbidden=(True,),
    ),
    Control(level=BASELINE, name="Privileged Containers", fields=_each("securityContext.privileged"), allowed=(UNSET, False), forbidden=(True,)),
    Control(
        level=BASELINE,
        name="Capabilities",
        fields=_each("securityContext.capabilities.add"),
        allowed=(
            UNSET, "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP",
            "SETUID", "SYS_CHROOT",
        ),
        forbidden=(["NET_ADMIN"], ["CHOWN", "NET_RAW"]),
    ),
    Control(
        level=BASELINE,
        name="HostPath Volumes",
        fields=(("spec", "volumes", "[*]", "hostPath"),),
        allowed=(UNSET,),
        forbidden=({"path": "/"},),
        beside={"name": "broken"},
    ),
    Control(
        level=BASELINE,
        name="Host Ports",
        fields=_each("ports.[*].hostPort"),
        allowed=(UNSET, 0),
        forbidden=(80,),
        beside={"containerPort": 80},
    ),
    Control(level=BASELINE, name="Host Probes / Lifecycle Hooks", fields=_hosts(), allowed=(UNSET, ""), forbidden=("10.0.0.1",), beside={"port": 80}),
    Control(
        level=BASELINE,
        name="AppArmor",
        fields=_all("securityContext.appArmorProfile.type"),
        allowed=(UNSET, "RuntimeDefault", "Localhost"),
        forbidden=("Unconfined",),
    ),
    Control(
        level=BASELINE,
        name="AppArmor",
        fields=(("metadata", "annotations", APPARMOR),),
        allowed=("runtime/default", "localhost/*"),
        forbidden=("unconfined",),
    ),
    Control(
        level=BASELINE,
        name="SELinux",
        fields=_all(f"{OPTIONS}.type"),
        allowed=(UNSET, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
        forbidden=("spc_t",),
    ),
    Control(
        level=BASELINE,
        name="SELinux",
        fields=(*_all(f"{OPTIONS}.user"), *_all(f"{OPTIONS}.role")),
        allowed=(UNSET, ""),
        forbidden=("sysadm",),
    ),
    Control(
        level=BASELINE,
        name="/proc Mount Type",
        fields=_each("securityContext.procMount"),
        allowed=(UNSET, "Default"),
        forbidden=("Unmasked",),
    ),
    Control(
        level=BASELINE,
        name="Seccomp",
        fields=_all("securityContext.seccompProfile.type"),
        allowed=(UNSET, "RuntimeDefault", "Localhost"),
        forbidden=("Unconfined",),
    ),
    Control(
        level=BASELINE,
        name="Sysctls",
        fields=(("spec", "securityContext", "sysctls", "[*]", "name"),),
        allowed=(
            "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_syncookies",
            "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
        ),
        forbidden=("kernel.msgmax",),
        beside={"value": "1"},
    ),
)  # fmt: skip
RESTRICTED_TABLE = (
    Control(
        level=RESTRICTED,
        name="Volume Types",
        fields=(("spec", "volumes", "[*]"),),
        allowed=("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"),
        forbidden=({"name": "broken", "nfs": {"server": "s", "path": "/"}},),
        how=ONE_OF,
    ),
    Control(
        level=RESTRICTED,
        name="Privilege Escalation",
        fields=_each("securityContext.allowPrivilegeEscalation"),
        allowed=(False,),
        forbidden=(True, UNSET),
    ),
    Control(
        level=RESTRICTED,
        name="Running as Non-root",
        fields=_all("securityContext.runAsNonRoot"),
        allowed=(True,),
        forbidden=(False, UNSET),
        how=EFFECTIVE,
    ),
    Control(
        level=RESTRICTED,
        name="Running as Non-root user",
        fields=_all("securityContext.runAsUser"),
        allowed=(UNSET, NON_ZERO),
        forbidden=(0,),
    ),
    Control(
        level=RESTRICTED,
        name="Seccomp",
        fields=_all("securityContext.seccompProfile.type"),
        allowed=("RuntimeDefault", "Localhost"),
        forbidden=("Unconfined", UNSET),
        how=EFFECTIVE,
    ),
    Control(
        level=RESTRICTED,
        name="Capabilities",
        fields=_each("securityContext.capabilities.drop"),
        allowed=("ALL",),
        forbidden=(["NET_RAW"], UNSET),
        how=INCLUDES,
    ),
    Control(
        level=RESTRICTED,
        name="Capabilities",
        fields=_each("securityContext.capabilities.add"),
        allowed=(UNSET, "NET_BIND_SERVICE"),
        forbidden=(["CHOWN"],),
    ),
)
TABLES = {BASELINE: BASELINE_TABLE, RESTRICTED: (*BASELINE_TABLE, *RESTRICTED_TABLE)}


def violations(pod: Json, level: str = RESTRICTED) -> list[str]:
    return [broken for control in TABLES[level] for broken in control.broken(pod)]


@dataclass(frozen=True)
class Breach:
    control: Control
    path: Path
    value: Any

    def __str__(self) -> str:
        return f"{self.control.level}, {self.control.name}: {'.'.join(self.path)}={self.value!r}"

    def into(self, body: Json) -> Json:
        pod = copy.deepcopy(body)
        if self.control.how == ONE_OF:
            pod["spec"].setdefault("volumes", []).append(self.value)
        else:
            _put(pod, self.path, self.value, self.control.beside)
        return pod


def breaches(level: str) -> list[Breach]:
    own = BASELINE_TABLE if level == BASELINE else RESTRICTED_TABLE
    return [
        Breach(control, path, value)
        for control in own
        for path in control.fields
        for value in control.forbidden
        if not (value is UNSET and control.how == EFFECTIVE and "[*]" in path)  # the pod's value holds for it
    ]


def _put(where: Any, path: Path, value: Any, beside: Json) -> None:
    head, rest = path[0], path[1:]
    if not rest:
        where.update(beside)
        where.pop(head, None)
        if value is not UNSET:
            where[head] = value
        if head.endswith("/*"):
            where[head.replace("*", "driver")] = where.pop(head)
    elif rest[0] == "[*]":
        items = where.setdefault(head, [])
        if head not in CONTAINERS or not items:
            items.append({})
        _put(items[-1], rest[1:], value, beside)
    else:
        _put(where.setdefault(head, {}), rest, value, beside)
        if not where[head]:  # a profile without a type is none
            del where[head]
