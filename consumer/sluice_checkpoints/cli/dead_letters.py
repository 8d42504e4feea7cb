"""`dead-letters list` and `show` (docs/dead-letters.md). A redrive needs Spark: `sluice_consumer.redrive.redrive_command`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from rich.markup import escape

from sluice_checkpoints.cli.report import Output
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.folder import LetterFolder, letters, pending_letters, redrives
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.redrives import RedriveLog
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import Item

LONGEST = 200  # of an error's words above its dead letters; `show` has them all


def list_(where: LetterFolder, consumer: str | None, output: Output) -> None:
    """Prints one line per dead letter, by what failed: an error, and below it the dead letters that have it.

    Raises:
        Refused: the folder cannot be read, or a file in it is not a dead letter.
    """
    final, logs = dict(letters(where, consumer)), redrives(where)
    waiting = {name: letter for name, letter in pending_letters(where, consumer).items() if name not in final}
    listed = [*final.items(), *waiting.items()]
    if output.as_json:
        output.document({"letters": [_listed(name, letter, logs, pending=name in waiting) for name, letter in listed]})
        return
    by_cause: dict[str, list[str]] = {}
    for name, letter in listed:
        arrived = datetime.fromtimestamp(letter.arrival_millis / 1000, UTC).isoformat(" ", "seconds")
        cells = (name, f"arrived {arrived}", f"batch {letter.batch}", f"failed {counted(letter.attempts, 'time')}")
        state = "pending" if name in waiting else _redriven_text(logs, letter)
        by_cause.setdefault(letter.cause[:LONGEST], []).append("  ".join((*cells, state) if state else cells))
    for cause, lines in by_cause.items():
        output.out.print(f"[bold]{len(lines)} x {escape(_line(cause))}[/]", highlight=False, soft_wrap=True)
        for line in lines:
            output.out.print(f"  {_line(line)}", markup=False, highlight=False, soft_wrap=True)
    more = f"; {len(waiting)} of them pending: their batches are not known to be committed" if waiting else ""
    output.out.print(counted(len(listed), "dead letter") + more if listed else "no dead letters", highlight=False)


def show(where: LetterFolder, name: str, output: Output) -> None:
    """Prints one dead letter.

    Raises:
        Refused: it is not there, or it is not a dead letter.
    """
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"{name}: is not the name of a dead letter; `dead-letters list` prints the names")
    letter, waits = _read_letter(where, name)
    if output.as_json:
        output.document({"name": name, **letter.document(), "pending": waits})
        return
    if waits:
        output.out.print(f"pending: not redriven yet, because batch {letter.batch} is not known to be committed", highlight=False)
    for key, value in letter.document().items():
        if key not in {"data", "error", "format"}:
            output.out.print(f"[bold]{key}[/]  {escape(_line(str(value)))}", soft_wrap=True)
    output.out.print("[bold]data[/]")
    output.out.print(escape(_shown(letter.data.decode(errors="backslashreplace"))), soft_wrap=True)
    output.out.print("[bold]error[/]")
    output.out.print(escape(_shown(letter.error.strip())), soft_wrap=True)


def _shown(text: str) -> str:
    r"""For a terminal: a control, an escape or a bidi override is written as its number, `\x1b`. Line breaks stay."""
    return "".join(char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text)


def _line(text: str) -> str:
    return _shown(text).replace("\n", "\\n")


def _read_letter(where: LetterFolder, name: str) -> tuple[DeadLetter, bool]:
    try:
        return DeadLetter.from_json(where.read(name), name), False
    except Refused:
        if (letter := pending_letters(where).get(name)) is None:
            raise
        return letter, True


def _listed(name: str, letter: DeadLetter, logs: Mapping[str, RedriveLog], *, pending: bool) -> Item:
    return {"name": name, **letter.document(), "pending": pending, "redriven": None if pending else _redriven(logs, letter)}


def _redriven(logs: Mapping[str, RedriveLog], letter: DeadLetter) -> int | None:
    log = logs.get(letter.consumer)
    redrive = log.of(letter.name) if log else None
    return redrive.number if redrive else None


def _redriven_text(logs: Mapping[str, RedriveLog], letter: DeadLetter) -> str:
    number = _redriven(logs, letter)
    if number is None:
        return ""
    open_ = logs[letter.consumer].open
    return f"redriven in batch {number}, open" if open_ and open_.number == number else f"redriven in batch {number}"
