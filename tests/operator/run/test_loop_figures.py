"""What wakes a loop: figures when they are due, and silence, which asks for a live look."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from loop_cases import a_while, context, passes, until
from simulated_cluster import KEY

from sluice_operator.run import loops as loops_module
from sluice_operator.run.loops import Loops
from sluice_operator.run.schedule import ReconcileResult


def test_figures_wake_nobody_before_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand drivers report two hundred times a second; what matters is looked at as soon as it comes."""
    seen = passes(monkeypatch, [], figures=60)

    async def scene() -> None:
        loops = Loops(context())
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
        loops = Loops(context())
        loops.wake(KEY)
        await until(lambda: len(seen) == 1 and KEY in loops._figures)
        loops.wake(KEY, matters=False)
        await until(lambda: len(seen) == 2)
        await loops.stop()

    asyncio.run(scene())


@pytest.mark.parametrize(("ago", "latest", "looks"), [(1, 60, 1), (100, 60, 2), (1, 0, 2), (1, None, 2)])
def test_a_report_puts_off_the_look_for_silence(monkeypatch: pytest.MonkeyPatch, ago: int, latest: int | None, looks: int) -> None:
    """For as long as a look may be old, and not if time was to bring anything else. A thousand resources were eleven idle passes a second."""
    place, seen, now = context(), list[bool](), datetime.now(UTC)
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
        loops = Loops(context())
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
        loops = Loops(context())
        loops.wake(KEY)
        await until(lambda: len(seen) == 2)
        await loops.stop()

    asyncio.run(scene())
    assert seen == [False, False]
