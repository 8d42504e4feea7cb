"""The process as it is put together: what starts in which order, and that nothing is handed over while something still acts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from simulated_cluster import BEGIN
from watch_places import written

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator import __main__ as main_module
from sluice_operator.__main__ import assembled, candidate_for
from sluice_operator.apply.events import EventWriter
from sluice_operator.election.thread import LeaderOnly, NotLeader
from sluice_operator.observe.cache import Cache
from sluice_operator.run import loops as loops_module
from sluice_operator.run.handlers import cleaner
from sluice_operator.run.loops import Loops
from sluice_operator.run.pool_events import BothLoops
from sluice_operator.run.services import LeaderService
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sluice_operator.run.handlers import BackgroundService


class Vote:
    def __init__(self, elected: Callable[[], None], told: list[str], port: LeaderOnly) -> None:
        self.elected, self.told, self.port = elected, told, port

    def start(self) -> None:
        self.told.append("stands")

    def stop(self) -> None:
        try:
            self.port.create({"kind": "Pod", "metadata": {"namespace": "a", "name": "b"}})
        except NotLeader:
            self.told.append("released")
        else:
            self.told.append("released while it acts")


def duty(told: list[str]) -> tuple[LeaderService, Loops, list[Vote]]:
    port, votes = LeaderOnly(MemoryCluster(lambda: BEGIN), lambda: True), list[Vote]()
    loops = Loops(ReconcileContext(port, Cache(), Settings()), leading=False)

    def stand(elected: Callable[[], None]) -> Any:
        votes.append(Vote(elected, told, port))
        return votes[0]

    return LeaderService(loops, port, stand), loops, votes


def test_who_is_elected_acts_and_who_ends_hands_over_last() -> None:
    """First no write is sent any more, then no pass is under way, then the Lease is released."""
    told = list[str]()

    async def scene() -> None:
        service, loops, votes = duty(told)
        await service.start()
        assert not loops._leading
        await asyncio.to_thread(votes[0].elected)
        await asyncio.sleep(0)
        assert loops._leading
        await service.stop()
        assert not loops._leading

    asyncio.run(scene())
    assert told == ["stands", "released"]


def test_a_pass_that_does_not_end_keeps_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """It might still write; the next leader waits the Lease out."""
    told = list[str]()

    async def never(_: Loops) -> bool:
        return False

    monkeypatch.setattr(loops_module.Loops, "stop", never)

    async def scene() -> None:
        service, _, _ = duty(told)
        await service.start()
        await service.stop()

    asyncio.run(scene())
    assert told == ["stands"]


def test_without_an_election_it_acts_at_once() -> None:
    async def scene() -> None:
        port = LeaderOnly(MemoryCluster(lambda: BEGIN), lambda: True)
        loops = Loops(ReconcileContext(port, Cache(), Settings()), leading=False)
        service = LeaderService(loops, port, None)
        await service.start()
        assert loops._leading
        await service.stop()

    asyncio.run(scene())


def test_services_stop_in_the_other_order() -> None:
    order = list[str]()

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def start(self) -> None:
            """Nothing."""

        async def stop(self) -> None:
            order.append(self.name)

    asyncio.run(cleaner([Named("server"), Named("audits"), Named("duty")])())
    assert order == ["duty", "audits", "server"]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig of a server that is not there; nothing is asked of it."""
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path, "http://127.0.0.1:9", "t")))


@pytest.mark.usefixtures("nowhere")
def test_the_process_is_complete() -> None:
    handlers = assembled(Settings(lease=("a", "b")))
    assert [handler.id for handler in handlers._activities.get_all_handlers()][:1] == ["configure"]
    assert {"start-0", "start-1", "start-2", "clean", "login"} <= {str(handler.id) for handler in handlers._activities.get_all_handlers()}
    names = {candidate._ref.identity for _ in range(2) if (candidate := candidate_for(Settings(lease=("a", "b"), identity="pod-1")))}
    assert len(names) == 2
    assert all(name.startswith("pod-1_") for name in names)
    assert candidate_for(Settings()) is None


@pytest.mark.usefixtures("nowhere")
def test_events_that_wait_are_written_while_the_process_still_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its duty ends, no write is sent any more."""
    made: list[BackgroundService] = []
    monkeypatch.setattr(main_module, "registry", made.extend)
    assembled(Settings())
    assert [type(service) for service in made[-2:]] == [LeaderService, EventWriter]


@pytest.mark.usefixtures("nowhere")
def test_reconciles_of_pools_are_counted_with_those_of_consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BackgroundService] = []
    monkeypatch.setattr(main_module, "registry", made.extend)
    assembled(Settings())
    (leader,) = (service for service in made if isinstance(service, LeaderService))
    assert isinstance(leader._loops, BothLoops)
    assert leader._loops.pools._metrics is leader._loops.consumers._metrics


def test_settings_come_from_the_environment() -> None:
    environment = {
        "WATCH_NAMESPACES": "a, b",
        "SLUICE_CONSUMER_IMAGE": "i",
        "POD_NAME": "p",
        "SLUICE_LEASE": "n/l",
        "SLUICE_PORT": "9",
        "SLUICE_LOG_FORMAT": "plain",
        "SLUICE_CLASS": "blue",
    }
    expected = Settings(image="i", namespaces=("a", "b"), identity="p", lease=("n", "l"), port=9, log_format="plain", resource_class="blue")
    assert read(environment) == expected
    assert read({}) == Settings()
    assert read({"SLUICE_LEASE": "no-slash"}).lease is None
