"""The loops: one per resource, woken by anything, ended with it, never ended by an error."""

from __future__ import annotations

import asyncio
import itertools
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import kopf
import pytest
from operator_world import BEGIN, KEY, SPEC

from sluice_operator.cluster.memory import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, Unavailable
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.run import loops as loops_module
from sluice_operator.run.handlers import EventSink, configure, registry, watcher
from sluice_operator.run.loops import Loops
from sluice_operator.run.schedule import ReconcileResult
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings
from sluice_operator.telemetry.metrics import OperatorMetrics

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Json


def office() -> ReconcileContext:
    """An in-memory fake with one resource in it."""
    twin = MemoryCluster(lambda: BEGIN)
    twin.create({"kind": CONSUMER_KIND, "metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": SPEC})
    return ReconcileContext(twin, Cache(), Settings())


def eyes(office: ReconcileContext, loops: Loops) -> EventSink:
    """Where the watch's events go."""
    return EventSink(office.cache, loops, Freshness(), OperatorMetrics())


async def tell(office: ReconcileContext, loops: Loops, kind: str = "ADDED") -> None:
    """An event of the watch."""
    body = office.cluster.get(CONSUMER_KIND, *KEY) or {
        "metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "uid-1", "resourceVersion": "1"}
    }
    await watcher(eyes(office, loops))(event={"type": kind, "object": body})


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
        assert isinstance(place.cluster, MemoryCluster)
        place.cluster.finish_deletion(gone)
        await watcher(eyes(place, loops))(event={"type": "DELETED", "object": gone})
        await until(lambda: not loops._tasks)
        await loops.stop()

    asyncio.run(scene())


def test_a_failing_pass_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it failed with."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    errors: list[Exception] = [Unavailable("later"), ValueError("a status that is not ours")]
    place = office()
    listing = place.cluster.list

    def failing(kind: str, namespace: str, labels: dict[str, str]) -> list[Json]:
        if errors:
            raise errors.pop()
        return listing(kind, namespace, labels)

    async def scene() -> None:
        loops = Loops(place)
        await tell(place, loops)
        monkeypatch.setattr(place.cluster, "list", failing)
        await until(lambda: (place.cluster.get(CONSUMER_KIND, *KEY) or {}).get("status"))
        await loops.stop()

    asyncio.run(scene())
    assert errors == []


def test_passes_that_fail_for_a_minute_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an event of the resource, for no status can be written; the deletion of one is stuck without a word otherwise."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    place, passes = office(), itertools.count()

    def failing(_kind: str, _namespace: str, _labels: dict[str, str]) -> list[Json]:
        next(passes)
        raise ValueError("a pod that nobody understands")

    async def scene() -> None:
        loops = Loops(place)
        await tell(place, loops)
        monkeypatch.setattr(place.cluster, "list", failing)
        await until(lambda: next(passes) > 40)
        await loops.stop()

    asyncio.run(scene())
    assert isinstance(place.cluster, MemoryCluster)
    (told,) = [event for event in place.cluster.all("Event") if event["reason"] == "ReconcileFailed"]
    assert "a pod that nobody understands" in told["message"]
    assert told["type"] == "Warning"


def test_a_pass_that_hangs_is_noticed() -> None:
    """Its calls have timeouts of their own, so two minutes are enough."""
    loops = Loops(office())
    assert loops.stuck() == []
    loops._passes[KEY] = -1e9
    assert loops.stuck() == [KEY]


