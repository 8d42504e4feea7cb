"""From the command line to a session, and to an exit code."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer.dev import manifest
from sluice_consumer.dev.emulator import REGION
from sluice_consumer.dev.session import DevOptions, DevSession
from sluice_consumer.spark.conf import NO_BOUNDS_CHECKS

TABLE = "dev-sluice"
LEASE_SECONDS = 10.0  # a task of a run that failed may work for so long
INTERVAL_SECONDS = 1.0
FIRST_COMPILER = {"spark.driver.defaultJavaOptions": f"{NO_BOUNDS_CHECKS} -XX:TieredStopAtLevel=1"}  # what a JVM runs for minutes needs no other
STOPPED = "Stopped. The emulators and Spark were shut down and their data discarded."


@dataclass(frozen=True)
class CommandLine:
    """What a person gives.

    Attributes:
        entrypoint: `module:function`; None: the manifest has it.
        manifest: file with a KinesisConsumer.
        file: lines come from there; None: from standard input.
        args, conf: `NAME=VALUE`, over `info.args` and `sparkConf` of the manifest.
        shards: of the stream.
        interval: seconds from batch to batch; None: the manifest's, or one.
    """

    entrypoint: str | None = None
    manifest: Path | None = None
    file: Path | None = None
    args: tuple[str, ...] = ()
    conf: tuple[str, ...] = ()
    shards: int = 2
    interval: float | None = None


@dataclass(frozen=True)
class _Asked:
    """A driver's configuration, variables of its environment, and what a person should know of both."""

    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def run(given: CommandLine) -> int:
    """Runs until it is stopped; what is wrong is said in a line. Returns the exit code: 130 if it was not to wait for the open batch."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    console, code = Console(emoji=False), 0
    try:
        with tempfile.TemporaryDirectory(prefix="sluice-dev-") as scratch:
            DevSession(options(given, Path(scratch)), console).run()
    except SluiceError as error:
        console.print(str(error), markup=False, highlight=False, style="bold red", soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        code = 130
    console.print(STOPPED, style="dim", highlight=False, soft_wrap=True)
    return code


def options(given: CommandLine, scratch: Path) -> DevOptions:
    """What is to run.

    Args:
        given: the command line.
        scratch: folder for dead letters.

    Raises:
        Refused: the manifest cannot be used, an option has the wrong form, or there is no entrypoint, or there are two.
    """
    if (given.entrypoint is None) == (given.manifest is None):
        raise Refused("dev: give either MODULE:FUNCTION, or --manifest FILE, whose spec.pipeline.entrypoint names it")
    asked = _of_manifest(given.manifest, scratch) if given.manifest else _of_entrypoint(given.entrypoint or "")
    pipeline, conf = asked.config["pipeline"], pairs("--conf", given.conf)
    config = {
        **asked.config,
        "checkpoints": {"table": TABLE},
        "leaseDurationSeconds": LEASE_SECONDS,
        "pipeline": {**pipeline, "args": {**_object(pipeline, "args", "spec.pipeline."), **arguments(given.args)}},
        "batch": _object(asked.config, "batch") | ({} if given.interval is None else {"intervalSeconds": given.interval}),
        "sparkConf": FIRST_COMPILER | _object(asked.config, "sparkConf") | conf,
    }
    return DevOptions(config, given.file, given.shards, asked.environment, asked.notes)


def _of_entrypoint(entrypoint: str) -> _Asked:
    stream = {"name": "orders", "region": REGION}
    return _Asked({"stream": stream, "pipeline": {"entrypoint": entrypoint}, "batch": {"intervalSeconds": INTERVAL_SECONDS}})


def _of_manifest(path: Path, scratch: Path) -> _Asked:
    """Dead letters go to a folder here: what is tried on one machine must not reach the queue or the bucket of those who run it."""
    consumer = manifest.read(path)
    notes = [f"dev does not use {', '.join(consumer.unused)}"] if consumer.unused else []
    on_error = consumer.config.get("onError")
    if isinstance(on_error, dict) and on_error.get("deadLetter"):
        letters = scratch.as_uri()
        notes.append(f"dead letters go to {letters}, not to spec.onError.deadLetter; the folder is removed at the end")
        return _Asked({**consumer.config, "onError": {**on_error, "deadLetter": {"path": letters}}}, consumer.environment, tuple(notes))
    return _Asked(consumer.config, consumer.environment, tuple(notes))


def _object(of: dict[str, Any], name: str, where: str = "spec.") -> dict[str, Any]:
    value = of.get(name) or {}
    if not isinstance(value, dict):
        raise Refused(f"{where}{name}: {value!r} is not an object")
    return value


def pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Values by name, of `NAME=VALUE`.

    Raises:
        Refused: one has no `=`.
    """
    values: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise Refused(f"{option} {each}: say NAME=VALUE")
        values[name] = value
    return values


def arguments(given: Iterable[str]) -> dict[str, Any]:
    """`info.args` of `NAME=VALUE`.

    Raises:
        Refused: one has no `=`.
    """
    return {name: _json_or_text(value) for name, value in pairs("--arg", given).items()}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
