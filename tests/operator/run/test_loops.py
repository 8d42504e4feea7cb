"""The loops: one per resource, woken by anything, ended with it, never ended by an error."""

from __future__ import annotations

import asyncio
import itertools
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import kopf
import pytest
from patience import PATIENCE
from simulated_cluster import KEY, SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, Unavailable
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run import loops as loops_module
from sluice_operator.run.handlers import configure, registry
from sluice_operator.run.loops import Loops
from sluice_operator.run.refusals import report_failing
from sluice_operator.run.schedule import ReconcileResult
from sluice_operator.state.serialization import dump_status, load_status
from sluice_operator.untrusted import decoding

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Json
from loop_cases import a_while, context, passes, sink, tell, until


def test_an_event_wakes_the_loop_and_the_deletion_ends_it() -> None:
    async def scene() -> None:
        place = context()
        loops = Loops(place)
        await tell(place, loops)
        await until(lambda: (place.cluster.get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers"))
        gone = place.cluster.get(CONSUMER_KIND, *KEY)
        assert gone is not None
        assert isinstance(place.cluster, MemoryCluster)
        place.cluster.finish_deletion(gone)
        sink(place, loops).see(CONSUMER_KIND, WatchEvent(gone, gone=True))
        await until(lambda: not loops._tasks)
        await loops.stop()

    asyncio.run(scene())


def test_a_resource_that_is_made_again_during_the_last_pass_has_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass found none. The event of the new one came before its loop had ended."""

    async def scene() -> None:
        loops, here = Loops(context()), asyncio.get_running_loop()
        outcomes = [ReconcileResult(None), ReconcileResult(None)]

        def reconcile(*_: object, **__: object) -> ReconcileResult:
            if len(outcomes) == 2:
                rung = threading.Event()
                here.call_soon_threadsafe(lambda: (loops.wake(KEY), rung.set()))
                assert rung.wait(PATIENCE)
            return outcomes.pop()

        monkeypatch.setattr(loops_module, "reconcile", reconcile)
        loops.wake(KEY)
        await until(lambda: not loops._tasks)
        assert outcomes == []
        await loops.stop()

    asyncio.run(scene())


def test_a_failing_pass_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    errors: list[Exception] = [Unavailable("later"), ValueError("a status that is not ours")]
    place = context()
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


def test_a_resource_of_which_the_metadata_alone_is_read_is_named_by_an_event_and_keeps_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit lists it too: a watch that has not shown it would look stuck, and the operator be restarted for everybody."""
    place = context()
    meta = {"namespace": "default", "name": "orders", "uid": "u", "resourceVersion": "7", "generation": 1}
    body = {"metadata": meta, "spec": decoding.NOT_READ, "status": decoding.NOT_READ}
    monkeypatch.setattr(place.cluster, "get", lambda *_: body)
    writes: list[Any] = []
    monkeypatch.setattr(place.cluster, "replace_status", writes.append)

    async def scene() -> None:
        loops = Loops(place)
        events = sink(place, loops)
        events.see(CONSUMER_KIND, WatchEvent(body))
        assert events.freshness._shown[CONSUMER_KIND]["u"].version == "7"
        await loops.stop()

    asyncio.run(scene())
    report_failing(place, KEY, decoding.NOT_READ, datetime.now(UTC))
    assert writes == []
    assert [event["reason"] for event in place.cluster.list("Event", "default", {})] == ["ReconcileFailed"]


@pytest.mark.parametrize(("after", "paused"), [(0, 2), (7, 7), (10**9, 60)])
def test_a_pass_is_not_repeated_before_the_api_server_wants_it(after: int, paused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """429 with `Retry-After`. A minute is the most that a resource waits, whatever is said."""
    slept, others = list[float](), asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds < 1:
            await others(seconds)
            return
        slept.append(seconds)
        await asyncio.Event().wait()

    def throttled(*_: object, **__: object) -> ReconcileResult:
        raise Unavailable("too many requests", after)

    async def scene() -> None:
        loops = Loops(context())
        loops.wake(KEY)
        await until(lambda: slept)
        await loops.stop()

    monkeypatch.setattr(loops_module, "reconcile", throttled)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(scene())
    assert slept == [paused]


def test_passes_that_fail_for_a_minute_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an event of the resource, and in its conditions: the last ones stand otherwise, and say that all is well."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    place, passes = context(), itertools.count()

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
    status = (place.cluster.get(CONSUMER_KIND, *KEY) or {})["status"]
    conditions = {item["type"]: (item["status"], item["reason"], "a pod that nobody understands" in item["message"]) for item in status["conditions"]}
    assert conditions == {"Ready": ("Unknown", "ReconcileFailed", True), "Stalled": ("True", "ReconcileFailed", True)}
    assert dump_status(load_status(status)) == status


def test_a_pass_that_hangs_is_noticed() -> None:
    """Its calls have timeouts of their own, so two minutes are enough."""
    loops = Loops(context())
    assert loops.stuck() == []
    loops._reconciles[KEY] = -1e9
    assert loops.stuck() == [KEY]


def test_a_follower_remembers_and_acts_only_when_it_is_elected() -> None:
    """Its cache is warm then: no event has to come first."""

    async def scene() -> None:
        place = context()
        loops = Loops(place, leading=False)
        await tell(place, loops)
        assert not loops._tasks
        assert not (place.cluster.get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers")
        loops.lead()
        await until(lambda: (place.cluster.get(CONSUMER_KIND, *KEY) or {})["metadata"].get("finalizers"))
        assert await loops.stop()

    asyncio.run(scene())


def test_loops_that_were_stopped_begin_nothing_more() -> None:
    async def scene() -> None:
        place = context()
        loops = Loops(place)
        assert await loops.stop()
        await tell(place, loops)
        assert not loops._tasks

    asyncio.run(scene())


@pytest.mark.parametrize("steps", range(5))
def test_a_loop_that_is_ended_in_the_moment_in_which_it_is_woken_ends(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many steps of the event loop lie between the event and the end. A loop that swallowed its cancellation would be waited for for ever."""
    seen = passes(monkeypatch, [], figures=60)

    async def scene() -> None:
        loops = Loops(context())
        loops.wake(KEY)
        await until(lambda: loops._figures)
        await a_while()
        loops.wake(KEY)
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.wait([ending := asyncio.create_task(loops.stop())], timeout=PATIENCE)
        assert ending.done()

    asyncio.run(scene())
    assert seen


def test_a_pass_under_way_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who knows that nothing of his acts may hand over."""
    monkeypatch.setattr(loops_module, "LAST_RECONCILE", 0.05)
    place, begun, ended = context(), threading.Event(), threading.Event()

    def look(*_: object) -> None:
        begun.set()
        ended.wait(5)

    monkeypatch.setattr(place.cluster, "get", look)

    async def scene() -> None:
        loops = Loops(place)
        body = {"metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "u", "resourceVersion": "1"}, "spec": SPEC}
        sink(place, loops).see(CONSUMER_KIND, WatchEvent(body))
        await until(begun.is_set)  # one that has not begun is not waited for
        assert not await loops.stop()
        ended.set()

    asyncio.run(scene())


def test_everything_kopf_has_to_call_is_registered() -> None:
    """No watch, for one object that kopf cannot decode would end the process; and nothing edge-triggered."""
    handlers = registry([])
    assert not list(handlers._watching.get_all_handlers())
    assert not list(handlers._changing.get_all_handlers())
    assert not list(handlers._spawning.get_all_handlers())


def test_a_namespace_that_may_not_be_watched_does_not_end_the_process() -> None:
    """By default kopf gives up after 54 s of 403, and all other namespaces with it."""
    settings = kopf.OperatorSettings()
    configure(settings)
    pauses: Any = settings.networking.error_backoffs
    assert list(itertools.islice(iter(pauses), 1000))[-1] == 30.0
    assert len(list(itertools.islice(iter(pauses), 1000))) == 1000


def test_an_executor_that_ran_out_of_memory_is_counted_where_its_pod_is_seen() -> None:
    """By the label of its consumer; a driver's pod is counted when it ends (`sluice_restarts_total`)."""

    async def scene() -> float | None:
        place = context()
        events = sink(place, Loops(place))
        ended = {"containerStatuses": [{"name": "executor", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}
        for role in ("executor", "driver"):
            labels = {"sluice.dev/consumer": KEY.name, "sluice.dev/role": role}
            meta = {"namespace": KEY.namespace, "name": role, "uid": role, "resourceVersion": "1", "labels": labels}
            events.see("Pod", WatchEvent({"metadata": meta, "status": ended}))
        of = {"namespace": KEY.namespace, "name": KEY.name}
        return events.metrics.registry.get_sample_value("sluice_executors_out_of_memory_total", of)

    assert asyncio.run(scene()) == 1
