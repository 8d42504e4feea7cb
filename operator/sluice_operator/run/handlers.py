"""kopf's handlers. kopf watches the resources, `observe.watch` pods and Jobs. Events fill the cache and wake loops; nothing is decided here."""

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
from sluice_operator.observe.parse import CONSUMER, REPORT
from sluice_operator.observe.watch_state import WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import Cache
    from sluice_operator.observe.watch_health import Freshness
    from sluice_operator.run.loops import Loops
    from sluice_operator.telemetry.metrics import OperatorMetrics

LOG = logging.getLogger("sluice")
RESOURCE = ("sluice.dev", "v1alpha1", "kinesisconsumers")


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

    def see(self, kind: str, event: WatchEvent) -> None:
        """Put the event into the cache, and wake the loop of the resource that it is about."""
        body, gone = event
        meta = body["metadata"]
        strange = self._strange(kind, body, gone=gone)
        self.freshness.shown(kind, meta["uid"], meta["resourceVersion"], gone=gone or (strange and kind == CONSUMER_KIND))
        if strange:
            return
        change = self.cache.see(kind, body, datetime.now(UTC).replace(microsecond=0), gone=gone)
        self.metrics.saw(kind, meta["uid"], (meta.get("annotations") or {}).get(REPORT), gone=gone)
        if change is not None:
            self.loops.wake(change.key, matters=change.matters)

    def _strange(self, kind: str, body: Json, *, gone: bool) -> bool:
        """Whether it belongs to another operator. A resource whose class changed leaves the cache, and its loop ends.

        kopf keeps the order of one uid's events only: the deletion of a resource may come after the creation of one of the same name.
        """
        meta = body["metadata"]
        if kind != CONSUMER_KIND:
            return ResourceKey(meta["namespace"], (meta.get("labels") or {}).get(CONSUMER, "")) in self.strangers
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
    """Seconds between the tries of a call that kopf makes for a watch, without end.

    With an end, kopf would end the process when one namespace may not be watched any more, and so stop the work in all others.
    A namespace that is deleted loses its RoleBinding first.
    """

    def __iter__(self) -> Iterator[float]:
        """Doubled up to half a minute."""
        return itertools.chain((1.0, 2.0, 4.0, 8.0, 16.0), itertools.repeat(30.0))


class NoDiffStore(kopf.DiffBaseStorage):
    """kopf's memory of objects, for diffs, turned off. No handler needs diffs, and kopf would copy the object of every event."""

    def build(self, **_: Any) -> Any:
        """See DiffBaseStorage."""
        return {}

    def fetch(self, **_: Any) -> Any:
        """See DiffBaseStorage."""
        return None

    def store(self, **_: Any) -> None:
        """See DiffBaseStorage."""


def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Watch KinesisConsumers only, post no events, and scan neither CRDs nor namespaces nor peers."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = NoDiffStore()
    settings.networking.error_backoffs = LoginPauses()


def login(**given: Any) -> kopf.ConnectionInfo | None:
    """KUBECONFIG, else the pod's service account: the same order as the client that writes. kopf calls it again after a 401."""
    return kopf.login_with_kubeconfig(**given) or kopf.login_with_service_account(**given)


def registry(sink: EventSink, services: Sequence[BackgroundService]) -> kopf.OperatorRegistry:
    """All handlers. Services start in this order and stop in the reverse one."""
    handlers = kopf.OperatorRegistry()
    kopf.on.startup(registry=handlers)(configure)
    kopf.on.login(registry=handlers)(login)
    for number, service in enumerate(services):
        kopf.on.startup(id=f"start-{number}", registry=handlers, errors=kopf.ErrorsMode.PERMANENT)(starter(service))
    kopf.on.cleanup(id="clean", registry=handlers)(cleaner(services))
    kopf.on.event(*RESOURCE, id=RESOURCE[-1], registry=handlers)(watcher(sink))
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


def watcher(sink: EventSink) -> Callable[..., Any]:
    """The handler of every event of a KinesisConsumer."""

    async def seen(event: kopf.RawEvent, **_: Any) -> None:
        sink.see(CONSUMER_KIND, WatchEvent(dict(event["object"]), gone=event["type"] == "DELETED"))

    return seen
