"""A small HTTP proxy in front of an emulator: it forwards calls, delays them, fails them, or loses their replies.

It imitates the failures of an AWS service, and clients meet them at the service's endpoint. Each connection has one thread. A new behaviour applies
to every call that begins after it was set.
"""

import http
import http.client
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

from sluice_lab.aws import refusals
from sluice_lab.aws.refusals import Refuse

UPSTREAM_SECONDS = 30.0
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date", "expect"}


class CallOutcome(StrEnum):
    """What happens to a call.

    PASSED: forwarded, and answered. THROTTLED: refused with the service's own error. FAILED: answered 500. CUT: neither forwarded nor
    answered; the connection is closed. LOST: forwarded and carried out, but its reply is not returned.
    """

    PASSED = "passed"
    THROTTLED = "throttled"
    FAILED = "failed"
    CUT = "cut"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What happens to calls: `outcome` to a `share` of them (0 to 1), after `delay` seconds. The rest passes at once."""

    outcome: CallOutcome = CallOutcome.PASSED
    share: float = 1.0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Upstream:
    """The service behind the proxy: its endpoint, and how it refuses calls."""

    endpoint: str
    refuse: Refuse = refusals.aws_json


@dataclass(frozen=True, slots=True)
class ProxiedCall:
    """A call as it came in; `headers` are looked up in any case."""

    method: str
    path: str
    headers: Message
    body: bytes


ProxiedReply = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""
NORMAL = Behaviour()


class Proxy:
    """A proxy of one service.

    Attributes:
        behaviour: towards calls; may be set at any time.
        before: gets the method and the path of every call before it is forwarded, and may hold it.
        around: answers a call that passes; it may forward it by the function that it gets, refuse it, or change the reply.
    """

    def __init__(self, upstream: Upstream, host: str, seed: int = 0) -> None:
        self.upstream, self.behaviour = upstream, NORMAL
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self.around: Callable[[ProxiedCall, Callable[[], ProxiedReply]], ProxiedReply] = lambda _call, forward: forward()
        self._rng, self._lock = random.Random(seed), Lock()  # noqa: S311 - replayable, not secret
        self._server = _Server((host, 0), self)
        self.endpoint = f"http://{host}:{self._server.server_address[1]}"
        self.port = int(self._server.server_address[1])

    def start(self) -> None:
        """Serve until `stop`."""
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="proxy", daemon=True).start()

    def stop(self) -> None:
        """Stop serving. Open connections end with the process."""
        self._server.shutdown()
        self._server.server_close()

    def decide(self) -> Behaviour:
        """The behaviour towards the next call."""
        with self._lock:
            current = self.behaviour
            return current if self._rng.random() < current.share else NORMAL


@contextmanager
def proxy(upstream: Upstream, host: str, seed: int = 0) -> Iterator[Proxy]:
    """A proxy that serves while the block lasts."""
    running = Proxy(upstream, host, seed)
    running.start()
    try:
        yield running
    finally:
        running.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: Proxy) -> None:
        self.owner = owner
        super().__init__(address, _ProxyHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of a client that was killed: the nemesis kills clients."""


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def do_POST(self) -> None:
        self._call()

    def do_GET(self) -> None:
        self._call()

    def do_PUT(self) -> None:
        self._call()

    def do_DELETE(self) -> None:
        self._call()

    def do_HEAD(self) -> None:
        self._call()

    def _call(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        behaviour = self.server.owner.decide()
        time.sleep(behaviour.delay)
        self.server.owner.before(self.command, self.path)
        match behaviour.outcome:
            case CallOutcome.THROTTLED:
                self._refuse(throttled=True)
            case CallOutcome.FAILED:
                self._refuse(throttled=False)
            case CallOutcome.CUT:
                self.close_connection = True
            case CallOutcome.LOST:
                self._ask(body)
                self.close_connection = True
            case CallOutcome.PASSED:
                call = ProxiedCall(self.command, self.path, self.headers, body)
                self._answer(*self.server.owner.around(call, lambda: self._ask(body)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""

    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        super().finish()

    def _ask(self, body: bytes) -> ProxiedReply:
        """The service's reply. If the service had closed the kept connection, the call is sent once more over a new one."""
        for _ in range(2):
            fresh = self._upstream is None
            try:
                return self._asked(body)
            except (OSError, http.client.HTTPException):
                self._upstream = None
                if fresh:
                    break
        return 503, [("Content-Type", "text/plain")], b""

    def _asked(self, body: bytes) -> ProxiedReply:
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection(urlsplit(self.server.owner.upstream.endpoint).netloc, timeout=UPSTREAM_SECONDS)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        self._upstream.request(self.command, self.path, body or None, headers)
        reply = self._upstream.getresponse()
        return reply.status, reply.getheaders(), reply.read()

    def _refuse(self, *, throttled: bool) -> None:
        """Answer with an error like the service's own."""
        refusal = self.server.owner.upstream.refuse(self.headers.get("Content-Type") or "", throttled)
        headers = [("Content-Type", refusal.kind), *([("x-amzn-errortype", refusal.code)] if refusal.code else [])]
        self._answer(refusal.status, headers, refusal.body)

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        if status != http.HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", _length(self.command, headers, body))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()


def _length(command: str, headers: list[tuple[str, str]], body: bytes) -> str:
    """Of the body; a HEAD's reply names that of a body which it does not have."""
    named = {name.lower(): value for name, value in headers}
    return named.get("content-length", "0") if command == "HEAD" else str(len(body))
