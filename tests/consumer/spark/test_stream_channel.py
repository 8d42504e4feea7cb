"""Calls over the socket: answers, errors, and who may ask."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.spark.stream_reader import ChannelClient, ChannelFailed, ChannelServer, serving


def refuse(*_: Any) -> None:
    raise Refused("the table is another's")


@pytest.fixture
def address() -> Iterator[str]:
    with serving({"echo": lambda *values: list(values), "refuse": refuse}) as address:
        yield address


def test_an_answer_is_what_the_other_side_returned(address: str) -> None:
    caller = ChannelClient(address)
    assert caller.ask("echo", {"batch": 1}, None) == [{"batch": 1}, None]
    caller.close()


def test_an_error_keeps_its_name_and_words_and_the_conversation_goes_on(address: str) -> None:
    caller = ChannelClient(address)
    with pytest.raises(ChannelFailed, match="Refused: the table is another's"):
        caller.ask("refuse")
    with pytest.raises(ChannelFailed, match="KeyError"):
        caller.ask("what")
    assert caller.ask("echo") == []
    caller.close()


def test_two_at_a_time_are_refused(address: str) -> None:
    """A union of the stream with itself; the first goes on."""
    first, second = ChannelClient(address), ChannelClient(address)
    first.ask("echo")
    with pytest.raises(ChannelFailed, match="read this source once"):
        second.ask("echo")
    assert first.ask("echo", 1) == [1]
    first.close()
    second.close()


def test_one_after_the_other_is_answered(address: str) -> None:
    """Spark may start its planner again."""
    for n in range(3):
        caller = ChannelClient(address)
        while True:  # the server may hear of the end of the last one a moment later
            try:
                assert caller.ask("echo", n) == [n]
                break
            except ChannelFailed:
                caller.close()
                caller = ChannelClient(address)
        caller.close()


def test_no_thread_stays_behind() -> None:
    """A notebook may open many sources one after the other."""
    before = set(threading.enumerate())
    with serving({"echo": lambda: 1}) as address:
        caller = ChannelClient(address)
        caller.ask("echo")
        caller.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_it_closes_though_a_client_came_at_that_very_moment(tmp_path: Path) -> None:
    """Then its thread has ended already, and its socket is gone."""
    server = ChannelServer({}, str(tmp_path / "planner"))
    server._over.set()
    Client(server._address, "AF_UNIX").close()
    server._thread.join(30)
    server.close()
    assert not server._thread.is_alive()


def test_only_this_user_can_reach_it_and_nothing_stays_behind() -> None:
    with serving({}) as address:
        directory = Path(address).parent
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert not directory.exists()
    with pytest.raises(OSError, match="No such file"):
        ChannelClient(address).ask("echo")
