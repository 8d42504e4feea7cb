"""The loops: one per resource, woken by anything, ended with it, never ended by an error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import kopf
import pytest
from operator_world import BEGIN, KEY, SPEC

from sluice_operator import loops as loops_module
from sluice_operator.cache import Cache
from sluice_operator.cluster import CONSUMER_KIND, Unavailable
from sluice_operator.handlers import probe, registry, watcher
from sluice_operator.loops import Loops
from sluice_operator.reconcile import Office
from sluice_operator.settings import Settings
from sluice_operator.twin import Twin

if TYPE_CHECKING:
    from sluice_operator.cluster import Json


def office() -> Office:
    """A twin with one resource in it."""
    twin = Twin(lambda: BEGIN)
    twin.create({"kind": CONSUMER_KIND, "metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": SPEC})
    return Office(twin, Cache(), Settings())


async def tell(office: Office, loops: Loops, kind: str = "ADDED") -> None:
    """An event of the watch."""
    body = office.cluster.get(CONSUMER_KIND, *KEY) or {"metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "uid-1"}}
    await watcher(CONSUMER_KIND, office.cache, loops)(event={"type": kind, "object": body})


async def until(done: Any) -> None:
    """Other tasks run until it is so."""
    for _ in range(400):
        if done():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")


def test_an_event_wakes_the_loop_and_the_deletion_ends_it() -> None:
    """The first passes take the resource over."""

    async def scene() -> None:
        place = office()
        loops = Loops(place)
        await tell(place, loops)
        await until(lambda: (place.cluster.get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers"))
        gone = place.cluster.get(CONSUMER_KIND, *KEY)
        assert gone is not None
        assert isinstance(place.cluster, Twin)
        place.cluster.finish_deletion(gone)
        await watcher(CONSUMER_KIND, place.cache, loops)(event={"type": "DELETED", "object": gone})
        await until(lambda: not loops._tasks)
        await loops.stop()

    asyncio.run(scene())


def test_a_failing_pass_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it failed with."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    errors: list[Exception] = [Unavailable("later"), ValueError("a status that is not ours")]
    place = office()
    get = place.cluster.get

    def failing(kind: str, namespace: str, name: str) -> Json | None:
        if errors:
            raise errors.pop()
        return get(kind, namespace, name)

    async def scene() -> None:
        loops = Loops(place)
        await tell(place, loops)
        monkeypatch.setattr(place.cluster, "get", failing)
        await until(lambda: (get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers"))
        await loops.stop()

    asyncio.run(scene())
    assert errors == []


def test_liveness_fails_only_when_a_pass_hangs() -> None:
    """And in the one way that kopf answers at once."""
    loops = Loops(office())
    alive = probe(loops)
    assert alive() == "turning"
    loops._passes[KEY] = -1e9
    with pytest.raises(kopf.PermanentError):
        alive()


def test_everything_kopf_has_to_call_is_registered() -> None:
    """Three watches, and nothing edge-triggered."""
    loops = Loops(office())
    handlers = registry(Cache(), loops)
    assert {handler.id for handler in handlers._watching.get_all_handlers()} == {"kinesisconsumers", "pods", "jobs"}
    assert not list(handlers._changing.get_all_handlers())
    assert not list(handlers._spawning.get_all_handlers())
