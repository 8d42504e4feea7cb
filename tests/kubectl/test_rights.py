"""The program before an API server over HTTP: kubeconfig in, and the calls that it makes are the rights that the page names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from http_fake import HttpFake
from pooled import pooled
from screens import fleet

from sluice_kubectl.cli.group import program
from sluice_lab.fakes.cluster import MemoryCluster

PAGE = (Path(__file__).parents[2] / "docs" / "kubectl.md").read_text()
ROWS = re.findall(r"^\| `([^`]+)` \| ((?:`[^`]+`(?:, )?)+) \|$", PAGE.partition("## Permissions\n")[2], re.MULTILINE)
RIGHTS = {command: set(re.findall(r"`([^`]+)`", rights)) for command, rights in ROWS}


@dataclass
class Served:
    fake: HttpFake
    kubeconfig: Path

    def typed(self, *arguments: str) -> Result:
        """The program in this process: to start one takes more than a command."""
        return CliRunner().invoke(program, [*arguments, "--kubeconfig", str(self.kubeconfig)])

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sluice_kubectl", *arguments]
        found = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=found, cwd=self.kubeconfig.parent, stdin=subprocess.DEVNULL)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report is written into the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(fleet().cluster, tmp_path) as found:
        yield found


@contextmanager
def serving(memory: MemoryCluster, folder: Path) -> Iterator[Served]:
    fake = HttpFake(memory)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            if self.command == "GET" and (redrive := re.search(r"/pods/(orders-redrive-\d+)$", self.path)):
                ended = {"name": "redrive", "state": {"terminated": {"exitCode": 0}}}
                memory.set_status("Pod", "default", redrive[1], {"containerStatuses": [ended]})
            reply = fake.call_api(self.command, self.path, dict(self.headers), body)
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.data)))
            self.end_headers()
            self.wfile.write(reply.data)

        do_GET = do_PATCH = do_POST = do_DELETE = answer  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_arguments: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    context = {"name": "test", "context": {"cluster": "test", "user": "me", "namespace": "default"}}
    cluster = {"name": "test", "cluster": {"server": f"http://127.0.0.1:{http.server_address[1]}"}}
    config = {"current-context": "test", "contexts": [context], "clusters": [cluster], "users": [{"name": "me", "user": {"token": "abc"}}]}
    (folder / "config").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
    try:
        yield Served(fake, folder / "config")
    finally:
        http.shutdown()
        http.server_close()


def test_the_page_has_rights() -> None:
    assert {command.split()[0] for command in RIGHTS} == {
        *("status", "lag", "shards", "events", "logs", "restart", "pause", "resume", "drain", "retry", "force", "report", "dead-letters")
    }


@pytest.mark.parametrize("command", RIGHTS)
def test_a_command_makes_the_calls_that_the_page_names(served: Served, command: str) -> None:
    answer = served.typed(*command.split())
    assert answer.exit_code == 0, answer.output
    assert {f"{verb} {resource}" for verb, _group, resource in served.fake.rights} == RIGHTS[command]


OF_MEMBERS = {"report": {"get kinesisconsumerpools"}, "force": {"get kinesisconsumerpools", "patch kinesisconsumerpools"}}


@pytest.mark.parametrize("verb", ["status", "shards", "logs", "report", "force"])
def test_a_command_for_a_member_of_a_pool_makes_the_calls_that_the_page_names(tmp_path: Path, verb: str) -> None:
    of_others = next(rights for command, rights in RIGHTS.items() if command.startswith(f"{verb} "))
    with serving(pooled().cluster, tmp_path) as served:
        answer = served.typed(verb, "orders", *{"force": ["--yes"], "report": ["--logs"]}.get(verb, []))
        assert answer.exit_code == 0, answer.output
        made = {f"{called} {resource}" for called, _group, resource in served.fake.rights}
        assert made == (of_others - {"patch kinesisconsumers"}) | OF_MEMBERS.get(verb, set())


def test_a_restart_is_in_the_cluster(served: Served) -> None:
    assert served.run("restart", "orders").stdout.startswith("orders restarts: ")
    found = served.fake.memory.get("KinesisConsumer", "default", "orders")
    assert found is not None
    assert "sluice.dev/restart" in found["metadata"]["annotations"]


def test_status_by_http_is_the_screen(served: Served) -> None:
    assert served.run("status").stdout.splitlines()[0] == "5 consumers · 2 ready · 2 need attention · farthest behind: orders, 2m13s"
