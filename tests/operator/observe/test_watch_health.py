"""Probes say the truth: a stuck watch, a stuck pass, a silent API server, a stuck event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp.test_utils import unused_port
from simulated_cluster import KEY

from sluice_operator.__main__ import problems
from sluice_operator.cluster.port import Rejected, Unavailable
from sluice_operator.observe import watch_health
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.watch_health import LATE_AFTER, STUCK_AFTER, UNHEARD_AFTER, Freshness, audited
from sluice_operator.run.loops import Loops
from sluice_operator.run.services import Audits
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings
from sluice_operator.telemetry.metrics import OperatorMetrics
from sluice_operator.telemetry.serving import HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable


class Live:
    def __init__(self, **pods: str) -> None:
        self.pods, self.error, self.during = pods, list[Exception](), list["Callable[[], None]"]()
        self.asked: list[tuple[str, str, str]] = []

    def versions(self, kind: str, namespace: str, selector: str) -> dict[str, str]:
        self.asked.append((kind, namespace, selector))
        if self.error:
            raise self.error[0]
        found = dict(self.pods) if kind == "Pod" else {}
        while self.during:
            self.during.pop()()
        return found


class Hours:
    def __init__(self) -> None:
        self.now = 0.0
        self.fresh = Freshness(lambda: self.now)

    def audit(self, live: Live, *namespaces: str) -> None:
        self.now += 1
        audited(self.fresh, live, namespaces)


@pytest.fixture
def hours() -> Hours:
    found = Hours()
    found.fresh.shown("Pod", "a", "1")
    found.audit(Live(a="1"))
    return found


def test_a_watch_in_which_nothing_happens_is_not_stuck(hours: Hours) -> None:
    for _ in range(100):
        hours.now += 30
        hours.audit(Live(a="1"))
    assert hours.fresh.stuck() == []
    assert hours.fresh.cold() == []


def test_a_watch_that_does_not_show_what_a_list_shows_is_stuck(hours: Hours) -> None:
    hours.audit(Live(a="2"))
    hours.now += LATE_AFTER
    assert hours.fresh.cold() == ["Pods are seen late"]
    assert hours.fresh.stuck() == []
    hours.audit(Live(a="3"))
    hours.now += STUCK_AFTER - LATE_AFTER
    assert hours.fresh.stuck() == ["Pod"]
    assert hours.fresh.behind()["Job"] == 0


@pytest.mark.parametrize("gone", [False, True])
def test_what_comes_late_is_forgiven(hours: Hours, gone: bool) -> None:  # noqa: FBT001 - a factor of the test
    hours.audit(Live(a="2"))
    hours.now += STUCK_AFTER
    hours.fresh.shown("Pod", "a", "5", gone=gone)
    assert hours.fresh.stuck() == []


def test_an_event_that_overtakes_the_list_counts(hours: Hours) -> None:
    """The list was made before it; no further event would come."""
    live = Live(a="2")
    live.during.append(lambda: hours.fresh.shown("Pod", "a", "3"))
    hours.fresh.audit(live, ())
    hours.now += STUCK_AFTER
    assert hours.fresh.stuck() == []


def test_what_is_gone_is_owed_no_more(hours: Hours) -> None:
    """A watch that begins again never tells what went in between."""
    hours.audit(Live(b="1"), "ns")
    hours.now += STUCK_AFTER
    hours.audit(Live(), "other")
    assert hours.fresh.stuck() == ["Pod"]
    hours.audit(Live(), "ns")
    assert hours.fresh.stuck() == []


def test_a_silent_api_server_makes_it_unready_but_not_dead(hours: Hours) -> None:
    """A new start would not help."""
    live = Live()
    live.error.append(Unavailable("no answer"))
    hours.now += UNHEARD_AFTER
    hours.audit(live)
    assert hours.fresh.cold() == ["the API server does not answer"]
    assert hours.fresh.stuck() == []


def test_no_error_ends_the_audits(hours: Hours) -> None:
    live = Live()
    live.error.append(TypeError("not a list"))
    hours.now += UNHEARD_AFTER
    hours.audit(live)
    assert hours.fresh.cold()
    hours.audit(Live())
    assert hours.fresh.cold() == []


def test_before_the_first_audit_nobody_is_ready() -> None:
    assert Freshness().cold() == ["the API server does not answer"]


def test_a_namespace_that_may_not_be_read_is_passed_over(hours: Hours) -> None:
    """It is being deleted, perhaps; the others are looked after."""
    live = Live()
    live.error.append(Rejected("Forbidden", "no"))
    hours.now += UNHEARD_AFTER
    hours.audit(live, "a", "b")
    assert len(live.asked) == 2 * len(watch_health.SAMPLES)
    assert hours.fresh.cold() == []


def test_only_a_pass_that_hangs_and_a_stuck_watch_kill(hours: Hours) -> None:
    loops = Loops(ReconcileContext(None, Cache(), Settings()))  # type: ignore[arg-type]  # no call is made
    assert list(problems(loops, hours.fresh)) == []
    loops._reconciles[KEY] = -1e9
    hours.audit(Live(a="2"))
    hours.now += STUCK_AFTER
    assert list(problems(loops, hours.fresh)) == ["the reconcile of default/orders hangs", "the watch of Pods shows nothing any more"]


async def asked(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/{path}") as reply:
        return reply.status, await reply.text()


def test_probes_and_metrics_are_served_on_one_port() -> None:
    dead = list[str]()

    async def scene() -> None:
        port = unused_port()
        server = HttpServer(port, lambda: dead, lambda: ["cold"], OperatorMetrics().registry)
        await server.start()
        assert await asked(port, "healthz") == (200, "ok")
        assert await asked(port, "readyz") == (503, "cold")
        dead.extend(["a", "b"])
        assert await asked(port, "healthz") == (503, "a\nb")
        status, text = await asked(port, "metrics")
        assert (status, "sluice_reconcile_queue" in text) == (200, True)
        with pytest.raises(OSError, match="in use"):
            await HttpServer(port, list, list, OperatorMetrics().registry).start()
        await server.stop()

    asyncio.run(scene())


def test_audits_begin_with_the_process_and_end_with_it() -> None:
    """The first one at once: readiness waits for it."""
    live, fresh = Live(), Freshness()

    async def scene() -> None:
        audits = Audits(fresh, live, ("a",))
        await audits.start()
        for _ in range(1000):
            if not fresh.cold():
                break
            await asyncio.sleep(0.005)
        await audits.stop()
        await audits.stop()

    asyncio.run(scene())
    assert {namespace for _, namespace, _ in live.asked} == {"a"}
