"""An image registry on one address, over a new folder: CNCF Distribution, as many clouds run it. It ends with the block that runs it.

It speaks plain HTTP: whoever pushes to it has to say so. With `users` it asks for a password (HTTP basic, bcrypt).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import processes, tools
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, answers

START_SECONDS = 30.0


@contextmanager
def registry(work: Path, host: str = LOOPBACK, port: int | None = None, users: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a registry while the block lasts; yields its address, `127.0.0.1:40123`. `users` are bcrypt hashes by name.

    Raises:
        LabError: it cannot be built here, or does not start.
    """
    program, address = tools.registry(), f"{host}:{free_port(host, port)}"
    with tempfile.TemporaryDirectory(prefix="registry-", dir=places.made(work)) as home:
        config = Path(home) / "config.json"  # JSON is YAML
        config.write_text(json.dumps(_config(Path(home), address, users)))
        running = processes.start(work, Program(f"registry-{address.rpartition(':')[2]}", (program, "serve", str(config)), cwd=Path(home)))
        try:
            _await(running, address)
            yield address
        finally:
            running.stop()


def _config(home: Path, address: str, users: Mapping[str, str] | None) -> dict[str, Any]:
    storage = {"filesystem": {"rootdirectory": str(places.made(home / "data"))}, "delete": {"enabled": True}}
    config: dict[str, Any] = {"version": "0.1", "log": {"level": "warn"}, "storage": storage, "http": {"addr": address}}
    if users:
        passwords = home / "htpasswd"
        passwords.write_text("".join(f"{name}:{hashed}\n" for name, hashed in users.items()))
        config["auth"] = {"htpasswd": {"realm": "lab", "path": str(passwords)}}
    return config


def _await(running: processes.Running, address: str) -> None:
    """Any answer will do: one that asks for a password refuses this question."""
    asked = ("curl", "--silent", "--output", "/dev/null", "--max-time", "2", f"http://{address}/v2/")
    if not processes.poll(lambda: answers(*asked) or not running.alive(), START_SECONDS) or not running.alive():
        log = processes.tail(running.log.read_text(errors="replace"))
        raise LabError(f"the registry does not answer at {address}; its log, {running.log}, ends:\n{log}")
