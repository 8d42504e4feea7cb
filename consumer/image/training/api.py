"""As much of a Kubernetes API as Spark's driver needs to get executors: what is posted is there, and an executor's pod is a process beside it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

ADDRESS = "127.0.0.1"
Json = dict[str, Any]


class Server(ThreadingHTTPServer):
    """Serves on a free port of the loopback.

    Attributes:
        ended: set when watches are to end.
        processes: of executors.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((ADDRESS, 0), _Handler)
        self.objects: dict[str, Json] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.ended = threading.Event()

    @property
    def master(self) -> str:
        """As Spark sees it."""
        return f"k8s://http://{ADDRESS}:{self.server_port}"

    def create(self, made: Json) -> Json:
        """Keeps an object, and starts it if it is a pod."""
        made["metadata"] |= {"uid": str(uuid.uuid4()), "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.objects[made["metadata"]["name"]] = made
        if made["kind"] == "Pod":
            made["status"] = {"phase": "Running", "podIP": ADDRESS}
            self._run(made)
        return made

    def _run(self, pod: Json) -> None:
        (container,) = pod["spec"]["containers"]
        fields = {"status.podIP": ADDRESS, "metadata.name": pod["metadata"]["name"]}
        given = {
            one["name"]: one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]] for one in container.get("env", [])
        }
        self.processes.append(subprocess.Popen(["/opt/sluice/entrypoint", "executor"], env=os.environ | given))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        name = url.path.rpartition("/")[2]
        if "Upgrade" in self.headers:  # a watch over a WebSocket: not here, and the client watches the plain way
            self._answer({}, 503)
        elif "watch=" in url.query:
            self._head("application/json", {"Transfer-Encoding": "chunked"})
            self.wfile.flush()
            self.server.ended.wait()
        elif name in self.server.objects:
            self._answer(self.server.objects[name])
        else:
            pods = [one for one in self.server.objects.values() if one["kind"] == "Pod"]
            self._answer({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": pods})

    def do_POST(self) -> None:
        self._answer(self.server.create(self._body()), 201)

    def do_PATCH(self) -> None:
        self._body()
        self._answer(self.server.objects.get(urlsplit(self.path).path.rpartition("/")[2], {}))

    def do_DELETE(self) -> None:
        self._body()
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _body(self) -> Json:
        body: Json = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        return body

    def _head(self, kind: str, more: dict[str, str], code: int = 200) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, said: Json, code: int = 200) -> None:
        body = json.dumps(said).encode()
        self._head("application/json", {"Content-Length": str(len(body))}, code)
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""
