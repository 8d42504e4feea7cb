"""The driver's own pod: where the operator's target is read and the driver's report is written.

Every patch carries the pod's uid, so that it can never touch a later pod of the same name (the API server answers 409).
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sluice_consumer.spark_conf import Pod

TARGET = "sluice.dev/executors"
REPORT = "sluice.dev/report"
REPORT_SECONDS = 5.0
ALIVE_SECONDS = 30.0  # a report that does not change is repeated; the operator calls one stale after 90 s
POLL_SECONDS = 2.0

log = logging.getLogger(__name__)


def from_environment(environment: Mapping[str, str] = os.environ) -> Pod | None:
    """The pod this process runs in, or None outside Kubernetes (no `SLUICE_POD_NAME`)."""
    if "SLUICE_POD_NAME" not in environment:
        return None
    name, namespace, ip, uid = (environment[f"SLUICE_POD_{key}"] for key in ("NAME", "NAMESPACE", "IP", "UID"))
    return Pod(name, namespace, ip, uid)


class Annotations(Protocol):
    """The annotations of one pod."""

    def read(self) -> Mapping[str, str]:
        """All of them."""
        ...

    def write(self, name: str, value: str) -> None:
        """Sets one."""
        ...


class PodAnnotations:
    """Over the Kubernetes API, with the pod's service account."""

    def __init__(self, pod: Pod) -> None:
        import kubernetes  # noqa: PLC0415 - 40 MB that only a pod needs

        kubernetes.config.load_incluster_config()
        self._api, self._pod = kubernetes.client.CoreV1Api(), pod

    def read(self) -> Mapping[str, str]:
        """All annotations."""
        pod = self._api.read_namespaced_pod(self._pod.name, self._pod.namespace, _request_timeout=10)
        return pod.metadata.annotations or {}

    def write(self, name: str, value: str) -> None:
        """Sets one, if the pod is still the one with our uid."""
        body = {"metadata": {"uid": self._pod.uid, "annotations": {name: value}}}
        self._api.patch_namespaced_pod(self._pod.name, self._pod.namespace, body, _request_timeout=10)


@dataclass
class Reporter:
    """Tells the operator how the driver is: on change, but never more often than every `REPORT_SECONDS` unless the phase changes."""

    annotations: Annotations | None
    number: int = 0
    clock: Callable[[], float] = time.monotonic
    _state: dict[str, Any] = field(default_factory=dict)
    _sent: dict[str, Any] = field(default_factory=dict)
    _sent_at: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self, **values: Any) -> None:
        """Changes some fields of the report, or none, and sends it if it is time; what was held back goes with it."""
        with self._lock:
            self._state |= values
            self._flush()

    def _flush(self) -> None:
        urgent = self._state.get("phase") != self._sent.get("phase")
        due = self.clock() - self._sent_at >= (ALIVE_SECONDS if self._state == self._sent else REPORT_SECONDS)
        if self.annotations is None or not (urgent or due):
            return
        try:
            self.annotations.write(REPORT, json.dumps({"number": self.number + 1, **self._state}))
        except Exception as error:  # noqa: BLE001 - a report is for people; nothing of the protocol may depend on it
            log.warning("the report could not be written: %s", error)
        else:
            self.number += 1
            self._sent = dict(self._state)
        self._sent_at = self.clock()


def wanted_executors(annotations: Annotations) -> int | None:
    """The operator's target, or None when it says nothing."""
    try:
        value = annotations.read().get(TARGET)
    except Exception as error:  # noqa: BLE001 - the next poll asks again
        log.warning("the executor target could not be read: %s", error)
        return None
    return int(value) if value is not None and value.isascii() and value.isdecimal() else None
