"""The driver's own pod: where the operator's target is read and the driver's report is written.

Every patch carries the pod's uid, so that it can never touch a later pod of the same name (the API server refuses it).

Its calls are two, by urllib3, which is loaded for AWS anyway. The official client does the same. To import it took 0.6 s of CPU in the supervisor,
again in the driver, and both stood before Spark's start (docs/performance.md, "A driver's start").
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import urllib3

from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.versions import SpecName
from sluice_consumer.driver_report import DriverReport
from sluice_consumer.spark.conf import PodAddress

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # of the pod; the kubelet renews the token, and the certificate of the authority
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
SECONDS = 10.0  # that the API server has for an answer
WORDS = 300  # of a refusal that is no Status
ReportChange = Callable[[DriverReport], DriverReport]
TARGET = "sluice.dev/executors"
REPORT = "sluice.dev/report"
TABLE_MADE = "SLUICE_TABLE_MADE"
SPEC_HASH, IMAGE = "SLUICE_SPEC_HASH", "SLUICE_IMAGE"
SPEC_CHARACTERS = 300  # of each: all versions are in one row
OWNER, CLUSTER = "SLUICE_OWNER", "SLUICE_CLUSTER"
REPORT_SECONDS = 5.0
ALIVE_SECONDS = 30.0  # a report that does not change is repeated; the operator calls one stale after 90 s
POLL_SECONDS = 2.0

log = logging.getLogger(__name__)


class PodCallRefused(Exception):
    """The API server refused a call, or answered something else than a pod."""


class PodAnnotations:
    """Over the Kubernetes API, with the pod's service account. A call is made once; the caller asks again in seconds anyway."""

    def __init__(self, pod: PodAddress, account: Path = ACCOUNT, environment: Mapping[str, str] = os.environ) -> None:
        """Opens nothing yet.

        Raises:
            KeyError: this is not a pod. OSError: it has no service account.
        """
        host, port = environment[HOST], environment[PORT]
        self._token, self._uid = account / "token", pod.uid
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        authority = str(account / "ca.crt")  # read for each connection
        self._connections = urllib3.PoolManager(ca_certs=authority, timeout=urllib3.Timeout(total=SECONDS), retries=False)

    def read(self) -> Mapping[str, str]:
        """All annotations.

        Raises:
            PodCallRefused, urllib3's HTTPError, OSError: there is no answer, or none of a pod.
        """
        return self._call("GET", b"").get("metadata", {}).get("annotations") or {}

    def write(self, annotations: Mapping[str, str | None]) -> None:
        """Sets these, and removes those that are None, if the pod is still the one with our uid. All of them, or none.

        Raises:
            PodCallRefused: it is not, or another refusal. HTTPError, OSError: there is no answer.
        """
        body = {"metadata": {"uid": self._uid, "annotations": dict(annotations)}}
        self._call("PATCH", json.dumps(body).encode(), {"Content-Type": "application/merge-patch+json"})

    def _call(self, method: str, body: bytes, more: Mapping[str, str] | None = None) -> dict[str, Any]:
        given = {"Authorization": f"Bearer {self._token.read_text().strip()}", "Accept": "application/json", **(more or {})}
        reply = self._connections.request(method, self._url, body=body or None, headers=given)
        answer = _object(reply.data)
        if reply.status >= 300 or answer.get("kind") != "Pod":
            raise PodCallRefused(f"{method} of the pod: {reply.status} {reply.reason}: {answer.get('message', '')}")
        return answer


def _object(data: bytes) -> dict[str, Any]:
    """The object of a reply; of any other reply, its beginning as a message."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(data)
        if isinstance(document, dict):
            return document
    return {"message": data[:WORDS].decode(errors="replace")}


def from_environment(environment: Mapping[str, str] = os.environ) -> PodAddress | None:
    """The pod this process runs in, or None outside Kubernetes (no `SLUICE_POD_NAME`)."""
    if "SLUICE_POD_NAME" not in environment:
        return None
    name, namespace, ip, uid = (environment[f"SLUICE_POD_{key}"] for key in ("NAME", "NAMESPACE", "IP", "UID"))
    return PodAddress(name, namespace, ip, uid)


def table_made(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the operator knows that a driver has worked on the checkpoint table. Outside Kubernetes: no."""
    return environment.get(TABLE_MADE) == "true"


