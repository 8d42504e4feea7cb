"""`dead-letters list` and `dead-letters show` (docs/dead-letters.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from rich.markup import escape
from rich.table import Table as Grid

from sluice_checkpoints.cli.report import Output, short
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.folder import LetterFolder, letters
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.protocol.rows import Item


def list_(where: LetterFolder, consumer: str | None, output: Output) -> None:
    """Prints a line a letter.

    Raises:
        Refused: the folder cannot be read, or a file in it is no letter.
    """
    found = list(letters(where, consumer))
    if output.as_json:
        output.document({"letters": [{"name": name, **_document(letter)} for name, letter in found]})
        return
    grid = Grid("arrived", "shard", "record", "batch", "failed", "error", "name")
    for name, letter in found:
        arrived = datetime.fromtimestamp(letter.arrival_millis / 1000, UTC).isoformat(" ", "seconds")
        record = f"{short(letter.sequence)}/{letter.sub}"
        grid.add_row(arrived, letter.shard, record, str(letter.batch), f"{letter.attempts} times", escape(letter.cause), name)
    output.out.print(grid if found else "no dead letters")
    if found:
        output.out.print(f"{len(found)} dead letters", highlight=False)


def show(where: LetterFolder, name: str, output: Output) -> None:
    """Prints one letter.

    Raises:
        Refused: it is not there, or no letter.
    """
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"{name}: no name of a letter; `dead-letters list` has them")
    letter = DeadLetter.from_json(where.read(name), name)
    if output.as_json:
        output.document({"name": name, **_document(letter)})
        return
    for key, value in _document(letter).items():
        if key not in {"data", "error", "format"}:
            output.out.print(f"[bold]{key}[/]  {escape(str(value))}", soft_wrap=True)
    output.out.print("[bold]data[/]")
    output.out.print(escape(letter.data.decode(errors="backslashreplace")), soft_wrap=True)
    output.out.print("[bold]error[/]")
    output.out.print(escape(letter.error.strip()), soft_wrap=True)


def _document(letter: DeadLetter) -> Item:
    values: Item = json.loads(letter.to_json())
    return values
