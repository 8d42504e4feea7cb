"""A git repository on this machine, as a GitOps tool reads it: in its folder, or over HTTP."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from sluice_lab import places
from sluice_lab.machine.listening import LOOPBACK
from sluice_lab.machine.processes import run

SERVICE = "git-upload-pack"
BRANCH = "main"


@dataclass(frozen=True)
class Repository:
    folder: Path

    @classmethod
    def new(cls, folder: Path) -> Repository:
        found = cls(folder)
        found.git("init", "--quiet", f"--initial-branch={BRANCH}")
        return found

    def write(self, name: str, *documents: dict[str, Any], folder: str = "consumers") -> None:
        (places.made(self.folder / folder) / name).write_text(yaml.safe_dump_all(documents))
        self.commit(f"Write {name}")

    def remove(self, name: str, folder: str = "consumers") -> None:
        (self.folder / folder / name).unlink()
        self.commit(f"Remove {name}")

    def commit(self, subject: str) -> None:
        self.git("add", "--all")
        self.git("-c", "user.name=tests", "-c", "user.email=tests@example.com", "commit", "--quiet", f"--message={subject}")

    def git(self, *arguments: str) -> str:
        return run("git", *arguments, cwd=self.folder)

    @contextmanager
    def served(self) -> Iterator[str]:
        """Its address on this machine, for the time of the block: read-only, by git's smart protocol."""
        handler = type("Handler", (_UploadPack,), {"folder": self.folder})
        with ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield f"http://{LOOPBACK}:{server.server_port}/repository.git"
            server.shutdown()
            thread.join()


class _UploadPack(BaseHTTPRequestHandler):
    folder: Path

    def do_GET(self) -> None:
        if not self.path.endswith(f"/info/refs?service={SERVICE}"):
            self.send_error(404)
            return
        title = f"# service={SERVICE}\n"
        self._answer("advertisement", f"{len(title) + 4:04x}{title}0000".encode() + self._git("--advertise-refs"))

    def do_POST(self) -> None:
        self._answer("result", self._git(said=self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *_: Any) -> None:
        """The tool's own log says what it read."""

    def _git(self, *arguments: str, said: bytes = b"") -> bytes:
        command = ("git", "upload-pack", "--stateless-rpc", *arguments, str(self.folder))
        return subprocess.run(command, input=said, capture_output=True, check=True).stdout

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"application/x-{SERVICE}-{kind}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
