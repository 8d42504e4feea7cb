"""A resource, the loops that reconcile it, and events of its watch."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from simulated_cluster import BEGIN, KEY, SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run import loops as loops_module
from sluice_operator.run.handlers import EventSink
from sluice_operator.run.loops import Loops
from sluice_operator.run.schedule import ReconcileResult
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings
from sluice_operator.telemetry.metrics import OperatorMetrics


class Deaf:
    """Stands for loops that nobody needs."""

    def wake(self, *_: object, **__: object) -> None:
        pass


def context() -> ReconcileContext:
    memory = MemoryCluster(lambda: BEGIN)
    memory.create({"kind": CONSUMER_KIND, "metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": SPEC})
    return ReconcileContext(memory, Cache(), Settings())


def sink(context: ReconcileContext, loops: Loops) -> EventSink:
    return EventSink(context.cache, loops, Freshness(), OperatorMetrics())


async def tell(context: ReconcileContext, loops: Loops, kind: str = "ADDED") -> None:
    body = context.cluster.get(CONSUMER_KIND, *KEY) or {
        "metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "uid-1", "resourceVersion": "1"}
    }
    sink(context, loops).see(CONSUMER_KIND, WatchEvent(body, gone=kind == "DELETED"))


async def until(done: Any) -> None:
    for _ in range(400):
        if done():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")


def passes(monkeypatch: pytest.MonkeyPatch, wakes: list[float], figures: float, *, acted: bool = False) -> list[bool]:
    """Whether each pass was forced to read live. One ends with the wish to be woken after so many seconds, and to hear of figures after so many."""
    seen: list[bool] = []

    def reconcile(_office: ReconcileContext, _key: Any, now: datetime, *, force_refresh: bool) -> ReconcileResult:
        seen.append(force_refresh)
        return ReconcileResult(now + timedelta(seconds=wakes.pop(0) if wakes else 60), now + timedelta(seconds=figures), acted)

    monkeypatch.setattr(loops_module, "reconcile", reconcile)
    return seen


async def a_while() -> None:
    for _ in range(20):
        await asyncio.sleep(0.002)
