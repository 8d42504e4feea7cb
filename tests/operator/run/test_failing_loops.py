"""Loops whose reconciles fail: for days, or for a reason that nobody thought of. Nothing ends them, and what fails is said as long as it fails."""

from __future__ import annotations

import asyncio
import itertools
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loop_cases import Deaf, context, sink, until
from simulated_cluster import BEGIN, KEY, SPEC

from sluice_operator.cluster.port import CONSUMER_KIND, Conflict, Unavailable
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run import loops as loops_module
from sluice_operator.run.loops import THREADS, Loops
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.schedule import ReconcileResult

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from sluice_operator.cluster.port import Json
    from sluice_operator.run.shared import ReconcileContext


def test_a_loop_goes_on_however_often_its_reconciles_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 1,024 failures, 17 hours, the doubled pause is no number any more."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.0)
    passes = itertools.count(1)

    def failing(*_: object, **__: object) -> ReconcileResult:
        if next(passes) <= 1_100:
            raise Unavailable("later")
        return ReconcileResult(None)

    async def scene() -> None:
        loops = Loops(context())
        loops.wake(KEY)
        async with asyncio.timeout(60):
            await asyncio.gather(*loops._tasks.values())
        await loops.stop()

    monkeypatch.setattr(loops_module, "reconcile", failing)
    monkeypatch.setattr(loops_module, "report_failing", lambda *_: None)
    asyncio.run(scene())
    assert next(passes) == 1_102


def test_a_loop_that_fails_itself_is_logged_and_begins_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it was: a resource without a loop would be forgotten until the operator is started again."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    outcomes = [ReconcileResult(None), "no result"]

    async def scene() -> None:
        loops = Loops(context())
        loops.wake(KEY)
        await until(lambda: not loops._tasks)
        await loops.stop()

    monkeypatch.setattr(loops_module, "reconcile", lambda *_, **__: outcomes.pop())
    monkeypatch.setattr(Loops, "_timed", lambda _self, *_, **__: outcomes.pop())
    asyncio.run(scene())
    assert outcomes == []
    assert "default/orders: its loop failed, and begins again" in caplog.text


def test_a_new_resource_whose_finalizer_meets_a_conflict_says_so() -> None:
    """Else a server that answers 409 to each first write is asked twice a second, and nobody is told."""
    place = context()
    body = place.cluster.get(CONSUMER_KIND, *KEY)
    assert body is not None
    sink(place, Deaf()).see(CONSUMER_KIND, WatchEvent(body))  # type: ignore[arg-type]  # no loops

    def conflict(*_: object, **__: object) -> Json:
        raise Conflict("modified")

    place.cluster.patch = conflict  # type: ignore[method-assign]  # as a proxy between
    assert reconcile(place, KEY, BEGIN, force_refresh=False).conflict == "modified"


def test_conflicts_without_end_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a reconcile a second, for as long as a proxy answers 409 to all that is written, and nobody is told. A few in a row are none."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.0)
    outcomes, told = itertools.count(1), list[str]()

    def refused(*_: object, **__: object) -> ReconcileResult:
        return ReconcileResult(datetime.now(UTC), conflict="modified" if next(outcomes) != 3 else None)

    async def scene() -> None:
        loops = Loops(context())
        loops.wake(KEY)
        await until(lambda: bool(told))
        await loops.stop()

    monkeypatch.setattr(loops_module, "reconcile", refused)
    monkeypatch.setattr(loops_module, "report_failing", lambda _context, _key, why, _now: told.append(why))
    asyncio.run(scene())
    assert told[0] == "modified"
    assert next(outcomes) > 3 + loops_module.TOLD_AFTER


def test_a_resource_that_waits_for_a_thread_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands wait when an operator starts. Liveness counts from the moment at which a reconcile begins."""
    monkeypatch.setattr(loops_module, "STUCK_AFTER", -1.0)
    go = threading.Event()

    def waits(*_: object, **__: object) -> ReconcileResult:
        go.wait(20)
        return ReconcileResult(None)

    async def scene() -> None:
        loops = Loops(context())
        for number in range(2 * THREADS):
            loops.wake(ResourceKey("default", f"r{number}"))
        await until(lambda: len(loops.stuck()) >= THREADS)
        assert len(loops.stuck()) == THREADS
        go.set()
        await until(lambda: not loops._tasks)
        assert loops.stuck() == []
        await loops.stop()

    monkeypatch.setattr(loops_module, "reconcile", waits)
    asyncio.run(scene())


def conditions(place: ReconcileContext) -> dict[str, tuple[str, str]]:
    status = (place.cluster.get(CONSUMER_KIND, *KEY) or {}).get("status") or {}
    return {item["type"]: (item["status"], item["reason"]) for item in status.get("conditions", ())}


def refusing_pods(place: ReconcileContext, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    fails, create, tries = [True], place.cluster.create, itertools.count()

    def create_or_fail(body: Json) -> Json:
        if fails and body["kind"] == "Pod":
            raise Unavailable(f"failed calling webhook w.example.com: connection {next(tries) // 20} refused")
        return create(body)

    monkeypatch.setattr(place.cluster, "create", create_or_fail)
    monkeypatch.setattr(place.cluster, "check", lambda _body: None)
    return fails.clear


def test_that_reconciles_fail_is_said_as_long_as_they_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reconcile that writes its status before an action fails writes that, too. Only one that succeeds takes it back, at once."""
    monkeypatch.setattr(loops_module, "LONGEST_PAUSE", 0.001)
    place = context()
    repair = refusing_pods(place, monkeypatch)
    seen: list[dict[str, tuple[str, str]]] = []

    def look() -> bool:
        seen.append(conditions(place))
        return sum("Stalled" in one for one in seen) > 60

    async def scene() -> None:
        loops = Loops(place)
        body = {"metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "u", "resourceVersion": "1"}, "spec": SPEC}
        sink(place, loops).see(CONSUMER_KIND, WatchEvent(place.cluster.get(CONSUMER_KIND, *KEY) or body))
        await until(look)
        repair()
        await until(lambda: "Stalled" not in conditions(place))
        await loops.stop()

    asyncio.run(scene())
    first = next(number for number, one in enumerate(seen) if "Stalled" in one)
    assert {one.get("Stalled") for one in seen[first:]} == {("True", "ReconcileFailed")}
    assert {one["Ready"] for one in seen[first:]} == {("Unknown", "ReconcileFailed")}
    assert not any("Reconciling" in one for one in seen[first:])
    assert conditions(place)["Ready"][1] != "ReconcileFailed"
