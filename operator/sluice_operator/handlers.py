"""The edge to kopf: watches fill the cache and wake loops. Nobody asks which event came, and nothing is decided here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import kopf

from sluice_operator.cluster import CONSUMER_KIND

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.cache import Cache
    from sluice_operator.loops import Loops

OURS = "app.kubernetes.io/managed-by=sluice,sluice.dev/consumer"
WATCHES = {
    CONSUMER_KIND: ("sluice.dev", "v1alpha1", "kinesisconsumers"),
    "Pod": ("", "v1", "pods"),
    "Job": ("batch", "v1", "jobs"),
}


def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Watch only what is ours, post nothing, look at nothing outside: no CRDs, no namespaces, no peers."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.label_selectors["pods"] = OURS
    settings.watching.label_selectors["jobs"] = OURS


def login(**given: Any) -> kopf.ConnectionInfo | None:
    """KUBECONFIG, else the pod's service account: the same order as the client that writes. Asked again after a 401."""
    return kopf.login_with_kubeconfig(**given) or kopf.login_with_service_account(**given)


def registry(cache: Cache, loops: Loops) -> kopf.OperatorRegistry:
    """Everything that kopf has to call."""
    handlers = kopf.OperatorRegistry()
    kopf.on.startup(registry=handlers)(configure)
    kopf.on.login(registry=handlers)(login)
    kopf.on.cleanup(registry=handlers)(cleaner(loops))
    kopf.on.probe(id="loops", registry=handlers)(probe(loops))
    for kind, (group, version, plural) in WATCHES.items():
        kopf.on.event(group, version, plural, id=plural, registry=handlers)(watcher(kind, cache, loops))
    return handlers


def cleaner(loops: Loops) -> Callable[..., Any]:
    """Ends the loops with the process."""

    async def clean(**_: Any) -> None:
        await loops.stop()

    return clean


def watcher(kind: str, cache: Cache, loops: Loops) -> Callable[..., Any]:
    """The handler of one kind's events."""

    async def seen(event: kopf.RawEvent, **_: Any) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        key = cache.see(kind, dict(event["object"]), now, gone=event["type"] == "DELETED")
        if key is not None:
            loops.wake(key)

    return seen


def probe(loops: Loops) -> Callable[..., str]:
    """Liveness: fails only when a pass hangs. Anything but PermanentError would make kopf's probe itself hang."""

    def loops_turn(**_: Any) -> str:
        if stuck := loops.stuck():
            raise kopf.PermanentError(f"passes hang: {stuck}")
        return "turning"

    return loops_turn
