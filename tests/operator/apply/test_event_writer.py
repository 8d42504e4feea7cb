"""Events are written beside the passes, and what cannot be written harms nothing."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE
from simulated_cluster import BEGIN

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.apply.events import EventWriter
from sluice_operator.cluster.port import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_operator.cluster.port import Json


def event(number: int) -> Json:
    return {"kind": "Event", "reason": f"Reason{number}", "metadata": {"namespace": "shop", "name": f"orders.{number}"}}


POD: Json = {"kind": "Pod", "metadata": {"namespace": "shop", "name": "orders-driver-1"}}


class Server(MemoryCluster):
    def __init__(self) -> None:
        super().__init__(lambda: BEGIN)
        self.gates = [Event() for _ in range(4)]
        self.begun = [Event() for _ in range(4)]
        self.fails = dict[str, Exception]()
        self.written = list[str]()

    def let(self, *numbers: int) -> None:
        for number in numbers:
            self.gates[number].set()

    def create(self, body: Json) -> Json:
        name = body["metadata"]["name"]
        if body["kind"] == "Event":
            number = int(name.rpartition(".")[2])
            self.begun[number].set()
            assert self.gates[number].wait(PATIENCE)
        if name in self.fails:
            raise self.fails[name]
        self.written.append(name)
        return body


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.let(0, 1, 2, 3)


def test_a_pod_does_not_wait_for_events(server: Server) -> None:
    recorder = EventWriter(server)
    for number in range(3):
        recorder.create(event(number))
    assert server.begun[0].wait(PATIENCE)
    recorder.create(POD)
    assert server.written == ["orders-driver-1"]
    server.let(0, 1, 2, 3)
    asyncio.run(recorder.stop())
    assert server.written == ["orders-driver-1", "orders.0", "orders.1", "orders.2"]


def test_an_event_that_is_not_written_keeps_none_back(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.let(0, 1, 2, 3)
    server.fails = {"orders.0": Unavailable("not now"), "orders.1": RuntimeError("a fault of ours")}
    recorder = EventWriter(server)
    for number in range(3):
        recorder.create(event(number))
    asyncio.run(recorder.stop())
    assert server.written == ["orders.2"]
    assert "event Reason0 not written: not now" in caplog.text
    assert "a fault of ours" in caplog.text


def test_no_more_wait_than_there_is_room_for(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """An API server that takes no events does not eat the operator's memory; later there is room again."""
    recorder = EventWriter(server, most=2)
    for number in range(3):
        recorder.create(event(number))
    assert "event Reason2 not written: 2 others wait" in caplog.text
    server.let(0)
    assert server.begun[1].wait(PATIENCE)
    recorder.create(event(3))
    server.let(1, 3)
    asyncio.run(recorder.stop())
    assert server.written == ["orders.0", "orders.1", "orders.3"]


def test_the_end_does_not_wait_for_ever(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an event says stands in the conditions, too; the one under way is left to itself."""
    monkeypatch.setattr("sluice_operator.apply.events.LAST_WORDS", 0.0)
    recorder = EventWriter(server)
    recorder.create(event(0))
    assert server.begun[0].wait(PATIENCE)
    recorder.create(event(1))

    async def end() -> None:
        await recorder.stop()
        server.let(0, 1, 2, 3)

    asyncio.run(end())
    assert server.written == ["orders.0"]


def test_whoever_comes_after_the_end_writes_in_the_call(server: Server) -> None:
    server.let(0, 1, 2, 3)
    recorder = EventWriter(server)
    asyncio.run(recorder.stop())
    recorder.create(event(0))
    assert server.written == ["orders.0"]
