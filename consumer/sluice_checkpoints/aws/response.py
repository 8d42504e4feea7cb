"""Parses HTTP/1.1 replies (RFC 9112), as far as services use it to answer a POST.

The standard library reads the same with a parser for e-mail; with calls of a millisecond that is a third of the call (docs/performance.md).
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Protocol

from urllib3.exceptions import ProtocolError

from sluice_checkpoints.names import counted

STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: (.*))?")
NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
LONGEST_HEAD = 2**16
LONGEST_BODY = 2**28  # Kinesis' are 10 MiB, DynamoDB's 16 MB
AT_ONCE = 2**16


class Connection(Protocol):
    """What replies are read from: a socket, encrypted or not. Whatever it raises is passed on."""

    def recv(self, size: int, /) -> bytes:
        """Up to so many bytes; none: the other side has closed."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """The same, into a buffer."""
        ...


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply.

    Attributes:
        headers: names in lower case; of one that came more than once the last.
        last: no other reply may be read from this connection.
    """

    status: int
    reason: str
    headers: dict[str, str]
    data: bytes
    last: bool


def read(connection: Connection) -> HttpReply:
    """The reply to a request that was just sent.

    Raises:
        ProtocolError: there is none, or not a whole one.
        OSError: the connection broke, or nothing came for too long.
    """
    taken = b""
    while True:
        head, taken = _head(connection, taken)
        version, status, reason, headers = parsed(head)
        if status >= 200:
            break  # what comes before is not the reply (100 Continue)
    body = _Body(connection, taken)
    closes = version == 0 or headers.get("connection", "").lower() == "close"
    if status in {204, 304}:
        data: bytes = b""
    elif "transfer-encoding" in headers:
        data = body.chunked(headers["transfer-encoding"])
    elif "content-length" in headers:
        data = body.exactly(_length(headers["content-length"].encode("latin-1"), 10))
    else:
        data, closes = body.rest(), True
    return HttpReply(status, reason, headers, data, closes or bool(body.taken))


def parsed(head: bytes) -> tuple[int, int, str, dict[str, str]]:
    """Minor version, status, reason and headers of a reply's head.

    Raises:
        ProtocolError: it is none.
    """
    first, *lines = head.split(b"\r\n")
    if not (match := STATUS.fullmatch(first)):
        raise ProtocolError(f"not a reply of HTTP/1.1: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not (colon and NAME.fullmatch(name)):
            raise ProtocolError(f"not a header: {line[:80]!r}")
        headers[name.decode("ascii").lower()] = value.strip(b" \t").decode("latin-1")
    return int(match[1]), int(match[2]), (match[3] or b"").decode("latin-1"), headers


def _head(connection: Connection, taken: bytes) -> tuple[bytes, bytes]:
    """A head, and what was received after it."""
    while (end := taken.find(b"\r\n\r\n")) < 0:
        if len(taken) > LONGEST_HEAD:
            raise ProtocolError(f"no end of the headers in {counted(len(taken), 'byte')}")
        taken += _some(connection)
    return taken[:end], taken[end + 4 :]


def _some(connection: Connection) -> bytes:
    received = connection.recv(AT_ONCE)
    if not received:
        raise ProtocolError("the connection was closed before the whole reply had come")
    return received


def _length(digits: bytes, base: int) -> int:
    """A length as HTTP writes it: digits and nothing else.

    Raises:
        ProtocolError: it is none, or more than any reply has.
    """
    try:
        return _bounded(int(digits, base) if digits.isalnum() else -1)
    except ValueError as error:
        raise ProtocolError(f"not the length of a reply: {digits[:80]!r}") from error


def _bounded(length: int) -> int:
    if not 0 <= length <= LONGEST_BODY:
        raise ProtocolError(f"a reply of {counted(length, 'byte')}")
    return length


def _room(length: int, begun: bytes) -> io.BytesIO:
    """So many bytes to be received, the first of them there."""
    content = io.BytesIO()
    content.seek(length - 1)
    content.write(b"\0")
    content.seek(0)
    content.write(begun)
    return content


class _Body:
    """The content of a reply; `taken` is what was received of it, or of what follows."""

    def __init__(self, connection: Connection, taken: bytes) -> None:
        self._connection, self.taken = connection, taken

    def exactly(self, length: int) -> bytes:
        """So many bytes. A long content is received where it stays: a copy of ten megabytes takes as long as a small call."""
        if len(self.taken) >= length:
            data, self.taken = self.taken[:length], self.taken[length:]
            return data
        content, at, self.taken = _room(length, self.taken), len(self.taken), b""
        with content.getbuffer() as view:
            while at < length:
                got = self._connection.recv_into(view[at:])
                if not got:
                    raise ProtocolError(f"the connection was closed after {counted(at, 'byte')} of {length}")
                at += got
        return content.getvalue()  # what was received into, not a copy

    def chunked(self, coding: str) -> bytes:
        """All chunks; extensions and trailers are read over."""
        if coding.lower() != "chunked":
            raise ProtocolError(f"a reply in the coding {coding!r}, which was not asked for")
        content, size = list[bytes](), 0
        while length := _length(self._line().partition(b";")[0].strip(b" \t"), 16):
            content.append(self.exactly(length))
            if self._line():
                raise ProtocolError("a chunk is longer than the size before it")
            size = _bounded(size + length)
        while self._line():
            pass
        return b"".join(content)

    def rest(self) -> bytes:
        """Everything until the other side closes."""
        content, size, self.taken = [self.taken], _bounded(len(self.taken)), b""
        while chunk := self._connection.recv(AT_ONCE):
            content.append(chunk)
            size = _bounded(size + len(chunk))
        return b"".join(content)

    def _line(self) -> bytes:
        while (end := self.taken.find(b"\r\n")) < 0:
            if len(self.taken) > LONGEST_HEAD:
                raise ProtocolError("a chunk without an end of its first line")
            self.taken += _some(self._connection)
        line, self.taken = self.taken[:end], self.taken[end + 2 :]
        return line
