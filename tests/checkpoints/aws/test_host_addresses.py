"""Names are looked up within a time limit."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sluice_checkpoints.aws.connections import Names


class System:
    def __init__(self) -> None:
        self.asked, self.go = list[str](), threading.Event()

    def getaddrinfo(self, host: str, _port: None, type: int) -> list[Any]:  # noqa: A002 - its name there
        self.asked.append(host)
        self.go.wait(30)
        return [(0, type, 6, "", (address, 0)) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1")]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    made = System()
    monkeypatch.setattr("sluice_checkpoints.aws.connections.socket.getaddrinfo", made.getaddrinfo)
    return made


def test_a_name_server_that_does_not_answer_is_not_waited_for_for_ever(system: System) -> None:
    """A heartbeat is given up in time, and sent again; the look-up under way is asked no second time."""
    names = Names()
    for _ in range(3):
        with pytest.raises(TimeoutError, match=r"no address of a\.example came within 0 s"):
            names.addresses("a.example", 0.0)
    assert system.asked == ["a.example"]
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(names.addresses, "a.example", 30.0)
        system.go.set()
        assert late.result(30) == ["10.0.0.1", "10.0.0.2"]


def test_a_name_is_looked_up_for_every_new_connection(system: System) -> None:
    """Services change their addresses."""
    system.go.set()
    names = Names()
    for _ in range(2):
        names.addresses("a.example", 30.0)
    assert system.asked == ["a.example"] * 2


def test_a_name_that_nobody_has_is_an_error() -> None:
    with pytest.raises(socket.gaierror):
        Names().addresses("a name.invalid", 30.0)
