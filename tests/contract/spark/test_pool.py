"""The pod of a pool: its program follows the annotations of its own pod. Real Spark, emulated AWS, an API server of this test with one pod."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from conftest_spark import RECORDS, configuration, stream_document

from sluice_consumer.config import Config, StreamConfig
from sluice_consumer.process import wiring
from sluice_consumer.process.pod import HOST, PORT

pytestmark = [pytest.mark.spark, pytest.mark.slow]
UID, PATIENCE = "pod-uid", 180.0
PIPELINES = """
def store(batch, info):
    with open(f"{info.args['to']}/{info.batch}", "w") as file:
        file.write("\\n".join(sorted(bytes(row.data).decode() for row in batch.select("data").collect())))

def fail(batch, info):
    raise ValueError("the sink is full")
"""
# The account of a pod is at a fixed path of its file system, which this machine does not have.
PROGRAM = """
import sys
from pathlib import Path
from sluice_consumer.__main__ import main
from sluice_consumer.group import pool_program
from sluice_consumer.process.pod import PodAnnotations
account = Path(sys.argv.pop())
pool_program.PodAnnotations = lambda here: PodAnnotations(here, account)
main()
"""


class OnePod(ThreadingHTTPServer):
    """An API server with one pod. A patch of another uid is refused, as a real one does."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        (folder / "token").write_text("token")
        authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.cert_pem.write_to_path(folder / "ca.crt")
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.notes: dict[str, str] = {}
        self.changed, self.patches = threading.Condition(), 0

    def note(self, **notes: str | None) -> None:
        """Sets annotations as the operator does; `seat_a_1` is that of consumer a, attempt 1."""
        self.merge({"{}.sluice.dev/{}.{}".format(*name.split("_")): value for name, value in notes.items()})

    def merge(self, notes: dict[str, str | None]) -> None:
        with self.changed:
            self.notes = {name: value for name, value in (self.notes | notes).items() if value is not None}
            self.changed.notify_all()

    def report(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.notes.get(f"report.sluice.dev/{name}" if name else "sluice.dev/report", "{}"))
        return found

    def until(self, met: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(met, PATIENCE), self.notes

    def ended(self, name: str) -> dict[str, Any]:
        self.until(lambda: "exit" in self.report(name))
        found: dict[str, Any] = self.report(name)["exit"]
        return found


class Handler(BaseHTTPRequestHandler):
    server: OnePod

    def do_GET(self) -> None:
        with self.server.changed:
            self._answer(200, {"kind": "Pod", "metadata": {"uid": UID, "annotations": self.server.notes}})

    def do_PATCH(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["metadata"]
        if asked["uid"] != UID:
            self._answer(409, {"kind": "Status", "message": "another pod"})
            return
        self.server.patches += 1
        self.server.merge(asked["annotations"])
        self.do_GET()

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        said = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[OnePod]:
    server = OnePod(tmp_path)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


@contextlib.contextmanager
def running(pod: OnePod, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "pool_pipelines.py").write_text(PIPELINES)
    (folder / "pool.json").write_text(json.dumps({"name": "small", "slotShare": 0.5, "sparkConf": {"spark.master": "local[2,4]"}}))
    root = Path(__file__).parents[3]
    here = {"SLUICE_POD_NAME": "small-pool-1", "SLUICE_POD_NAMESPACE": "shop", "SLUICE_POD_UID": UID, "SLUICE_POD_IP": "127.0.0.1"}
    api = {HOST: "127.0.0.1", PORT: str(pod.server_port), "SLUICE_TERMINATION_LOG": str(folder / "last")}
    environment = os.environ | here | api | {"PYTHONPATH": f"{root / 'consumer'}{os.pathsep}{folder}", "SLUICE_LOG": "json"}
    command = [sys.executable, "-c", PROGRAM, "pool", "--config", str(folder / "pool.json"), str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def seat(config: Config, folder: Path, entrypoint: str, **more: Any) -> str:
    document = {
        "stream": stream_document(config.stream),
        "checkpoints": {"table": config.checkpoints.table},
        "pipeline": {"entrypoint": f"pool_pipelines:{entrypoint}", "args": {"to": str(folder)}},
        "batch": {"intervalSeconds": 0.2},
    }
    return json.dumps({"name": "orders", "pod": UID, "specHash": "hash-of-a", "config": document | more})


def test_consumers_of_a_pool_come_and_go_in_one_process(aws: StreamConfig, tmp_path: Path, pod: OnePod) -> None:
    config, other, to = configuration(aws, "unused:unused"), configuration(aws, "unused:unused"), tmp_path / "rows"
    to.mkdir()
    pod.note(seat_a_1=seat(config, to, "store"), seat_b_1="{", seat_c_1=seat(config, to, "store", leaseDurationSeconds="short"))
    pod.note(seat_d_1=seat(other, to, "store"), leave_d_1="2026-11-27T10:00:00Z", seat_e_1=seat(other, to, "nothing"))
    pod.merge({"sluice.dev/executors": "1"})
    with running(pod, tmp_path) as process:
        pod.until(lambda: pod.report("a.1").get("batch", 0) >= 1 and pod.report("")["phase"] == "Running")
        assert [pod.ended(name)["code"] for name in ("b.1", "c.1", "d.1", "e.1")] == [65, 65, 0, 65]
        assert pod.ended("c.1")["message"].startswith("leaseDurationSeconds: must be a number")
        assert "pool_pipelines has no nothing" in pod.ended("e.1")["message"]
        pod.until(lambda: pod.report("a.1").get("executors") == 1 and pod.report("a.1")["phase"] in {"Running", "Idle"})
        assert pod.report("")["executors"] == 1

        pod.note(leave_a_1="2026-11-27T10:00:00Z")
        assert (pod.ended("a.1")["code"], pod.ended("a.1")["reason"]) == (0, "Drained")
        assert "began" in pod.report("a.1")
        row = wiring.store(config).consumer()
        assert row is not None
        assert (row.generation, row.released) == (1, True)
        assert [version["hash"] for version in pod.report("a.1")["versions"]] == ["hash-of-a"]

        pod.note(seat_a_1=None, leave_a_1=None, seat_a_2=seat(config, to, "fail"))
        assert (pod.ended("a.2")["code"], pod.ended("a.2")["reason"]) == (1, "ValueError")
        pod.until(lambda: "report.sluice.dev/a.1" not in pod.notes)
        pod.note(leave_a_2="2026-11-27T10:00:00Z", seat_a_3=seat(config, to, "store"))
        pod.until(lambda: pod.report("a.3").get("generation") == 3)

        process.terminate()
        assert process.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
    assert pod.ended("a.3")["reason"] == "Drained"
    assert json.loads((tmp_path / "last").read_text())["reason"] == "Drained"
    assert sorted(int(one) for file in to.iterdir() for one in file.read_text().split()) == list(range(RECORDS))
    assert pod.patches < 30
