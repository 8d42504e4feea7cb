"""One KinesisConsumerPool as a person sees it (docs/pools.md). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sluice_kubectl.views.consumer import ConditionView, is_paused, readiness
from sluice_kubectl.views.documents import shown
from sluice_kubectl.views.part import ObjectPart

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PoolView:
    """What a KinesisConsumerPool says of itself. `out`: names of the members that were put out of it. `pod` is that of its driver."""

    namespace: str
    name: str
    phase: str
    ready: str
    reason: str
    message: str
    stalled: bool
    paused: bool
    suspended: bool
    deleting: bool
    members: int
    ready_members: int
    executors: int
    desired: int | None
    pod: str | None
    out: tuple[str, ...]
    conditions: tuple[ConditionView, ...]
    unreadable: tuple[str, ...]


def pool(body: Json) -> PoolView:
    """The resource as the API server has it, whatever its form. Each text is one printable line."""
    whole = ObjectPart.whole(body)
    meta, spec, status = whole.part("metadata"), whole.part("spec"), whole.part("status")
    state = readiness(status)
    view = PoolView(
        namespace=meta.must("namespace"),
        name=meta.must("name"),
        phase=status.text("phase") or "Pending",
        ready=state.ready,
        reason=state.reason,
        message=state.message,
        stalled=state.stalled,
        paused=is_paused(body),
        suspended=spec.flag("suspend"),
        deleting=meta.has("deletionTimestamp"),
        members=status.count("members") or 0,
        ready_members=status.count("readyMembers") or 0,
        executors=status.count("replicas") or 0,
        desired=spec.count("replicas"),
        pod=status.part("driver").text("pod"),
        out=tuple(item.must("name") for item in status.part("deaths").parts("out")),
        conditions=state.conditions,
        unreadable=whole.noted(),
    )
    return shown(view)


def pools_by_need(pools: Iterable[PoolView]) -> tuple[PoolView, ...]:
    """Those that need attention first, then those that are not ready; else by name."""
    return tuple(sorted(pools, key=lambda view: (not view.stalled, view.ready == "True", view.namespace, view.name)))
