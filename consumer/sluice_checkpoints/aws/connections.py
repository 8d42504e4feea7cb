"""Keeps connections to one service between calls. urllib3 opens them; requests and replies on them are our own code.

Two thirds of a small call's CPU was what urllib3 and the standard library do for each request and reply (docs/performance.md).
"""

from __future__ import annotations

import functools
import select
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from socket import socket
from urllib.parse import urlsplit, urlunsplit

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util.ssl_ import create_urllib3_context

from sluice_checkpoints.aws import response
from sluice_checkpoints.aws.host_addresses import Names
from sluice_checkpoints.aws.response import HttpReply

PORTS = {"http": 80, "https": 443}
NAMES = Names()


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds to wait for the host's addresses, again for a connection, and for (more of) a reply."""

    connect: float
    read: float


class Connections:
    """Calls to one host. Thread safe; `keep` connections are kept open, and each call has one to itself."""

    def __init__(self, host: str, make: Callable[[], socket], keep: int) -> None:
        """`host`: the header."""
        self._host, self._make, self._keep = host, make, keep
        self._idle: deque[socket] = deque()

    def request(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        """One call, made once; its reply whatever it says. Of the URL only path and query are looked at.

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
        connection = self._taken()
        try:
            connection.sendall(head.encode("latin-1") + body)
            reply = response.read(connection)
        except BaseException:
            connection.close()  # what comes next on it is not known
            raise
        self._give_back(connection, last=reply.last)
        return reply

    def _taken(self) -> socket:
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

    def _give_back(self, connection: socket, *, last: bool) -> None:
        if last or len(self._idle) >= self._keep:
            connection.close()
        else:
            self._idle.append(connection)


def _speaks(connection: socket) -> bool:
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
    return Connections(host_header(url), functools.partial(_open, parts.hostname or "", port, context, waits), keep)


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


def _open(host: str, port: int, context: ssl.SSLContext | None, waits: TimeLimits) -> socket:
    """A new connection, to the first of the host's addresses that takes one."""
    failed: Exception | None = None
    for address in NAMES.addresses(host, waits.connect):
        try:
            return _connected(address, port, (context, host), waits)
        except (HTTPError, OSError) as error:
            failed = error
    raise failed or OSError(f"{host} has no address")


def _connected(address: str, port: int, trusted: tuple[ssl.SSLContext | None, str], waits: TimeLimits) -> socket:
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
    connection: socket = made.sock
    connection.settimeout(waits.read)
    return connection
