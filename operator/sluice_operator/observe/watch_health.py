"""Whether the watches are alive: what liveness and readiness report, and why.

A stuck watch looks like a watch in which nothing happens. So an audit lists a sample of each kind every 30 s: the watch has to
show soon what the list showed. A sample is enough, because a stuck watch shows nothing at all.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sluice_operator.cluster.operator_class import selector
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError, Rejected
from sluice_operator.election.candidate import uptime

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger("sluice")
AUDIT_EVERY = 30.0  # seconds
STUCK_AFTER = 90.0  # seconds in which a watch did not show what a list showed; a silent one is renewed after 70
LATE_AFTER = 15.0
UNHEARD_AFTER = 120.0  # seconds without an audit that worked
OURS = "app.kubernetes.io/managed-by=sluice,sluice.dev/consumer"
SAMPLES = {CONSUMER_KIND: selector(""), "Pod": f"{OURS},sluice.dev/role in (driver,pool)", "Job": OURS}  # drivers report, so their pods change


class Lister(Protocol):
    """What an audit needs of the API server."""

    def versions(self, kind: str, namespace: str, selector: str) -> dict[str, str]:
        """The resourceVersion by uid of some objects, live; every namespace if it is ''."""


@dataclass(frozen=True, slots=True)
class ShownObject:
    """What a watch showed last of one object, and when."""

    version: str
    at: float


@dataclass(frozen=True, slots=True)
class OverdueEvent:
    """An audit of this namespace listed an object at `since`, and the watch has not shown it."""

    namespace: str
    since: float


class Freshness:
    """What the watches have shown, and what they are late with. Fed on the event loop, audited on a thread. Of resources: those of the class."""

    def __init__(self, clock: Callable[[], float] = uptime, resource_class: str = "") -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._samples = SAMPLES | {CONSUMER_KIND: selector(resource_class)}
        self._shown: dict[str, dict[str, ShownObject]] = {kind: {} for kind in SAMPLES}
        self._owed: dict[str, dict[str, OverdueEvent]] = {kind: {} for kind in SAMPLES}
        self._audited: float | None = None

    def shown(self, kind: str, uid: str, version: str, *, gone: bool = False) -> None:
        """The watch showed this object."""
        with self._lock:
            self._owed[kind].pop(uid, None)
            if gone:
                self._shown[kind].pop(uid, None)
            else:
                self._shown[kind][uid] = ShownObject(version, self._clock())

    def audit(self, lister: Lister, namespaces: tuple[str, ...]) -> None:
        """List each kind in each namespace. A namespace that may not be listed is not audited: its watch has no rights either.

        Raises:
            ApiError: the API server did not answer; nothing is known.
        """
        for kind, sample in self._samples.items():
            for namespace in namespaces or ("",):
                began = self._clock()
                try:
                    self._compare(kind, namespace, lister.versions(kind, namespace, sample), began)
                except Rejected as error:
                    LOG.warning("%ss in namespace %s cannot be read: %s", kind, namespace or "*", error)
        self._audited = self._clock()

    def _compare(self, kind: str, namespace: str, live: dict[str, str], began: float) -> None:
        """An object that is not listed any more is not late: a watch that listed again does not show what was deleted before."""
        with self._lock:
            owed, shown = self._owed[kind], self._shown[kind]
            for uid in [uid for uid, item in owed.items() if item.namespace == namespace and uid not in live]:
                del owed[uid]
            for uid, version in live.items():
                last = shown.get(uid)
                if last is None or (last.version != version and last.at < began):
                    owed.setdefault(uid, OverdueEvent(namespace, began))

    def behind(self) -> dict[str, float]:
        """By kind, for how many seconds the watch has been late; 0 if it is not."""
        now = self._clock()
        with self._lock:
            return {kind: max((now - item.since for item in owed.values()), default=0.0) for kind, owed in self._owed.items()}

    def stuck(self) -> list[str]:
        """Kinds whose watch shows nothing any more. A restart of the process cures that."""
        return [kind for kind, seconds in self.behind().items() if seconds >= STUCK_AFTER]

    def cold(self) -> list[str]:
        """Why the cache may be outdated. A restart of the process need not cure that."""
        late = [f"{kind}s are seen late" for kind, seconds in self.behind().items() if seconds >= LATE_AFTER]
        answers = self._audited is not None and self._clock() - self._audited < UNHEARD_AFTER
        return late if answers else [*late, "the API server does not answer"]


def audited(freshness: Freshness, lister: Lister, namespaces: tuple[str, ...]) -> None:
    """One audit. Its errors are logged and do not end the audits: without them a stuck watch would not be found."""
    try:
        freshness.audit(lister, namespaces)
    except ApiError as error:
        LOG.warning("watches were not audited: %s", error)
    except Exception:
        LOG.exception("watches were not audited")
