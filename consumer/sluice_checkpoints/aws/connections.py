"""Keeps connections to one service between calls. urllib3 opens them; requests and replies on them are our own code.

Two thirds of a small call's CPU was what urllib3 and the standard library do for each request and reply (docs/performance.md). Host names are
resolved within a time limit: the system's resolver has none, and waits for as long as its servers do not answer.
"""

from __future__ import annotations

import functools
import math
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util.ssl_ import create_urllib3_context

from sluice_checkpoints.aws import response
from sluice_checkpoints.aws.response import HttpReply

T = TypeVar("T")
PORTS = {"http": 80, "https": 443}


class Names:
    """Looks names up in threads of their own. Thread safe.

    Callers that ask for the same name share one look-up. So a server that does not answer holds one thread for each name.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, Future[list[str]]] = {}

    def addresses(self, host: str, limit: float) -> list[str]:
        """The addresses of a host, in the system's order of preference.

        Raises:
            OSError: there are none, or none came within `limit` seconds.
        """
        with self._lock:
            answer = self._asked.get(host)
            if answer is None or answer.done():
                answer = self._asked[host] = Future()
                threading.Thread(target=_look_up, args=(host, answer), name="names", daemon=True).start()
        try:
            return answer.result(limit)
        except TimeoutError:
            raise TimeoutError(f"no address of {host} came within {limit:g} s: does the name server answer?") from None


def _look_up(host: str, answer: Future[list[str]]) -> None:
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        answer.set_result(list(dict.fromkeys(str(address[0]) for *_, address in addresses)))
    except Exception as error:  # noqa: BLE001 - the waiting caller gets it
        answer.set_exception(error)


NAMES = Names()


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds to wait for the host's addresses, again for a connection, and for (more of) a reply; and for a `whole` call, however much has come."""

    connect: float
    read: float
    whole: float = math.inf


class Connections:
    """Calls to one host. Thread safe; `keep` connections are kept open, and each call has one to itself."""

    def __init__(self, host: str, make: Callable[[], socket.socket], keep: int, whole: float = math.inf) -> None:
        """`host` is sent as the header. `whole`: seconds that a call may take."""
        self._host, self._make, self._keep, self._whole = host, make, keep, whole
        self._idle: deque[socket.socket] = deque()

    def request(self, method: str, url: str, body: bytes, headers: Mapping[str, str], timeout: float = math.inf) -> HttpReply:
        """One call, made once; its reply whatever it says. Of the URL only path and query are looked at.

        Beside `whole`, it may take `timeout` seconds once there is a connection.

        Raises:
            HTTPError: no connection, or no whole reply.
            OSError: the connection broke, or a wait was too long.
            ValueError: a header is more than a line.
        """
        lines = [f"{method} {_target(url)} HTTP/1.1", f"Host: {self._host}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join((*lines, "", ""))
        if head.count("\n") != len(lines) + 1:
            raise ValueError(f"a line break in the headers {', '.join(headers)}: is there one in a credential?")
        began = time.monotonic()
        connection = self._taken()
        ends = min(began + self._whole, time.monotonic() + timeout)
        try:
            connection.sendall(head.encode("latin-1") + body)
            reply = response.read(connection if math.isinf(ends) else _Bounded(connection, ends))
        except BaseException:
            connection.close()  # what comes next on it is not known
            raise
        self._give_back(connection, last=reply.last)
        return reply

    def _taken(self) -> socket.socket:
        """The connection used last, for it is the least likely to have been closed since.

        A connection that was closed has bytes to read, although nothing was asked.
        """
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if not _speaks(connection):
                return connection
            connection.close()
        return self._make()

    def _give_back(self, connection: socket.socket, *, last: bool) -> None:
        if last or len(self._idle) >= self._keep:
            connection.close()
        else:
            self._idle.append(connection)


class _Bounded:
    """A connection that is read from until a time: each receive waits as long as ever, and no longer than what is left."""

    def __init__(self, connection: socket.socket, ends: float) -> None:
        self._connection, self._ends, self._wait = connection, ends, connection.gettimeout()

    def recv(self, size: int, /) -> bytes:
        return self._within(lambda: self._connection.recv(size))

    def recv_into(self, buffer: memoryview, /) -> int:
        return self._within(lambda: self._connection.recv_into(buffer))

    def _within(self, receive: Callable[[], T]) -> T:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the call took too long as a whole")
        self._connection.settimeout(left if self._wait is None else min(self._wait, left))
        try:
            return receive()
        finally:
            self._connection.settimeout(self._wait)


def _speaks(connection: socket.socket) -> bool:
    """Whether there is something to read, if only that the other side has closed."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def connections(url: str, waits: TimeLimits, keep: int, authorities: str) -> Connections:
    """Calls to the host of `url`, whose certificate one of the `authorities` (a file) has signed."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    context = _trusting(authorities) if secure else None
    port = parts.port or PORTS[parts.scheme]
    return Connections(host_header(url), functools.partial(_open, parts.hostname or "", port, context, waits), keep, waits.whole)


def host_header(url: str) -> str:
    """`Host`, as it is signed: without the port that is the scheme's anyway."""
    parts = urlsplit(url)
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return name if parts.port in {None, PORTS[parts.scheme]} else f"{name}:{parts.port}"


@functools.lru_cache
def _target(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(("", "", parts.path or "/", parts.query, ""))


def _trusting(authorities: str) -> ssl.SSLContext:
    """urllib3's settings. One for all connections: to read the authorities takes longer than a handshake."""
    context = create_urllib3_context()
    context.load_verify_locations(authorities)
    return context


def _open(host: str, port: int, context: ssl.SSLContext | None, waits: TimeLimits) -> socket.socket:
    """A new connection, to the first of the host's addresses that takes one."""
    failed: Exception | None = None
    ends = time.monotonic() + waits.whole
    for address in NAMES.addresses(host, waits.connect):
        if failed and time.monotonic() >= ends:
            break
        try:
            return _connected(address, port, (context, host), waits)
        except (HTTPError, OSError) as error:
            failed = error
    raise failed or OSError(f"{host} has no address")


def _connected(address: str, port: int, trusted: tuple[ssl.SSLContext | None, str], waits: TimeLimits) -> socket.socket:
    """A new connection to an address; encrypted if there is a context, and then the certificate is the host's."""
    context, host = trusted
    if context is None:
        made = HTTPConnection(address, port, timeout=waits.connect)
    else:
        made = HTTPSConnection(address, port, timeout=waits.connect, ssl_context=context, cert_reqs="CERT_REQUIRED", server_hostname=host)
    try:
        made.connect()
    except BaseException:
        made.close()
        raise
    connection: socket.socket = made.sock
    connection.settimeout(waits.read)
    return connection
