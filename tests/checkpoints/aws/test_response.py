"""Replies of HTTP/1.1 are read as the standard library reads them, however they arrive; what is none is refused."""

from __future__ import annotations

import io
from http.client import HTTPResponse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import ProtocolError

from sluice_checkpoints.aws.response import LONGEST_BODY, HttpReply, read

OK = b"HTTP/1.1 200 OK\r\n"


class Arriving:
    """A connection on which the bytes arrive in pieces of these sizes, the last size for ever; then the other side closes."""

    def __init__(self, sent: bytes, sizes: list[int]) -> None:
        self._sent, self._sizes = io.BytesIO(sent), sizes

    def recv(self, size: int) -> bytes:
        here = self._sizes.pop(0) if len(self._sizes) > 1 else self._sizes[0]
        return self._sent.read(min(size, here))

    def recv_into(self, buffer: memoryview) -> int:
        found = self.recv(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def makefile(self, *_: Any) -> io.BytesIO:
        return self._sent


def reply(sent: bytes, *sizes: int) -> HttpReply:
    return read(Arriving(sent, list(sizes) or [2**20]))


def chunked(content: bytes, cuts: list[int], more: str) -> bytes:
    chunks = []
    for cut in cuts:
        chunks.append(content[:cut])
        content = content[cut:]
    parts = [b"%x%s\r\n%s\r\n" % (len(part), more.encode(), part) for part in (*chunks, content) if part]
    return b"".join((*parts, b"0\r\n", b"Checksum: 1\r\n" if more else b"", b"\r\n"))


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    content = draw(st.binary(max_size=3000))
    names = st.text("abcXYZ-09", min_size=1, max_size=12).map(lambda name: "x-" + name)
    values = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f\x85\xa0"), max_size=30)
    headers = [(name, value.strip()) for name, value in draw(st.dictionaries(names, values, max_size=5)).items()]
    how = draw(st.sampled_from(("length", "chunked", "close")))
    if how == "length":
        headers.append((draw(st.sampled_from(("Content-Length", "content-length"))), str(len(content))))
    if how == "chunked":
        headers.append(("Transfer-Encoding", "chunked"))
        content = chunked(content, draw(st.lists(st.integers(1, 900), max_size=5)), draw(st.sampled_from(("", ";a=b"))))
    status = draw(st.sampled_from((200, 400, 404, 500, 503)))
    interim = draw(st.sampled_from((b"", b"HTTP/1.1 100 Continue\r\n\r\n")))
    lines = "".join(f"{name}:{draw(st.sampled_from(('', ' ', '  ')))}{value}\r\n" for name, value in headers)
    return interim + f"HTTP/1.1 {status} {draw(st.sampled_from(('OK', 'Not That', '')))}\r\n{lines}\r\n".encode("latin-1") + content


@given(sent=replies(), sizes=st.lists(st.integers(1, 2000), min_size=1, max_size=6))
def test_it_is_what_the_standard_library_reads(sent: bytes, sizes: list[int]) -> None:
    library = HTTPResponse(Arriving(sent, [2**20]), method="POST")  # type: ignore[arg-type]
    library.begin()
    found = reply(sent, *sizes)
    assert (found.status, found.reason) == (library.status, library.reason)
    assert found.headers == {name.lower(): value for name, value in library.getheaders()}
    assert found.data == library.read()


def test_only_after_a_whole_reply_that_says_so_another_may_come() -> None:
    assert not reply(OK + b"Content-Length: 2\r\n\r\nab").last
    assert not reply(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n").last
    assert reply(OK + b"Content-Length: 2\r\nConnection: Close\r\n\r\nab").last
    assert reply(OK + b"Content-Length: 2\r\n\r\nabHTTP").last
    assert reply(OK + b"\r\nab").last
    assert reply(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab").last


def test_some_replies_have_no_content() -> None:
    assert reply(b"HTTP/1.1 204 No Content\r\n\r\n") == HttpReply(204, "No Content", {}, b"", last=False)
    assert reply(OK + b"Content-Length: 0\r\n\r\n").data == b""


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "closed before the whole reply"),
        (b"HTTP/1.1 200 OK\r\nContent-", "closed before the whole reply"),
        (OK + b"Content-Length: 9\r\n\r\nabc", "closed after 3 bytes of 9"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nabc", "closed after 3 bytes of 9"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "closed before the whole reply"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", "longer than the size before it"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "not the length of a reply"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "in the coding"),
        (OK + b"Content-Length: -1\r\n\r\n", "not the length of a reply|-1 bytes"),
        (OK + b"Content-Length: 1_0\r\n\r\n", "-1 bytes"),
        (OK + f"Content-Length: {LONGEST_BODY + 1}\r\n\r\n".encode(), f"a reply of {LONGEST_BODY + 1} bytes"),
        (OK + b"no header\r\n\r\n", "not a header"),
        (OK + b"a: b\r\n folded: c\r\n\r\n", "not a header"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "not a reply of HTTP/1.1"),
        (b"HTTP/2 200\r\n\r\n", "not a reply of HTTP/1.1"),
        (OK + b"a: " + b"b" * 2**17, "no end of the headers"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 2**17, "without an end of its first line"),
    ],
)
def test_what_is_no_whole_reply_is_refused(sent: bytes, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        reply(sent)


def test_endless_content_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a broken service sends, it does not fill the memory."""
    monkeypatch.setattr("sluice_checkpoints.aws.response.LONGEST_BODY", 10)
    with pytest.raises(ProtocolError, match="a reply of 11 bytes"):
        reply(OK + b"\r\n" + b"x" * 11)
    with pytest.raises(ProtocolError, match="a reply of 12 bytes"):
        reply(OK + b"Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n")
