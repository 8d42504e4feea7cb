"""The loops under real threads: calls take a while, watches go on meanwhile, and a user edits, deletes and makes again at any moment.

Which thread is faster is left to the machine. Live reads that time asks for are minutes apart, so an event that gets lost is not found again here.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from loop_cases import sink
from patience import PATIENCE
from simulated_cluster import KEY, SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.operator_class import CLASS
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run.loops import Loops
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

Json = dict[str, Any]
ROUNDS = 60
CALL, EVENT, PERSON = 0.004, 0.002, 0.01  # seconds at most: either way of a call, until an event is shown, between two deeds of the user
MADE_AGAIN = 0.03  # seconds at most: the loop of the last one ends meanwhile
NEVER = threading.Event()  # waiting on it lets other threads work


class SlowCluster:
    def __init__(self, server: MemoryCluster, chance: random.Random) -> None:
        self.server, self._chance, self.lock = server, chance, threading.Lock()

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            NEVER.wait(self._chance.uniform(0, CALL))
            with self.lock:
                answer = getattr(self.server, verb)(*arguments, **named)
            NEVER.wait(self._chance.uniform(0, CALL))
            return answer

        return call


class SlowCache(Cache):
    """What a reconcile reads of it may be old by the time it goes on."""

    def body(self, key: ResourceKey) -> Json | None:
        body = super().body(key)
        if threading.current_thread() is not threading.main_thread():  # the event loop is not to wait
            NEVER.wait(CALL)
        return body


class Scene:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.server = MemoryCluster(lambda: datetime.now(UTC).replace(microsecond=0))
        self.cluster = SlowCluster(self.server, random.Random(seed + 1))  # noqa: S311
        self.context = ReconcileContext(self.cluster, SlowCache(), Settings())
        self.loops = Loops(self.context)

    def resource(self) -> Json | None:
        with self.cluster.lock:
            return self.server.get(CONSUMER_KIND, *KEY)

    def make(self) -> None:
        """Suspended: nothing but its status has to be written."""
        meta = {"namespace": KEY.namespace, "name": KEY.name}
        with self.cluster.lock:
            self.server.create({"kind": CONSUMER_KIND, "metadata": meta, "spec": {**SPEC, "suspend": True, "replicas": self.chance.randint(1, 99)}})

    def edit(self) -> None:
        self._change({"spec": {"replicas": self.chance.randint(100, 999)}})

    def give(self, to: str | None) -> None:
        """To the operator of another class; None: back to this one."""
        self._change({"metadata": {"labels": {CLASS: to}}})

    def _change(self, changes: Json) -> None:
        if body := self.resource():
            with self.cluster.lock:
                self.server.edit(body, changes)

    def delete(self) -> None:
        """The operator's finalizer is taken off by a loop."""
        if body := self.resource():
            with self.cluster.lock:
                self.server.remove(CONSUMER_KIND, *KEY, body["metadata"]["uid"])

    def seen(self) -> bool:
        body = self.resource() or {"metadata": {}}
        return bool(body["metadata"].get("finalizers")) and body.get("status", {}).get("observedGeneration") == body["metadata"]["generation"]

    async def watch(self) -> None:
        """Shows each change once, a little late; those of one uid in order, as kopf does."""
        events, cursor = sink(self.context, self.loops), 0
        while True:
            await self.pause(EVENT)
            with self.cluster.lock:
                changes, cursor = self.server.watch(CONSUMER_KIND, cursor), self.server.version
            first: dict[str, float] = {}
            for change in sorted(changes, key=lambda each: first.setdefault(each.body["metadata"]["uid"], self.chance.random())):
                events.see(CONSUMER_KIND, WatchEvent(change.body, gone=change.verb == "DELETED"))

    async def pause(self, most: float) -> None:
        await asyncio.sleep(self.chance.uniform(0, most))

    async def until(self, done: Callable[[], bool], what: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not done():
            assert asyncio.get_running_loop().time() < deadline, f"{what}: {self.resource()}"
            await asyncio.sleep(0.001)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.watch())
        yield
        await self.loops.stop()
        watching.cancel()


def run(seed: int, story: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        scene = Scene(seed)
        async with scene.running():
            await story(scene)

    asyncio.run(whole())


@pytest.mark.parametrize("seed", range(2))
def test_every_edit_is_seen_whenever_it_comes(seed: int) -> None:
    async def story(scene: Scene) -> None:
        scene.make()
        for _ in range(ROUNDS):
            for _ in range(scene.chance.randint(1, 3)):
                await scene.pause(PERSON)
                scene.edit()
            await scene.until(scene.seen, "an edit is not seen")

    run(seed, story)


@pytest.mark.parametrize("seed", range(2))
def test_a_resource_that_is_made_again_at_once_is_taken_over(seed: int) -> None:
    async def story(scene: Scene) -> None:
        for _ in range(ROUNDS // 2):
            scene.make()
            await scene.until(scene.seen, "it is not taken over")
            await scene.pause(PERSON)
            scene.delete()
            await scene.until(lambda: scene.resource() is None, "it is not let go")
            await scene.pause(MADE_AGAIN)

    run(seed, story)


@pytest.mark.parametrize("seed", range(2))
def test_a_resource_that_is_handed_away_and_back_is_taken_up_again(seed: int) -> None:
    async def story(scene: Scene) -> None:
        scene.make()
        for _ in range(ROUNDS // 2):
            for to in ("blue", None):
                scene.edit()
                await scene.pause(MADE_AGAIN)
                scene.give(to)
            await scene.until(scene.seen, "it is not taken up again")

    run(seed, story)
