"""A checkpoint table has one consumer: of two resources that name it the younger is refused, and taken as soon as the older is gone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_cases import sink, until
from odd_values import ODD
from simulated_cluster import BEGIN, SPEC

from sluice_operator.cluster.memory import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run.loops import Loops
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

Json = dict[str, Any]
OLD, NEW = ResourceKey("shop", "orders"), ResourceKey("lab", "copy")
NAMED: Json = {"checkpoints": {"table": "sluice_shop_orders"}}


class Scene:
    """Two resources, a minute apart."""

    def __init__(self, **younger: Any) -> None:
        self.now = BEGIN
        self.twin = MemoryCluster(lambda: self.now)
        self.context = ReconcileContext(self.twin, Cache(), Settings())
        self.make(OLD, SPEC)
        self.now += timedelta(minutes=1)
        self.make(NEW, {**SPEC, **NAMED, **younger})

    def make(self, key: ResourceKey, spec: Json) -> None:
        """A resource, which the watch shows."""
        self.see(self.twin.create({"kind": CONSUMER_KIND, "metadata": {"namespace": key.namespace, "name": key.name}, "spec": spec}))

    def see(self, body: Json, *, gone: bool = False) -> None:
        """An event of the watch."""
        self.context.cache.see(CONSUMER_KIND, body, self.now, gone=gone)

    def passes(self, key: ResourceKey) -> Json:
        """Until it has a status and nothing more is done at once; its condition SpecValid."""
        for _ in range(6):
            reconcile(self.context, key, self.now)
        conditions = (self.twin.get(CONSUMER_KIND, *key) or {})["status"]["conditions"]
        return next(item for item in conditions if item["type"] == "SpecValid")

    def pods(self, key: ResourceKey) -> list[str]:
        """Names."""
        return [pod["metadata"]["name"] for pod in self.twin.list("Pod", key.namespace, {})]


def test_the_younger_of_two_with_one_table_is_refused_and_the_other_is_named() -> None:
    """It would take the lease in turns with the older one; nothing of it is started."""
    scene = Scene()
    assert scene.passes(OLD)["status"] == "True"
    refused = scene.passes(NEW)
    assert refused["status"] == "False"
    assert refused["message"].startswith("spec.checkpoints.table: is the table of KinesisConsumer shop/orders, which is older")
    assert scene.pods(OLD) == ["orders-driver-1"]
    assert scene.pods(NEW) == []


@pytest.mark.parametrize(
    "other",
    [
        {"checkpoints": {"table": "another"}},
        {"checkpoints": {}},
        {"stream": {**SPEC["stream"], "region": "eu-west-2"}},
        {"stream": {**SPEC["stream"], "dynamodbEndpoint": "http://elsewhere:8000"}},
    ],
)
def test_another_table_or_region_or_endpoint_is_another_table(other: Json) -> None:
    """Both run."""
    scene = Scene(**other)
    assert [scene.passes(key)["status"] for key in (OLD, NEW)] == ["True", "True"]
    assert scene.pods(NEW) == ["copy-driver-1"]


def test_a_younger_one_that_runs_already_is_not_ended() -> None:
    """An operator of before this rule has started it: its driver works on, is followed by none, and the condition says why."""
    scene = Scene()
    body = scene.twin.get(CONSUMER_KIND, *OLD)
    assert body is not None
    scene.see(body, gone=True)
    scene.passes(NEW)
    scene.see(body)
    assert scene.passes(NEW)["status"] == "False"
    assert scene.pods(NEW) == ["copy-driver-1"]


def test_the_younger_one_is_taken_when_the_older_is_gone() -> None:
    """At once, not with the next live read."""

    async def scene() -> None:
        world = Scene()
        loops = Loops(world.context)
        events = sink(world.context, loops)
        for key in (OLD, NEW):
            events.see(CONSUMER_KIND, WatchEvent(world.twin.get(CONSUMER_KIND, *key) or {}))
        await until(lambda: (world.twin.get(CONSUMER_KIND, *NEW) or {}).get("status"))
        gone = world.twin.get(CONSUMER_KIND, *OLD)
        assert gone is not None
        world.twin.finish_deletion(gone)
        events.see(CONSUMER_KIND, WatchEvent(gone, gone=True))
        await until(lambda: world.pods(NEW))
        await loops.stop()

    asyncio.run(scene())


KEYS = [ResourceKey("a", "x"), ResourceKey("b", "y"), ResourceKey("c", "z")]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["t", "u", None, "gone", "forget", *ODD[:6]]), st.integers(0, 3)), max_size=20))
def test_whatever_comes_and_goes_the_oldest_of_those_that_are_there_has_the_table(events: list[tuple[ResourceKey, Any, int]]) -> None:
    """Held against a look at all of them."""
    cache = Cache()
    for number, (key, what, age) in enumerate(events):
        meta = {"namespace": key.namespace, "name": key.name, "uid": str(key), "resourceVersion": str(number)}
        body = {"metadata": meta | {"creationTimestamp": f"2026-11-21T10:00:0{age}Z"}, "spec": {**SPEC, "checkpoints": {"table": what}}}
        if what == "forget":
            cache.forget(key)
        else:
            cache.see(CONSUMER_KIND, body, BEGIN, gone=what == "gone")
        there = {other: found for other in KEYS if (found := cache.body(other)) is not None}
        tables = {other: _table(other, found) for other, found in there.items()}
        for other in KEYS:
            rivals = [(there[one]["metadata"]["creationTimestamp"], one) for one in there if tables[one] == tables.get(other)]
            oldest = min(rivals, default=(None, other))[1]
            assert cache.elder(other) == (oldest if oldest != other else None)


def _table(key: ResourceKey, body: Json) -> str:
    named = body["spec"]["checkpoints"]["table"]
    return named if isinstance(named, str) and named else f"sluice_{key.namespace}_{key.name}"
