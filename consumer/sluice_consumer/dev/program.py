"""From the command line to a session, and to an exit code."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer.dev.session import DevOptions, DevSession


def run(entrypoint: str, file: Path | None, args: Iterable[str], *, shards: int, interval: float) -> int:
    """Runs until it is stopped; what is wrong is said in a line."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    console = Console()
    try:
        if not re.fullmatch(r"[\w.]+:\w+", entrypoint):
            raise Refused(f"{entrypoint!r} is not of the form module:function")
        options = DevOptions(entrypoint, file, arguments(args), shards=shards, interval=interval)
        DevSession(options, console).run()
    except SluiceError as error:
        console.print(str(error), markup=False, highlight=False, style="bold red")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def arguments(given: Iterable[str]) -> dict[str, Any]:
    """`info.args` of `NAME=VALUE`.

    Raises:
        Refused: one has no `=`.
    """
    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise Refused(f"--arg {each}: say NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
