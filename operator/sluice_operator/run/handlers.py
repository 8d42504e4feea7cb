"""kopf's handlers, and where the events of the watches go. They fill the cache and wake loops; nothing is decided here."""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import kopf

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.observe.parse import CONSUMER, ROLE
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.untrusted.values import part, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import Cache
    from sluice_operator.observe.watch_health import Freshness
    from sluice_operator.run.loops import Loops
    from sluice_operator.telemetry.metrics import OperatorMetrics

LOG = logging.getLogger("sluice")


class BackgroundService(Protocol):
    """Runs as long as the process does."""

    async def start(self) -> None:
        """Before the watches."""

    async def stop(self) -> None:
        """With the process."""


@dataclass(frozen=True, slots=True)
class EventSink:
    """Where watch events go. Of resources of another class only the names are kept: events of their pods and Jobs are ignored."""

    cache: Cache
    loops: Loops
    freshness: Freshness
    metrics: OperatorMetrics
    resource_class: str = ""
    strangers: set[ResourceKey] = field(default_factory=set)

    def shown(self, kind: str, event: WatchEvent) -> None:
        """The watch lives. Every event counts, whomever it is for: audits find objects by their labels alone."""
        meta = event.body["metadata"]
        self.freshness.shown(kind, meta["uid"], meta["resourceVersion"], gone=event.gone)

    def see(self, kind: str, event: WatchEvent) -> None:
        """Put the event into the cache, and wake the loop of the resource that it is about."""
        body, gone = event
        meta = body["metadata"]
        strange = self._strange(kind, body, gone=gone)
        self.shown(kind, WatchEvent(body, gone=gone or (strange and kind == CONSUMER_KIND)))
        if strange:
            return
        change = self.cache.see(kind, body, datetime.now(UTC).replace(microsecond=0), gone=gone)
        self.metrics.saw(kind, reported=change is not None and change.reported)
        labels = part(meta, "labels")
        if kind == "Pod" and labels.get(ROLE) == "executor":
            self.metrics.saw_executor(meta["uid"], ResourceKey(meta["namespace"], text(labels, CONSUMER) or ""), body, gone=gone)
        if change is not None:
            self.loops.wake(change.key, matters=change.matters)

    def _strange(self, kind: str, body: Json, *, gone: bool) -> bool:
        """Whether it belongs to another operator. A resource whose class changed leaves the cache, and its loop ends.

        After a list, the deletion of a resource may come after the creation of one of the same name.
        """
        meta = body["metadata"]
        if kind != CONSUMER_KIND:
            return ResourceKey(meta["namespace"], text(part(meta, "labels"), CONSUMER) or "") in self.strangers
        key = ResourceKey(meta["namespace"], meta["name"])
        if belongs(body, self.resource_class):
            if not gone:
                self.strangers.discard(key)
            return False
        present = self.cache.body(key)
        if gone and present is not None and present["metadata"]["uid"] != meta["uid"]:
            return True
        if present is not None:
            LOG.info("%s/%s belongs to another class now", *key)
            self.loops.wake(key)
        self.cache.forget(key)
        if gone:
            self.strangers.discard(key)
        else:
            self.strangers.add(key)
        return True


class LoginPauses:
    """Seconds between the tries of a call of kopf, without end. With an end, kopf would end the process."""

    def __iter__(self) -> Iterator[float]:
        """Doubled up to half a minute."""
        return itertools.chain((1.0, 2.0, 4.0, 8.0, 16.0), itertools.repeat(30.0))


def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Post no events, and scan neither CRDs nor namespaces nor peers. The watches are ours."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.networking.error_backoffs = LoginPauses()


def login(**given: Any) -> kopf.ConnectionInfo | None:
    """KUBECONFIG, else the pod's service account: the same order as the client that writes. kopf calls it again after a 401."""
    return kopf.login_with_kubeconfig(**given) or kopf.login_with_service_account(**given)


def registry(services: Sequence[BackgroundService]) -> kopf.OperatorRegistry:
    """All handlers. Services start in this order and stop in the reverse one."""
    handlers = kopf.OperatorRegistry()
    kopf.on.startup(registry=handlers)(configure)
    kopf.on.login(registry=handlers)(login)
    for number, service in enumerate(services):
        kopf.on.startup(id=f"start-{number}", registry=handlers, errors=kopf.ErrorsMode.PERMANENT)(starter(service))
    kopf.on.cleanup(id="clean", registry=handlers)(cleaner(services))
    return handlers


def starter(service: BackgroundService) -> Callable[..., Any]:
    """A service that cannot start ends the process."""

    async def start(**_: Any) -> None:
        await service.start()

    return start


def cleaner(services: Sequence[BackgroundService]) -> Callable[..., Any]:
    """Ends the services with the process."""

    async def clean(**_: Any) -> None:
        for service in reversed(services):
            await service.stop()

    return clean