def owner(name: str, environment: Mapping[str, str] = os.environ) -> Owner:
    """Whose driver this process is; `name` is the configuration's. Outside Kubernetes it is nobody's, unless the environment names an owner.

    A pool's pod names none, as it has several consumers: each is the KinesisConsumer `name` of the pod's namespace.
    """
    in_pod = "SLUICE_POD_NAME" in environment
    here = f"{environment['SLUICE_POD_NAMESPACE']}/{name}" if in_pod else ""
    return Owner(environment.get(OWNER) or here, tuple(environment.get(CLUSTER, "").split()), writes=in_pod)


def spec(environment: Mapping[str, str] = os.environ) -> SpecName:
    """The version of this driver's spec. Outside Kubernetes a person may say it."""
    named = (environment.get(name, "")[:SPEC_CHARACTERS] or None for name in (SPEC_HASH, IMAGE))
    return SpecName(*named)


class Annotations(Protocol):
    """The annotations of one pod."""

    def read(self) -> Mapping[str, str]:
        """All of them."""
        ...

    def write(self, annotations: Mapping[str, str | None]) -> None:
        """Sets these, and removes those that are None."""
        ...


@dataclass
class ReportDraft:
    """What is reported to the operator, and when: on change, but never more often than every `REPORT_SECONDS`. Pure.

    Three changes are reported at once, because readiness depends on them: another phase, the first executor, and no executor any more.

    Attributes:
        number: of the last report that was begun. One whose answer is lost may have arrived, so its number is not used again.
        state: the newest, None before there is one; what was held back goes with it.
    """

    number: int = 0
    state: DriverReport | None = None
    _begun: DriverReport | None = None
    _begun_at: float = float("-inf")
    _failed: bool = False

    def change(self, change: ReportChange) -> None:
        """The next state, from the last one or from a report that knows nothing."""
        self.state = change(self.state or DriverReport())

    def wait(self, now: float) -> float:
        """Seconds until it is to be written."""
        if self.state is None:
            return ALIVE_SECONDS
        same = self.state == self._begun and not self._failed
        urgent = (self._begun is None or self.state.readiness != self._begun.readiness) and not self._failed
        return 0.0 if urgent else max(0.0, self._begun_at + (ALIVE_SECONDS if same else REPORT_SECONDS) - now)

    def begin(self, now: float) -> str:
        """The text to write now."""
        self.number += 1
        self._begun, self._begun_at, self._failed = self.state or DriverReport(), now, False
        return self._begun.text(self.number)

    def fail(self) -> None:
        """The text may not have arrived: the same or a newer one is due in `REPORT_SECONDS`."""
        self._failed = True


class Reporter:
    """Writes the report from a thread of its own: an API server that does not answer holds up neither a batch nor a heartbeat."""

    def __init__(self, annotations: Annotations | None, number: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._annotations, self._report, self._clock = annotations, ReportDraft(number), clock
        self._changed, self._last, self._over = threading.Condition(), False, False
        if annotations is not None:
            threading.Thread(target=self._run, args=(annotations,), name="report", daemon=True).start()

    def update(self, change: ReportChange) -> None:
        """Changes the report. It is written soon, and never waited for."""
        with self._changed:
            self._report.change(change)
            self._changed.notify()

    def hand_over(self, change: ReportChange) -> int:
        """Changes the report, writes it one last time, and returns the number after which another process' reports continue."""
        with self._changed:
            self._report.change(change)
            self._last = True
            self._changed.notify()
            return self._report.number + 1

    def _run(self, annotations: Annotations) -> None:
        while (text := self._next()) is not None:
            try:
                annotations.write({REPORT: text})
            except Exception as error:  # noqa: BLE001 - a report is for people; nothing of the protocol may depend on it
                log.warning("the report could not be written: %s", error)
                with self._changed:
                    self._report.fail()

    def _next(self) -> str | None:
        """Waits until a report is due; None after the last one."""
        with self._changed:
            if self._over:
                return None
            while not self._last and (left := self._report.wait(self._clock())) > 0:
                self._changed.wait(left)
            self._over = self._last
            return self._report.begin(self._clock())


def wanted_executors(annotations: Annotations) -> int | None:
    """The operator's target, or None when it says nothing."""
    try:
        return target_in(annotations.read())
    except Exception as error:  # noqa: BLE001 - the next poll asks again
        log.warning("the executor target could not be read: %s", error)
        return None


def target_in(annotations: Mapping[str, str]) -> int | None:
    """The operator's target in the annotations of a pod."""
    value = annotations.get(TARGET)
    return int(value) if value is not None and value.isascii() and value.isdecimal() else None
