"""A small HTTP proxy in front of an emulator, with weather: it passes calls on, delays them, refuses them, or loses them.

What a service of AWS does on a bad day, at the place where it would come from. One thread a connection; what was said last holds for every call
that begins after it.
"""

import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

import cbor2

UPSTREAM_SECONDS = 30.0
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date"}
CBOR = "cbor"


class CallOutcome(StrEnum):
    """What becomes of a call.

    THROTTLED is answered 400 with the service's own word for it, FAILED 500. CUT is neither passed on nor answered: the connection is closed.
    LOST is passed on, done by the service, and its reply is not handed back.
    """

    PASSED = "passed"
    THROTTLED = "throttled"
    FAILED = "failed"
    CUT = "cut"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Weather:
    """What happens to calls: `kind` to a `share` of them (0 to 1), all after `delay` seconds."""

    kind: CallOutcome = CallOutcome.PASSED
    share: float = 1.0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Upstream:
    """The service behind: where it listens, and its word for throttling."""

    endpoint: str
    throttling: str = "ProvisionedThroughputExceededException"


FAIR = Weather()


class Proxy:
    """A proxy that serves; `weather` may be set at any time, `calls` counts what became of them."""

    def __init__(self, upstream: Upstream, host: str, seed: int = 0) -> None:
        self.upstream, self.weather = upstream, FAIR
        self.calls: Counter[CallOutcome] = Counter()
        self._dice, self._lock = random.Random(seed), Lock()  # noqa: S311 - replayable, not secret
        self._server = _Server((host, 0), self)
        self.endpoint = f"http://{host}:{self._server.server_address[1]}"
        self.port = int(self._server.server_address[1])

    def start(self) -> None:
        """Serve, until `stop`."""
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="proxy", daemon=True).start()

    def stop(self) -> None:
        """End; connections that are open end with the process."""
        self._server.shutdown()
        self._server.server_close()

    def decide(self) -> Weather:
        """What becomes of the next call; it is counted."""
        with self._lock:
            weather = self.weather
            found = weather if self._dice.random() < weather.share else FAIR
            self.calls[found.kind] += 1
        return found


@contextmanager
def proxy(upstream: Upstream, host: str, seed: int = 0) -> Iterator[Proxy]:
    """A proxy while the block lasts."""
    found = Proxy(upstream, host, seed)
    found.start()
    try:
        yield found
    finally:
        found.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: Proxy) -> None:
        self.owner = owner
        super().__init__(address, _ProxyHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away: it was killed, which is what this is for."""


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server
    _behind: http.client.HTTPConnection | None = None

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        weather = self.server.owner.decide()
        time.sleep(weather.delay)
        match weather.kind:
            case CallOutcome.THROTTLED:
                self._refuse(400, self.server.owner.upstream.throttling)
            case CallOutcome.FAILED:
                self._refuse(500, "InternalServerError")
            case CallOutcome.CUT:
                self.close_connection = True
            case CallOutcome.LOST:
                self._ask(body)
                self.close_connection = True
            case CallOutcome.PASSED:
                self._answer(*self._ask(body))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """It is read by no caller."""

    def finish(self) -> None:
        if self._behind is not None:
            self._behind.close()
        super().finish()

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """The service's answer; once more over a new connection if the kept one had been closed by it."""
        for _ in range(2):
            fresh = self._behind is None
            try:
                return self._asked(body)
            except (OSError, http.client.HTTPException):
                self._behind = None
                if fresh:
                    break
        return 503, [("Content-Type", "text/plain")], b""

    def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if self._behind is None:
            self._behind = http.client.HTTPConnection(urlsplit(self.server.owner.upstream.endpoint).netloc, timeout=UPSTREAM_SECONDS)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        self._behind.request(self.command, self.path, body, headers)
        reply = self._behind.getresponse()
        return reply.status, reply.getheaders(), reply.read()

    def _refuse(self, status: int, code: str) -> None:
        """An error as the service words it, in the format that was spoken."""
        kind = self.headers.get("Content-Type") or "application/x-amz-json-1.1"
        refusal: dict[str, Any] = {"__type": code, "message": "the nemesis refuses this call"}
        body = cbor2.dumps(refusal) if CBOR in kind else json.dumps(refusal).encode()
        self._answer(status, [("Content-Type", kind), ("x-amzn-errortype", code)], body)

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
