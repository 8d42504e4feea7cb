"""Pools know their members when all resources are known: no loop starts before every list of KinesisConsumers is complete, or refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self, cast

import pytest
from loop_cases import a_while, sink, until
from pool_scene import MEMBER, SPACE, pooled
from simulated_cluster import BEGIN, SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND, Unavailable
from sluice_operator.observe import watch
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.watch import Watch, Watches, WatchServer
from sluice_operator.run.loops import Loops
from sluice_operator.run.pool_events import BothLoops
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

Json = dict[str, Any]
YOUNG, OLD = ResourceKey("a", "young"), ResourceKey("z", "old")
SHARED: Json = {**SPEC, "checkpoints": {"table": "shared"}}


class Reply:
    connection = None

    def __init__(self, let_go: asyncio.Event, body: Json, status: int) -> None:
        self._let_go, self._body, self.status, self.ok, self.content = let_go, body, status, status < 300, self

    async def __aenter__(self) -> Self:
        await self._let_go.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def text(self) -> str:
        return "no"

    async def iter_any(self) -> Any:
        yield json.dumps(self._body).encode()


class FakeServer:
    """Lists resources by namespace, one on each page. A page is held back until its event is set."""

    def __init__(self, *bodies: Json) -> None:
        self.bodies, self.refused, self.held = bodies, dict[str, int](), dict[str, asyncio.Event]()

    def get(self, path: str, query: Json, _silent: float, _accept: str = "") -> Reply:
        namespace = path.split("/")[-2]
        if "watch" in query:
            return Reply(asyncio.Event(), {}, 200)
        found = [body for body in self.bodies if body["metadata"]["namespace"] == namespace or namespace == "v1alpha1"]
        at = int(query.get("continue", 0))
        more = {"continue": str(at + 1)} if at + 1 < len(found) else {}
        let_go = self.held.setdefault(f"{namespace}/{at}", asyncio.Event())
        page = {"items": found[at : at + 1], "metadata": {"resourceVersion": "9", **more}}
        return Reply(let_go, page, self.refused.get(namespace, 200))


class Scene:
    def __init__(self, *namespaces: str) -> None:
        self.memory = MemoryCluster(lambda: BEGIN)
        self.context = ReconcileContext(self.memory, Cache(), Settings())
        for key, second in ((YOUNG, "9"), (OLD, "1")):
            body = {"kind": CONSUMER_KIND, "metadata": {"namespace": key.namespace, "name": key.name}, "spec": SHARED}
            made = self.memory.create(body)
            made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{second}Z"
        self.server = FakeServer(*(self._body(key, second) for key, second in ((YOUNG, "9"), (OLD, "1"))))
        self.loops = Loops(self.context, leading=False, listed=False)
        self.pool_loops = Loops(ReconcileContext(self.memory, self.context.pools, Settings()), leading=False, listed=False)
        self.both = BothLoops(self.loops, self.pool_loops)
        self.events = sink(self.context, self.loops)
        self.watches = Watches(cast("Any", None), (), self.events.see, self.both.listed)
        self.watches.watching = [Watch(cast("WatchServer", self.server), CONSUMER_KIND, namespace, self.events.see) for namespace in namespaces]

    def _body(self, key: ResourceKey, second: str) -> Json:
        body = self.memory.get(CONSUMER_KIND, *key) or {}
        return {**body, "metadata": {**body["metadata"], "creationTimestamp": f"2026-01-01T00:00:0{second}Z"}}

    async def played(self) -> None:
        self.watches.begin()
        self.both.lead()

    async def let_go(self, page: str) -> None:
        self.server.held.setdefault(page, asyncio.Event()).set()
        await a_while()

    async def end(self) -> None:
        await self.both.stop()
        await self.watches.stop()


@pytest.mark.parametrize(
    ("namespaces", "first", "second"), [(("a", "z"), "a/0", "z/0"), (("",), "v1alpha1/0", "v1alpha1/1")], ids=["namespaces", "pages"]
)
def test_no_loop_starts_before_all_lists_are_complete(namespaces: tuple[str, ...], first: str, second: str) -> None:
    async def scene() -> None:
        world = Scene(*namespaces)
        await world.played()
        await world.let_go(first)
        assert world.context.cache.known() == [YOUNG]
        assert not world.loops._tasks
        await world.let_go(second)
        await until(lambda: set(world.loops._tasks) == {YOUNG, OLD})
        await world.end()

    asyncio.run(scene())


@pytest.mark.parametrize(("status", "starts"), [(403, True), (404, True), (500, False), (429, False)])
def test_a_namespace_that_is_refused_stops_no_other(status: int, starts: bool, caplog: pytest.LogCaptureFixture) -> None:  # noqa: FBT001 - a table
    """For nobody knows whether its rights ever come. A server that has trouble is waited for."""

    async def scene() -> None:
        world = Scene("a", "z")
        world.server.refused["z"] = status
        await world.played()
        await world.let_go("a/0")
        await world.let_go("z/0")
        assert (YOUNG in world.loops._tasks) is starts
        await world.end()

    asyncio.run(scene())
    assert f"KinesisConsumers in namespace z are not watched: {status}" in caplog.text


@pytest.mark.parametrize(("status", "todo"), [(403, "rbac.create"), (404, "kubectl apply --server-side -f crds/")])
def test_an_operator_without_the_crd_of_pools_or_rights_to_it_works(status: int, todo: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log says what to do. As after an upgrade that left out the CRD (`crds.install: false`), or whose permissions are somebody else's."""

    async def scene() -> None:
        world = Scene("a", "z")
        world.watches.watching.append(Watch(cast("WatchServer", world.server), POOL_KIND, "pools", world.events.see))
        world.server.refused["pools"] = status
        await world.played()
        for page in ("a/0", "z/0", "pools/0"):
            await world.let_go(page)
        await until(lambda: set(world.loops._tasks) == {YOUNG, OLD})
        assert world.context.pools_listed
        await world.end()

    asyncio.run(scene())
    assert "KinesisConsumerPools in namespace pools are not watched: " in caplog.text
    assert todo in caplog.text


