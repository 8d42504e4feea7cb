"""Logs and metrics over real HTTP: what is asked for, lines across chunks, and refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from kubernetes.client.configuration import Configuration

from sluice_kubectl.api.errors import CommandError
from sluice_kubectl.api.kubeconfig import server as calls
from sluice_kubectl.api.streams import HttpPodTexts, LogRequest
from sluice_operator.cluster.client import Direct
from sluice_operator.cluster.port import CONSUMER_KIND, Conflict, Rejected


@dataclass
class ApiDouble:
    chunks: list[bytes] = field(default_factory=list)
    status: int = 200
    paths: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    held: threading.Event | None = None
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """One reply, chunked; the last chunk waits for `held`."""
        self.paths.append(request.path)
        self.agents.append(request.headers["User-Agent"])
        self.tokens.append(request.headers.get("Authorization", ""))
        request.send_response(self.status)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for number, chunk in enumerate(self.chunks):
            if self.held and number == len(self.chunks) - 1:
                self.held.wait(10)
            request.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            request.wfile.flush()
        request.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    found = ApiDouble()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.answer(self)

        def log_message(self, *_arguments: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield found
    http.shutdown()
    thread.join()
    http.server_close()


def client(url: str) -> Direct:
    settings = Configuration(host=url)
    settings.api_key = {"BearerToken": "Bearer abc"}
    return Direct(settings)


def test_lines_are_whole_however_they_are_cut(double: ApiDouble) -> None:
    double.chunks = [b"one\ntw", b"o\n", "größ".encode()[:3], "größ".encode()[3:]]
    request = LogRequest("driver", tail=10)
    assert list(HttpPodTexts(client(double.url)).log("shop", "orders-driver-1", request)) == ["one", "two", "größ"]
    assert double.paths == ["/api/v1/namespaces/shop/pods/orders-driver-1/log?container=driver&tailLines=10"]


def test_a_log_that_is_followed_gives_a_line_as_soon_as_it_is_written(double: ApiDouble) -> None:
    double.chunks, double.held = [b"one\n", b"two\n"], threading.Event()
    lines = HttpPodTexts(client(double.url)).log("shop", "orders-driver-1", LogRequest("driver", follow=True))
    assert next(lines) == "one"
    double.held.set()
    assert list(lines) == ["two"]
    assert double.paths[0].endswith("?container=driver&follow=true")


def test_metrics_come_through_the_api_server(double: ApiDouble) -> None:
    double.chunks = [b"sluice_generation 3\n"]
    assert HttpPodTexts(client(double.url)).metrics("shop", "orders-driver-1", 9404) == "sluice_generation 3\n"
    assert double.paths == ["/api/v1/namespaces/shop/pods/orders-driver-1:9404/proxy/metrics"]


def test_every_call_is_made_in_the_persons_name(double: ApiDouble) -> None:
    """With the token of the kubeconfig, and not as the operator: an audit tells them apart."""
    double.chunks = [b'{"items": [], "metadata": {}}']
    api = client(double.url)
    list(HttpPodTexts(api).log("shop", "orders-driver-1", LogRequest()))
    calls(api).list(CONSUMER_KIND, "", {})
    assert double.agents == ["kubectl-sluice"] * 2
    assert double.tokens == ["Bearer abc"] * 2
    assert double.paths[1].startswith("/apis/sluice.dev/v1alpha1/kinesisconsumers?")


@pytest.mark.parametrize(("status", "reason", "error"), [(404, "NotFound", Conflict), (403, "Forbidden", Rejected)])
def test_a_refusal_is_an_error_of_the_port(double: ApiDouble, status: int, reason: str, error: type[Exception]) -> None:
    double.status, double.chunks = status, [json.dumps({"reason": reason, "message": "pods are not for you"}).encode()]
    with pytest.raises(error, match="pods are not for you"):
        list(HttpPodTexts(client(double.url)).log("shop", "orders-driver-1", LogRequest()))


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(CommandError, match=r"gave no whole answer: .*; next: try again"):
        list(HttpPodTexts(client("http://127.0.0.1:1")).log("shop", "orders-driver-1", LogRequest()))
