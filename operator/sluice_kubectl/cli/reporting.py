"""`report`: what support needs to see, in one archive."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sluice_kubectl.api.errors import CommandError
from sluice_kubectl.api.person import Person
from sluice_kubectl.api.streams import LogRequest
from sluice_kubectl.cli.edge import NAME, WIDTH, Terminal, command
from sluice_kubectl.screens.one import one_consumer
from sluice_kubectl.views import secrets
from sluice_kubectl.views.consumer import consumer
from sluice_kubectl.views.documents import stamp
from sluice_kubectl.views.objects import PodView, events, pods
from sluice_kubectl.views.part import uid_of
from sluice_operator.names import counted

Json = dict[str, Any]
LINES = 20_000  # of each log, from its end
DISTRIBUTION = "sluice-kinesis"


@dataclass
class Parts:
    """Files of the report by name, without secrets; and what could not be had."""

    files: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add(self, name: str, read: Callable[[], Any]) -> Any:
        """Text or JSON under this name; a part that may not be read is missing, and the rest follows. Returns what is in the report."""
        try:
            content = read()
        except CommandError as error:
            self.missing.append(f"{name}: {error}")
            return []
        try:
            kept = content if isinstance(content, str) else secrets.body(content)
            text = kept if isinstance(kept, str) else json.dumps(kept, indent=1) + "\n"
        except Exception as error:  # noqa: BLE001 - whatever a stranger wrote: the other parts are what a maintainer gets
            self.missing.append(f"{name}: it could not be made safe to send ({type(error).__name__})")
            return []
        self.files[name] = text
        return kept


def gather(at: Terminal, person: Person, name: str, *, logs: bool) -> Parts:
    """Everything about one consumer that the person may read. No Secret and no ConfigMap is read.

    Raises:
        NothingThere: there is no such consumer.
    """
    body, parts = person.consumer(name), Parts()
    kept = parts.add("consumer.json", lambda: body)
    listed = parts.add("pods.json", lambda: person.pods_of(body))
    happened = parts.add("events.json", lambda: person.events(uid_of(body)))
    parts.add("jobs.json", lambda: person.jobs(name))
    if pool := consumer(body).pool:
        parts.add("pool.json", lambda: person.pool(pool))
    views = pods(listed)
    parts.add("status.txt", lambda: _drawn(one_consumer(consumer(kept or {}), views, events(happened), at.now())))
    for pod in views if logs else ():
        _logs(parts, person, pod)
    missing = "".join(f"missing {name_missing}\n" for name_missing in parts.missing)
    parts.files["report.txt"] = f"Made by sluice {_version()} at {stamp(at.now())}\n{missing}"
    return parts


def _logs(parts: Parts, person: Person, pod: PodView) -> None:
    parts.add(f"logs/{pod.name}.log", lambda: _lines(person, pod.name, LogRequest(pod.container, LINES)))
    if pod.restarts:
        parts.add(f"logs/{pod.name}.previous.log", lambda: _lines(person, pod.name, LogRequest(pod.container, LINES, previous=True)))


def _lines(person: Person, pod: str, request: LogRequest) -> str:
    return "".join(f"{line}\n" for line in person.log(pod, request))


def _drawn(screen: Any) -> str:
    drawn = io.StringIO()
    Console(file=drawn, width=WIDTH, emoji=False, highlight=False).print(screen)
    return drawn.getvalue()


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "of a clone"


def pack(parts: Parts, path: Path, folder: str) -> None:
    """Writes a `.tar.gz` that only its owner may read.

    Raises:
        CommandError: the file exists, or cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            for name, text in sorted(parts.files.items()):
                data = text.encode()
                entry = tarfile.TarInfo(f"{folder}/{name}")
                entry.size, entry.mode = len(data), 0o600
                tar.addfile(entry, io.BytesIO(data))
    except OSError as error:
        raise CommandError(f"{path} was not written: {error}; next: name another file with --file") from error


@command
@NAME
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="Path of the archive.  [default: sluice-NAME-TIME.tar.gz in the working folder]"
)
@click.option("--logs", "logs", is_flag=True, help="Add the logs, as they were written: they may quote records and passwords.")
def report(at: Terminal, person: Person, name: str, file: Path | None, *, logs: bool) -> None:
    """Write one archive for support: resource, pods, Jobs, events and status, and the logs of the pods with --logs.

    A text in an object is hidden unless its field is known to be harmless. Messages and logs are as they were written, and may quote records or
    passwords: look through the archive before you send it.
    """
    folder = f"sluice-{name}-{at.now():%Y%m%dT%H%M%SZ}"
    path = file or Path(f"{folder}.tar.gz")
    parts = gather(at, person, name, logs=logs)
    pack(parts, path, folder)
    at.say(f"{path}: {counted(len(parts.files), 'file')}; look through it before you send it")
    for missing in parts.missing:
        at.tell(f"missing {missing}")


COMMANDS = {"report": report}
