"""What `make demo` and `make test` take, as README states it. `durations.toml` has the figures.

`python -m sluice_lab.site.durations README.md` writes them into the page (`make generate`). `… durations keep test again` keeps what the last
`make test` took by pytest's JUnit files: from the first stage's begin to the last one's end, which excludes lint and what is built.
`… keep demo first 38` takes your minutes.
"""

import datetime
import math
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice_lab import durations, places
from sluice_operator.generate import markdown

FILE = Path(__file__).with_suffix(".toml")
RUNS = {"first": "first run, without Docker and an image registry", "again": "everything is built"}
COMMANDS = ("demo", "test")


def table(found: Mapping[str, Any]) -> str:
    """The part of the page."""
    rows = [[f"`make {command}`", *(minutes(found[command].get(run)) for run in RUNS)] for command in COMMANDS]
    return markdown.table([f"on {found['machine']}, {found['date']}", *RUNS.values()], rows)


def minutes(figure: int | None) -> str:
    """A cell."""
    return "not measured" if figure is None else f"{figure} minutes"


def filled(text: str) -> str:
    """A page with the table as the file has it."""
    return markdown.filled(text, {"durations": lambda: table(tomllib.loads(FILE.read_text()))})


def kept(text: str, command: str, run: str, figure: int, today: datetime.date) -> str:
    """The file with another figure, and the day on which it was measured.

    Raises:
        ValueError: there is no such command or run.
    """
    if command not in COMMANDS or run not in RUNS:
        raise ValueError(f"{command} {run}: name one of {', '.join(COMMANDS)}, and one of {', '.join(RUNS)}")
    head, section, rest = text.partition(f"[{command}]\n")
    own, blank, others = rest.partition("\n\n")
    lines = dict(re.findall(r"(?m)^(\w+) = (\d+)$", own)) | {run: str(figure)}
    own = "\n".join(f"{name} = {lines[name]}" for name in RUNS if name in lines)
    return re.sub(r"(?m)^date = \S+$", f"date = {today}", head) + section + own + (blank + others or "\n")


def took(command: str) -> int:
    """Minutes of the last run of a target, by pytest's JUnit files.

    Raises:
        ValueError: there are none.
    """
    files = list((places.work() / "durations" / command).glob("*.xml"))
    if not files:
        raise ValueError(f"make {command} left no JUnit files in {places.work() / 'durations'}: give the minutes as the last word")
    return math.ceil(durations.span(map(durations.read, files)) / 60)


def main(words: list[str]) -> None:
    """Keeps a figure, or fills pages."""
    if words[:1] == ["keep"]:
        command, run, *given = words[1:]
        figure = int(given[0]) if given else took(command)
        FILE.write_text(kept(FILE.read_text(), command, run, figure, datetime.datetime.now(datetime.UTC).date()))
        return
    for page in map(Path, words):
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
