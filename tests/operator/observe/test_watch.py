"""Watches of pods and Jobs: whatever happens to one, it goes on, and what was missed is found. Of a fake behind HTTP, and of a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from simulated_cluster import BEGIN
from watch_places import Place, Real, memory_place
from watch_world import Watched, until

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_operator.observe import watch
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.watch_health import LATE_AFTER, STUCK_AFTER, Freshness
from sluice_operator.observe.watch_state import WatchEvent

PLACES = [pytest.param("memory"), pytest.param("server", marks=pytest.mark.built)]


@pytest.fixture(scope="module")
def real() -> Iterator[Real]:
    with apiserver.running(places.work(), ("admin",)) as server:
        yield Real(server)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "memory":
        return memory_place(tmp_path)
    found: Place = request.getfixturevalue("real").place(tmp_path)
    return found


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PAUSES", (0.02,))


def test_what_is_there_is_told_and_then_whatever_happens(place: Place) -> None:
    async def scene(world: Watched) -> None:
        pods = [await world.make(name) for name in ("x", "y", "z")]
        await world.make("theirs", app="x")
        await world.shows(x="", y="", z="")
        await world.note(pods[0], "1")
        await world.delete(pods[1])
        await world.make("new")
        await world.shows(x="1", z="", new="")

    place.play(scene)


def test_a_connection_that_is_cut_is_taken_up_where_it_ended(place: Place) -> None:
    async def scene(world: Watched) -> None:
        pod = await world.make("x")
        await world.shows(x="")
        for number in range(3):
            world.gate.cut()
            await world.note(pod, str(number))
            await world.shows(x=str(number))
        versions = [int(event.body["metadata"]["resourceVersion"]) for _, event in world.told]
        assert versions == sorted(set(versions))

    place.play(scene)


def test_a_list_after_410_finds_what_was_deleted_meanwhile(place: Place) -> None:
    async def scene(world: Watched) -> None:
        kept, lost = await world.make("kept"), await world.make("lost")
        await world.shows(kept="", lost="")
        world.gate.open = False
        world.gate.cut()
        await world.delete(lost)
        await world.note(kept, "1")
        await world.make("new")
        place.forget()
        for one in world.watches.watching:
            one._state.version = "1"  # of before the server's memory
        world.gate.open = True
        await world.shows(kept="1", new="")

    place.play(scene)


def test_a_forbidden_namespace_disturbs_no_other_and_is_watched_when_it_may_be(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """When a namespace is deleted, the right to read it goes first."""

    async def scene(world: Watched) -> None:
        await world.make("elsewhere", place.away)
        await world.make("x")
        await world.shows(x="")
        await until(lambda: f"Pods in namespace {place.away} are not watched: 403" in caplog.text, lambda: caplog.text)
        await asyncio.to_thread(place.may_read, place.away)
        await world.shows(x="", elsewhere="")

    place.play(scene, place.away)


def test_a_stuck_watch_fails_readiness_then_liveness(place: Place) -> None:
    """It looks like one in which nothing happens; only a list tells. When it goes on, all is well again."""

    async def scene(world: Watched) -> None:
        now = [0.0]
        fresh = Freshness(lambda: now[0])

        def audit() -> None:
            for kind, event in world.told:
                meta = event.body["metadata"]
                fresh.shown(kind, meta["uid"], meta["resourceVersion"], gone=event.gone)
            now[0] += 1
            fresh.audit(world.cluster, (place.home,))

        pod = await world.make("x", **DRIVER)
        await world.shows(x="")
        await asyncio.to_thread(audit)
        assert fresh.cold() == []
        world.gate.hold_up()
        await world.note(pod, "1")
        await asyncio.to_thread(audit)
        now[0] += LATE_AFTER
        assert fresh.cold() == ["Pods are seen late"]
        now[0] += STUCK_AFTER
        assert fresh.stuck() == ["Pod"]
        world.gate.cut()
        await world.shows(x="1")
        await asyncio.to_thread(audit)
        assert fresh.cold() == []

    place.play(scene)


def test_a_connection_that_is_silent_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network may lose one without a word."""
    monkeypatch.setattr(watch, "SILENT", 0.5)

    async def scene(world: Watched) -> None:
        pod = await world.make("x")
        await world.shows(x="")
        world.gate.hold_up()
        await world.note(pod, "1")
        await world.shows(x="1")

    place.play(scene)


def test_a_server_that_sends_everybody_away_is_not_asked_again_and_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(watch, "PAUSES", (30.0,))

    async def scene(world: Watched) -> None:
        world.gate.open = False
        await until(lambda: world.gate.connections >= len(watch.KINDS), lambda: str(world.gate.connections))
        await asyncio.sleep(0.1)
        assert world.gate.connections <= 2 * len(watch.KINDS)  # aiohttp tries a GET twice

    memory_place(tmp_path).play(scene)


def test_an_object_that_is_not_understood_hides_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache()

    async def scene(world: Watched) -> None:
        told = world.told

        def tell(kind: str, event: WatchEvent) -> None:
            if event.body["metadata"]["name"] == "odd":
                raise ValueError("odd")
            cache.see(kind, event.body, BEGIN, gone=event.gone)
            told.append((kind, event))

        for one in world.watches.watching:
            one._tell = tell
        await world.make("odd", **DRIVER)
        await world.make("x")
        await world.shows(x="")

    memory_place(tmp_path).play(scene)
    assert "Pod odd cannot be parsed" in caplog.text


DRIVER = {"sluice.dev/consumer": "orders", "sluice.dev/role": "driver", "app.kubernetes.io/managed-by": "sluice"}


def test_what_comes_within_a_moment_is_taken_in_together(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "GATHER", 0.5)
    taken: list[int] = []

    def counted(
        self: watch.Watch, events: Iterable[WatchEvent], take: Callable[[watch.Watch, Iterable[WatchEvent]], None] = watch.Watch._take
    ) -> None:
        found = list(events)
        taken.append(len(found))
        take(self, found)

    async def scene(world: Watched) -> None:
        pod = await world.make("x")
        await world.shows(x="")
        monkeypatch.setattr(watch.Watch, "_take", counted)
        began = asyncio.get_running_loop().time()
        for number in range(20):
            await world.note(pod, str(number))
        await world.shows(x="19")
        moments = (asyncio.get_running_loop().time() - began) / watch.GATHER
        assert sum(taken) == 20
        assert len([number for number in taken if number]) <= moments + 2

    place.play(scene)


class Transport:
    def __init__(self) -> None:
        self.said: list[str] = []

    def set_read_buffer_limits(self, high: int) -> None:
        self.said.append(f"limit {high}")

    def pause_reading(self) -> None:
        self.said.append("pause")

    def resume_reading(self) -> None:
        self.said.append("resume")


def test_reading_goes_on_even_if_the_pause_is_cut_short() -> None:
    transport = Transport()
    reply = SimpleNamespace(connection=SimpleNamespace(transport=transport))

    async def cut_short() -> None:
        pausing = asyncio.create_task(watch._pause(cast("Any", reply)))
        await asyncio.sleep(0)
        pausing.cancel()
        await asyncio.gather(pausing, return_exceptions=True)

    asyncio.run(cut_short())
    assert transport.said == ["limit 1", "pause", "resume"]


def test_a_connection_that_is_gone_is_not_waited_for() -> None:
    asyncio.run(watch._pause(cast("Any", SimpleNamespace(connection=None))))
