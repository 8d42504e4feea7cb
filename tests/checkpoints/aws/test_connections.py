"""Connections are kept, replaced once the other side has closed them, and trusted by their certificates."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from botocore.auth import _host_from_url
from urllib3.exceptions import HTTPError, ProtocolError

from sluice_checkpoints.aws.connections import Connections, TimeLimits, connections, host_header

if TYPE_CHECKING:
    from pathlib import Path

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
WAITS = TimeLimits(connect=5, read=5)
Answers = list[bytes]  # one a request; the connection is closed after the last


class Service:
    def __init__(self, conversations: list[Answers], context: ssl.SSLContext | None = None) -> None:
        self.asked: list[bytes] = []
        self.closed = [threading.Event() for _ in conversations]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._conversations, self._context = conversations, context
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        for answers, closed in zip(self._conversations, self.closed, strict=True):
            try:
                talking, _ = self._listening.accept()
            except OSError:  # the test is over
                return
            self._threads.append(threading.Thread(target=self._talk, args=(talking, answers, closed), daemon=True))
            self._threads[-1].start()

    def _talk(self, talking: socket.socket, answers: Answers, closed: threading.Event) -> None:
        try:
            with self._context.wrap_socket(talking, server_side=True) if self._context else talking as secured:
                for answer in answers:
                    self.asked.append(_request(secured))
                    secured.sendall(answer)
        except OSError:  # it was not trusted, or the client hung up
            pass
        finally:
            talking.close()
            closed.set()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(10)


def _request(talking: socket.socket) -> bytes:
    taken = b""
    while not (taken.endswith(b"\r\n\r\nabc")):
        found = talking.recv(2**16)
        if not found:
            raise ConnectionResetError
        taken += found
    return taken


@contextmanager
def serving(*conversations: Answers, context: ssl.SSLContext | None = None) -> Iterator[Service]:
    service = Service(list(conversations), context)
    try:
        yield service
    finally:
        service.stop()


def plain(service: Service, keep: int = 8, waits: TimeLimits = WAITS) -> Callable[[], bytes]:
    client = connections(f"http://127.0.0.1:{service.port}/", waits, keep, "")
    return lambda: call(client, f"http://127.0.0.1:{service.port}/")


def call(client: Connections, url: str) -> bytes:
    return client.request("POST", url, body=b"abc", headers={"X-Amz-Target": "Orders.Get"}).data


def test_a_request_is_what_was_signed_and_what_http_wants() -> None:
    with serving([OK]) as service:
        assert plain(service)() == b"ok"
    assert service.asked == [
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: 3\r\nX-Amz-Target: Orders.Get\r\n\r\nabc".encode()
    ]


@pytest.mark.parametrize("host", ["kinesis.example", "Kinesis.example:443", "127.0.0.1:80", "127.0.0.1:4567", "[::1]:4567", "key:word@host.example"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_host_is_the_one_that_was_signed(scheme: str, host: str) -> None:
    """Else the service refuses the signature."""
    url = f"{scheme}://{host}/"
    assert host_header(url) == _host_from_url(url)


@pytest.mark.parametrize(("path", "target"), [("", "/"), ("/", "/"), ("/at/home/", "/at/home/"), ("/?a=b", "/?a=b")])
def test_the_path_of_an_endpoint_is_asked_for(path: str, target: str) -> None:
    """Some emulators live below one."""
    with serving([OK]) as service:
        url = f"http://127.0.0.1:{service.port}{path}"
        call(connections(url, WAITS, 1, ""), url)
    assert service.asked[0].startswith(f"POST {target} HTTP/1.1\r\n".encode())


def test_a_header_is_one_line() -> None:
    """A token that was read from a file with its last line break is refused by what may be wrong, before anything is sent."""
    with serving() as service, pytest.raises(ValueError, match="in the headers X-Amz-Security-Token: is there one in a credential"):
        connections(f"http://127.0.0.1:{service.port}/", WAITS, 1, "").request("POST", "/", body=b"", headers={"X-Amz-Security-Token": "token\n"})


def test_a_connection_serves_one_call_after_the_other() -> None:
    with serving([OK, OK, OK]) as service:
        ask = plain(service)
        assert [ask() for _ in range(3)] == [b"ok"] * 3


def test_one_that_was_closed_meanwhile_is_replaced() -> None:
    """Services close what was idle for a while; that is no failed call."""
    with serving([OK], [OK]) as service:
        ask = plain(service)
        ask()
        assert service.closed[0].wait(10)
        assert ask() == b"ok"


def test_one_that_the_service_wants_closed_is_not_used_again() -> None:
    bye = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    with serving([bye, OK], [OK + b"HTTP/1.1 408", OK], [OK]) as service:
        ask = plain(service)
        assert [ask() for _ in range(3)] == [b"ok"] * 3


def test_no_more_are_kept_than_was_asked_for() -> None:
    with serving([OK, OK], [OK]) as service:
        ask = plain(service, keep=0)
        assert [ask(), ask()] == [b"ok", b"ok"]


def test_a_connection_that_broke_is_not_used_again() -> None:
    """Nobody knows what comes next on it."""
    with serving([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"], [b"nonsense\r\n\r\n", OK], [OK]) as service:
        ask = plain(service)
        for _ in range(2):
            with pytest.raises(ProtocolError):
                ask()
        assert ask() == b"ok"


def test_who_does_not_answer_is_not_waited_for_for_ever() -> None:
    """The wait is that for a reply, not that for a connection."""
    with serving([b""] * 2, [OK]) as service:
        ask = plain(service, waits=TimeLimits(connect=5, read=0.05))
        with pytest.raises(TimeoutError):
            ask()


class Dripping:
    """A connection on which a byte of the reply comes each half second, by a clock of its own."""

    def __init__(self, reply: bytes) -> None:
        self.now, self.waits, self.closed, self._left = 100.0, list[float](), False, reply

    def gettimeout(self) -> float:
        return 1.0

    def settimeout(self, seconds: float) -> None:
        self.waits.append(seconds)

    def sendall(self, _request: bytes) -> None:
        """See `socket`."""

    def recv(self, _size: int) -> bytes:
        self.now += 0.5
        one, self._left = self._left[:1], self._left[1:]
        return one

    def recv_into(self, buffer: memoryview) -> int:
        buffer[:1] = self.recv(1)
        return 1

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("of_call", [False, True], ids=["of all calls", "of one"])
@pytest.mark.parametrize("whole", [2.0, 25.3], ids=["in its head", "in its content"])
def test_a_reply_that_comes_byte_by_byte_ends_with_the_call(whole: float, of_call: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """However little each receive has to wait. No receive waits for longer than what is left."""
    dripping: Any = Dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" + b"o" * 42)
    monkeypatch.setattr("sluice_checkpoints.aws.connections.time.monotonic", lambda: dripping.now)
    with pytest.raises(TimeoutError):
        Connections("host", lambda: dripping, 1, 99.0 if of_call else whole).request("POST", "http://host/", b"", {}, whole if of_call else 99.0)
    assert (dripping.now, dripping.closed) == (100 + -(-whole // 0.5) * 0.5, True)
    assert dripping.waits[-2:] == [pytest.approx(whole % 0.5 or 0.5), 1.0]


def test_a_reply_that_comes_in_time_is_taken_whole_and_the_connection_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    dripping: Any = Dripping(OK)
    monkeypatch.setattr("sluice_checkpoints.aws.connections.time.monotonic", lambda: dripping.now)
    reply = Connections("host", lambda: dripping, 1, 30.0).request("POST", "http://host/", b"", {})
    assert (reply.data, dripping.closed, dripping.waits[-1]) == (b"ok", False, 1.0)


def test_the_time_of_one_call_begins_when_there_is_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else no such call ever succeeds where a connection takes longer, for none is kept: an address that is dead is tried first."""
    dripping: Any = Dripping(OK)
    monkeypatch.setattr("sluice_checkpoints.aws.connections.time.monotonic", lambda: dripping.now)

    def make() -> Any:
        dripping.now += 5.0
        return dripping

    reply = Connections("host", make, 1).request("POST", "http://host/", b"", {}, 25.0)
    assert (reply.data, dripping.closed) == (b"ok", False)