@pytest.mark.parametrize("status", [500, 429])
def test_pools_that_cannot_be_listed_hold_up_their_own_loops_alone(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POOLS_WITHIN", 0.01)
    monkeypatch.setattr(watch, "PAUSES", (0.01,))

    async def scene() -> None:
        world = Scene("a", "z")
        world.watches.watching.insert(0, Watch(cast("WatchServer", world.server), POOL_KIND, "pools", world.events.see))
        world.server.refused["pools"] = status
        await world.played()
        for page in ("a/0", "z/0", "pools/0"):
            await world.let_go(page)
        await until(lambda: set(world.loops._tasks) == {YOUNG, OLD})
        assert (world.context.pools_listed, world.pool_loops._listed) == (False, False)
        del world.server.refused["pools"]
        await until(lambda: world.context.pools_listed and world.pool_loops._listed)
        await world.end()

    asyncio.run(scene())


def test_a_member_is_left_alone_until_the_pools_are_listed() -> None:
    """Otherwise its pool would count as missing: it would drain for an edit, and not start again. One that names a pool since then, as well."""
    world = pooled()
    world.make(CONSUMER_KIND, "alone", {**MEMBER, "pool": None, "pipeline": {"image": "i", "entrypoint": "a:b"}, "checkpoints": {"table": "alone"}})
    world.on()
    world.edit(CONSUMER_KIND, "orders", batch={"intervalSeconds": 9})
    world.edit(CONSUMER_KIND, "clicks", pool=None, pipeline={"image": "i", "entrypoint": "a:b"})
    world.edit(CONSUMER_KIND, "alone", pool="small", pipeline={"image": None, "entrypoint": "a:b"})
    world.feed()
    world.context.pools_listed, before = False, world.memory.version
    for name in ("orders", "clicks", "alone"):
        with pytest.raises(Unavailable, match="kubectl get kcp"):
            reconcile(world.context, ResourceKey(SPACE, name), world.now, force_refresh=True)
    assert world.memory.version == before
    world.context.pools_listed = True
    world.on()
    assert [world.ready(CONSUMER_KIND, name)[:2] for name in ("orders", "clicks", "alone")] == [("True", "Consuming")] * 3


@pytest.mark.parametrize("seated", [True, False])
def test_a_consumer_without_a_pool_starts_before_the_pools_are_listed_and_not_beside_a_seat(seated: bool) -> None:  # noqa: FBT001
    world = pooled()
    name = "orders" if seated else "alone"
    alone = {**MEMBER, "pool": None, "pipeline": {"image": "i", "entrypoint": "a:b"}, "checkpoints": {"table": name}}
    if seated:
        world.edit(CONSUMER_KIND, name, **alone)
        world.memory.edit(world.get(CONSUMER_KIND, name), {"status": None})
    else:
        world.make(CONSUMER_KIND, name, alone)
    fresh = ReconcileContext(world.memory, Cache(), world.context.settings, pools_listed=False)
    for _ in range(4):
        fresh.cache.see(CONSUMER_KIND, world.get(CONSUMER_KIND, name), world.now)
        reconcile(fresh, ResourceKey(SPACE, name), world.now, force_refresh=True)
    notes = world.get("Pod", "small-pool-1")["metadata"]["annotations"]
    assert world.pods("driver") == ([] if seated else ["alone-driver-1"])
    assert any(note.startswith("leave.") for note in notes) is seated