def test_a_follower_remembers_and_acts_only_when_it_is_elected() -> None:
    """Its cache is warm then: no event has to come first."""

    async def scene() -> None:
        place = office()
        loops = Loops(place, leading=False)
        await tell(place, loops)
        assert not loops._tasks
        assert not (place.cluster.get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers")
        loops.lead()
        await until(lambda: (place.cluster.get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers"))
        assert await loops.stop()

    asyncio.run(scene())


def test_loops_that_were_stopped_begin_nothing_more() -> None:
    """Whatever the watches still show."""

    async def scene() -> None:
        place = office()
        loops = Loops(place)
        assert await loops.stop()
        await tell(place, loops)
        assert not loops._tasks

    asyncio.run(scene())


def test_a_pass_under_way_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who knows that nothing of his acts may hand over."""
    monkeypatch.setattr(loops_module, "LAST_RECONCILE", 0.05)
    place, begun, ended = office(), threading.Event(), threading.Event()

    def look(*_: object) -> None:
        begun.set()
        ended.wait(5)

    monkeypatch.setattr(place.cluster, "get", look)

    async def scene() -> None:
        loops = Loops(place)
        body = {"metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "u", "resourceVersion": "1"}, "spec": SPEC}
        await watcher(eyes(place, loops))(event={"type": "ADDED", "object": body})
        await until(begun.is_set)  # one that has not begun is not waited for
        assert not await loops.stop()
        ended.set()

    asyncio.run(scene())


def test_everything_kopf_has_to_call_is_registered() -> None:
    """One watch, and nothing edge-triggered."""
    place = office()
    handlers = registry(eyes(place, Loops(place)), [])
    assert {handler.id for handler in handlers._watching.get_all_handlers()} == {"kinesisconsumers"}
    assert not list(handlers._changing.get_all_handlers())
    assert not list(handlers._spawning.get_all_handlers())


def test_a_namespace_that_may_not_be_watched_does_not_end_the_process() -> None:
    """By default kopf gives up after 54 s of 403, and all other namespaces with it."""
    settings = kopf.OperatorSettings()
    configure(settings)
    pauses: Any = settings.networking.error_backoffs
    assert list(itertools.islice(iter(pauses), 1000))[-1] == 30.0
    assert len(list(itertools.islice(iter(pauses), 1000))) == 1000


def passes(monkeypatch: pytest.MonkeyPatch, wakes: list[float], figures: float, *, acted: bool = False) -> list[bool]:
    """Whether each pass was forced to read live. One ends with the wish to be woken after so many seconds, and to hear of figures after so many."""
    seen: list[bool] = []

    def reconcile(_office: ReconcileContext, _key: Any, now: datetime, *, force_refresh: bool) -> ReconcileResult:
        seen.append(force_refresh)
        return ReconcileResult(now + timedelta(seconds=wakes.pop(0) if wakes else 60), now + timedelta(seconds=figures), acted)

    monkeypatch.setattr(loops_module, "reconcile", reconcile)
    return seen


async def a_while() -> None:
    """Long enough for every pass that is due."""
    for _ in range(20):
        await asyncio.sleep(0.002)


def test_figures_wake_nobody_before_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand drivers report two hundred times a second; what matters is looked at as soon as it comes."""
    seen = passes(monkeypatch, [], figures=60)

    async def scene() -> None:
        loops = Loops(office())
        loops.wake(KEY, matters=False)
        await until(lambda: len(seen) == 1 and KEY in loops._figures)
        for _ in range(5):
            loops.wake(KEY, matters=False)
            await a_while()
        assert len(seen) == 1
        loops.wake(KEY)
        await until(lambda: len(seen) == 2)
        await loops.stop()

    asyncio.run(scene())


def test_figures_that_are_due_wake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody would ever write them."""
    seen = passes(monkeypatch, [], figures=-1)

    async def scene() -> None:
        loops = Loops(office())
        loops.wake(KEY)
        await until(lambda: len(seen) == 1 and KEY in loops._figures)
        loops.wake(KEY, matters=False)
        await until(lambda: len(seen) == 2)
        await loops.stop()

    asyncio.run(scene())


@pytest.mark.parametrize(("ago", "latest", "looks"), [(1, 60, 1), (100, 60, 2), (1, 0, 2), (1, None, 2)])
def test_a_report_puts_off_the_look_for_silence(monkeypatch: pytest.MonkeyPatch, ago: int, latest: int | None, looks: int) -> None:
    """For as long as a look may be old, and not if time was to bring anything else. A thousand resources were eleven idle passes a second."""
    place, seen, now = office(), list[bool](), datetime.now(UTC)
    until_then = None if latest is None else now + timedelta(seconds=latest)

    def reconcile(*_: Any, force_refresh: bool) -> ReconcileResult:
        seen.append(force_refresh)
        return ReconcileResult(now if len(seen) == 1 else now + timedelta(hours=1), latest=until_then)

    monkeypatch.setattr(loops_module, "reconcile", reconcile)
    monkeypatch.setattr(place.cache, "last_report_at", lambda _: now - timedelta(seconds=ago))

    async def scene() -> None:
        loops = Loops(place)
        loops.wake(KEY)
        await until(lambda: len(seen) >= looks)
        await a_while()
        await loops.stop()

    asyncio.run(scene())
    assert seen == [False, True][:looks]


@pytest.mark.parametrize("heard", [True, False])
def test_only_silence_asks_for_a_live_look(monkeypatch: pytest.MonkeyPatch, heard: bool) -> None:  # noqa: FBT001 - a table
    """A watch that shows new figures of a resource works, so time alone did not wake its loop."""
    seen = passes(monkeypatch, [1.5], figures=60)

    async def scene() -> None:
        loops = Loops(office())
        loops.wake(KEY)
        await until(lambda: len(seen) == 1 and KEY in loops._figures)
        if heard:
            loops.wake(KEY, matters=False)
        await until(lambda: len(seen) == 2)
        await loops.stop()

    asyncio.run(scene())
    assert seen == [False, not heard]


def test_a_pass_that_acted_looked_so_the_next_one_need_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second later time wakes the loop, to go on. Of a thousand that start at once each would be looked at twice."""
    seen = passes(monkeypatch, [0.0], figures=60, acted=True)

    async def scene() -> None:
        loops = Loops(office())
        loops.wake(KEY)
        await until(lambda: len(seen) == 2)
        await loops.stop()

    asyncio.run(scene())
    assert seen == [False, False]
