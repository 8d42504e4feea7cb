"""The two calls of a driver's pod, over TLS to a server of this test. What a real API server answers: tests/operator/helm/test_driver_rights.py."""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from urllib3.exceptions import HTTPError

from sluice_consumer.process import pod
from sluice_consumer.process.pod import PodAnnotations, PodCallRefused
from sluice_consumer.spark.conf import PodAddress

HERE = PodAddress("driver-1", "space", "10.0.0.7", "uid-1")


class ApiServer(HTTPServer):
    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, Mapping[str, str], bytes]] = []
        self.answer: tuple[int, bytes] | None = (200, b'{"kind": "Pod", "metadata": {}}')
        (folder / "token").write_text("first\n")
        self.folder, self.context = folder, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certify()
        self.socket = self.context.wrap_socket(self.socket, server_side=True)

    def certify(self) -> None:
        """A new authority, which the pod is told of as a kubelet does."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.folder / "ca.crt")
        authority.issue_cert("127.0.0.1").configure_cert(self.context)

    def client(self) -> PodAnnotations:
        return PodAnnotations(HERE, self.folder, {pod.HOST: "127.0.0.1", pod.PORT: str(self.server_port)})


class Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        if self.server.answer is not None:
            status, said = self.server.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    do_PATCH = do_GET  # noqa: N815 - as the library calls it

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    made = ApiServer(tmp_path)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join(60)
        made.server_close()


def test_a_patch_carries_the_uid_of_the_pod(server: ApiServer) -> None:
    """It can never touch a later pod of the same name."""
    server.client().write({"sluice.dev/report": "{}", "sluice.dev/former": None})
    (method, path, headers, body) = server.asked[0]
    assert (method, path, headers["Content-Type"]) == ("PATCH", "/api/v1/namespaces/space/pods/driver-1", "application/merge-patch+json")
    assert json.loads(body) == {"metadata": {"uid": "uid-1", "annotations": {"sluice.dev/report": "{}", "sluice.dev/former": None}}}


@pytest.mark.parametrize(
    ("metadata", "annotations"), [({}, {}), ({"annotations": None}, {}), ({"annotations": {"a": "b"}}, {"a": "b"})], ids=["none", "null", "one"]
)
def test_annotations_are_read(metadata: dict[str, Any], annotations: dict[str, str], server: ApiServer) -> None:
    server.answer = (200, json.dumps({"kind": "Pod", "metadata": metadata}).encode())
    assert server.client().read() == annotations


def test_a_token_that_was_renewed_is_used(server: ApiServer) -> None:
    """The kubelet replaces its file every hour or so, and the old one ends."""
    client = server.client()
    client.read()
    (server.folder / "token").write_text("second")
    client.read()
    assert [headers["Authorization"] for _, _, headers, _ in server.asked] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("status", "said", "found"),
    [
        (403, b'{"kind": "Status", "message": "no right"}', "GET of the pod: 403 Forbidden: no right"),
        (502, b"<html>", "GET of the pod: 502 Bad Gateway: <html>"),
        (200, b"{}", "GET of the pod: 200 OK: "),
        (200, b"[]", "GET of the pod: 200 OK: []"),
    ],
    ids=["refused", "a proxy", "another object", "no object"],
)
def test_what_is_no_pod_is_an_error_that_says_what_came(status: int, said: bytes, found: str, server: ApiServer) -> None:
    """Taken for a pod without annotations it would say that the operator wants nothing."""
    server.answer = (status, said)
    with pytest.raises(PodCallRefused) as raised:
        server.client().read()
    assert str(raised.value) == found


def test_a_call_is_made_once(server: ApiServer) -> None:
    """A call of ten seconds must not take forty."""
    server.answer = None
    with pytest.raises((HTTPError, OSError)):
        server.client().read()
    assert len(server.asked) == 1


def test_a_server_of_another_authority_is_not_told_the_token(server: ApiServer) -> None:
    """Whoever answers at that address could use it."""
    trustme.CA().cert_pem.write_to_path(server.folder / "ca.crt")
    with pytest.raises((HTTPError, OSError)), contextlib.suppress(PodCallRefused):
        server.client().read()
    assert server.asked == []


def test_an_authority_that_was_replaced_is_believed_by_a_driver_that_runs_on(server: ApiServer) -> None:
    """A cluster renews its own; a driver that fell silent then would look as if it hung."""
    client = server.client()
    client.read()
    server.certify()
    client.read()
    assert len(server.asked) == 2


def test_a_driver_imports_no_client_of_kubernetes() -> None:
    """0.6 s of CPU, before Spark begins to start, in supervisor and driver each."""
    code = "import sys, sluice_consumer.__main__, sluice_consumer.process.driver; print('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
