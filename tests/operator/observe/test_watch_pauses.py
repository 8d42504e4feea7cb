"""A watch that ends pauses before the next try, longer each time, until one has lived for a while; however the server ends it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self, cast

import pytest

from sluice_operator.observe import watch
from sluice_operator.observe.watch import Watch, WatchServer

BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}\n'
ERROR = b'{"type":"ERROR","object":{"code":500,"message":"overloaded"}}\n'
EXPIRED = b'{"type":"ERROR","object":{"code":410,"message":"too old"}}\n'
AHEAD = b'{"type":"ERROR","object":{"code":504,"message":"Timeout: Too large resource version: 1000, current: 905"}}\n'  # after etcd was restored
PAUSES = (7.0, 8.0, 9.0)


def _error(code: int) -> bytes:
    return json.dumps({"type": "ERROR", "object": {"code": code}}).encode() + b"\n"


class Reply:
    """What aiohttp gives back: bytes in pieces. A number among them is seconds that pass without a byte."""

    connection = None

    def __init__(self, server: FakeServer, pieces: Sequence[bytes | float], status: int = 200) -> None:
        self._server, self._pieces, self.content, self.status, self.ok = server, pieces, self, status, status < 400

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def read(self) -> bytes:
        return b"".join(piece for piece in self._pieces if isinstance(piece, bytes))

    async def text(self) -> str:
        return ""

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                self._server.now += piece


class FakeServer:
    """Lists nothing, and ends every watch as it is told to. It ends the scene at the fifth pause or the twentieth watch."""

    def __init__(self, pieces: Sequence[bytes | float], status: int) -> None:
        self.now, self.watches, self.lists, self.slept, self._pieces, self._status = 0.0, 0, 0, list[float](), pieces, status

    def get(self, _path: str, query: dict[str, Any], _silent: float, _accept: str = "") -> Reply:
        if "watch" not in query:
            self.lists += 1
            return Reply(self, [json.dumps({"metadata": {"resourceVersion": "5"}, "items": []}).encode()])
        self.watches += 1
        if self.watches == 20:
            raise asyncio.CancelledError
        return Reply(self, self._pieces, self._status)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if len(self.slept) == 5:
            raise asyncio.CancelledError


def played(pieces: Sequence[bytes | float], monkeypatch: pytest.MonkeyPatch, status: int = 200) -> FakeServer:
    server = FakeServer(pieces, status)
    monkeypatch.setattr(watch, "PAUSES", PAUSES)
    monkeypatch.setattr(asyncio, "sleep", server.sleep)
    one = Watch(cast("WatchServer", server), "Pod", "shop", lambda _kind, _event: None, lambda: server.now)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(one.run())
    return server


@pytest.mark.parametrize(
    "pieces",
    [[], [BOOKMARK], [ERROR], [EXPIRED], [BOOKMARK, ERROR], [BOOKMARK, EXPIRED], [100.0], [BOOKMARK, 1.0, BOOKMARK], [b"\x00\n[]\n"]],
    ids=["end", "bookmark, end", "error", "410", "bookmark, error", "bookmark, 410", "silence", "a second", "rubbish"],
)
def test_a_watch_that_ends_soon_is_not_begun_again_at_once(
    pieces: list[bytes | float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        server = played(pieces, monkeypatch)
    assert server.slept == [7.0, 8.0, 9.0, 9.0, 9.0]
    assert server.watches == 5
    assert caplog.text.count("Pods in namespace shop are not watched: ") == 1


@pytest.mark.parametrize(("pieces", "lists"), [([], 1), ([BOOKMARK], 1), ([BOOKMARK, ERROR], 5), ([EXPIRED], 5), ([AHEAD], 5)])
def test_a_version_that_the_server_refuses_is_not_asked_for_again(pieces: list[bytes | float], lists: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(pieces, monkeypatch).lists == lists


@pytest.mark.parametrize(("status", "lists"), [(429, 1), (400, 5), (403, 5), (410, 5), (500, 5), (504, 5)])
def test_a_server_that_is_busy_is_not_asked_for_a_whole_list(status: int, lists: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of the version, and a list costs it more. Any other status may be about the version."""
    assert played([], monkeypatch, status).lists == played([_error(status)], monkeypatch).lists == lists


@pytest.mark.parametrize("end", [[], [ERROR], [EXPIRED]], ids=["end", "error", "410"])
def test_a_watch_that_has_lived_for_a_while_is_taken_up_at_once(
    end: list[bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        server = played([BOOKMARK, 60.0, BOOKMARK, *end], monkeypatch)
    assert (server.slept, server.watches) == ([], 20)
    assert "not watched" not in caplog.text