def test_nobody_there_is_an_error_that_urllib3_names() -> None:
    with serving() as service:
        port = service.port
    with pytest.raises(HTTPError, match="refused"):
        call(connections(f"http://127.0.0.1:{port}/", WAITS, 1, ""), f"http://127.0.0.1:{port}/")


def test_the_addresses_of_a_host_are_tried_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them may not be reached from here."""
    monkeypatch.setattr("sluice_checkpoints.aws.connections.NAMES.addresses", lambda *_: ["127.0.0.2", "127.0.0.1"])
    with serving([OK]) as service:
        assert plain(service)() == b"ok"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def context(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(made)
    return made


def trusting(authority: trustme.CA, folder: Path) -> str:
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def test_who_an_authority_vouches_for_is_talked_to(authority: trustme.CA, context: ssl.SSLContext, tmp_path: Path) -> None:
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(1_000_000)
    with serving([OK, long], [OK], context=context) as service:
        url = f"https://localhost:{service.port}/"
        client = connections(url, WAITS, 1, trusting(authority, tmp_path))
        assert [call(client, url), call(client, url)] == [b"ok", bytes(1_000_000)]
        assert service.closed[0].wait(10)
        assert call(client, url) == b"ok"


def test_nobody_else_is(authority: trustme.CA, context: ssl.SSLContext, tmp_path: Path) -> None:
    with serving([OK], [OK], context=context) as service:
        url = f"https://localhost:{service.port}/"
        with pytest.raises((HTTPError, ssl.SSLError), match="certificate verify failed"):
            call(connections(url, WAITS, 1, trusting(trustme.CA(), tmp_path)), url)
        url = f"https://127.0.0.1:{service.port}/"
        with pytest.raises((HTTPError, ssl.SSLError), match="certificate"):
            call(connections(url, WAITS, 1, trusting(authority, tmp_path)), url)
    assert service.asked == []
