"""The proxy, before a real service: what happens to calls under each behaviour."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cbor2
import pytest

from sluice_lab.aws import proxy, refusals
from sluice_lab.aws.proxy import NORMAL, Behaviour, CallOutcome, Proxy, Upstream
from sluice_lab.aws.refusals import Refuse

HOST = "127.0.0.1"
JSON = "application/x-amz-json-1.0"


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served = 0

    def do_POST(self) -> None:
        type(self).served += 1
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(201)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("X-Target", self.headers.get("X-Target", ""))
        self.end_headers()
        pieces = [] if self.command == "HEAD" else [*filter(None, (body, self.path.encode())), b""]
        for piece in pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Quiet."""


@pytest.fixture
def behind() -> Iterator[Proxy]:
    Echo.served = 0
    with ThreadingHTTPServer((HOST, 0), Echo) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        with proxy.proxy(Upstream(f"http://{HOST}:{server.server_address[1]}"), HOST, seed=3) as found:
            yield found
        server.shutdown()


def ask(found: Proxy, connection: http.client.HTTPConnection | None = None, kind: str = JSON) -> tuple[int, bytes, dict[str, str]]:
    connection = connection or http.client.HTTPConnection(HOST, found.port, timeout=5)
    connection.request("POST", "/a", b"body", {"Content-Type": kind, "X-Target": "t"})
    reply = connection.getresponse()
    return reply.status, reply.read(), dict(reply.getheaders())


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [(CallOutcome.THROTTLED, 400, "ProvisionedThroughputExceededException"), (CallOutcome.FAILED, 500, "InternalServerError")],
)
def test_a_refusal_is_worded_as_the_service_words_it(behind: Proxy, outcome: CallOutcome, status: int, code: str) -> None:
    """And at once, on a connection that a client keeps for minutes."""
    connection = http.client.HTTPConnection(HOST, behind.port, timeout=5)
    assert ask(behind, connection)[:2] == (201, b"body/a")
    behind.behaviour = Behaviour(outcome)
    found, body, headers = ask(behind, connection)
    assert (found, json.loads(body)["__type"], headers["x-amzn-errortype"]) == (status, code, code)
    found, body, headers = ask(behind, connection, kind="application/x-amz-cbor-1.1")
    assert (found, cbor2.loads(body)["__type"], headers["Content-Type"]) == (status, code, "application/x-amz-cbor-1.1")
    assert Echo.served == 1
    behind.behaviour = NORMAL
    assert ask(behind, connection)[2]["X-Target"] == "t"


@pytest.mark.parametrize(
    ("refuse", "throttled", "failed", "word"),
    [(refusals.s3, 503, 500, b"<Code>SlowDown</Code>"), (refusals.iceberg_rest, 429, 500, b"TooManyRequestsException")],
)
def test_other_services_refuse_in_words_of_their_own(refuse: Refuse, throttled: int, failed: int, word: bytes) -> None:
    """S3 in XML, Iceberg's catalog in JSON. A client takes a 500 as "perhaps done", and the other as "not done"."""
    with proxy.proxy(Upstream("http://127.0.0.1:9", refuse), HOST) as found:
        found.behaviour = Behaviour(CallOutcome.THROTTLED)
        status, body, _ = ask(found)
        assert (status, word in body) == (throttled, True)
        found.behaviour = Behaviour(CallOutcome.FAILED)
        assert ask(found)[0] == failed


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
def test_every_method_passes(behind: Proxy, method: str) -> None:
    """S3 has them all. A reply to HEAD has no body, and the length of one."""
    connection = http.client.HTTPConnection(HOST, behind.port, timeout=5)
    for _ in range(2):
        connection.request(method, "/a", b"body" if method == "PUT" else None)
        reply = connection.getresponse()
        expected = {"PUT": b"body/a", "HEAD": b""}.get(method, b"/a")
        assert (reply.status, reply.read()) == (201, expected)
    assert Echo.served == 2


@pytest.mark.parametrize(("outcome", "served"), [(CallOutcome.CUT, 0), (CallOutcome.LOST, 1)])
def test_a_call_without_a_reply_was_done_or_not(behind: Proxy, outcome: CallOutcome, served: int) -> None:
    """The caller cannot tell; we can."""
    behind.behaviour = Behaviour(outcome)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask(behind)
    assert Echo.served == served


def test_a_share_of_the_calls_is_hit_and_the_seed_says_which(behind: Proxy) -> None:
    behind.behaviour = Behaviour(CallOutcome.FAILED, share=0.3)
    first = [behind.decide().outcome for _ in range(200)]
    again = Proxy(Upstream("http://nowhere"), HOST, seed=3)
    again.behaviour = behind.behaviour
    assert first == [again.decide().outcome for _ in range(200)]
    again._server.server_close()
    assert 30 < first.count(CallOutcome.FAILED) < 90
