"""Prints results: a table for people, one JSON document for scripts, the first failure for Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluice_checkpoints import termination_log
from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.model import CheckOutcome, StartCheckResult
from sluice_consumer.process import pod

COLOURS = {CheckOutcome.OK: "green", CheckOutcome.WARNING: "yellow", CheckOutcome.UNDECIDED: "yellow", CheckOutcome.NOT_REACHED: "dim"}
WIDTH = 150  # of a log; a terminal says its own


def stopped_by(results: Iterable[StartCheckResult]) -> StartCheckResult | None:
    """The check that failed or had no answer."""
    return next((result for result in results if result.finding.outcome.stops), None)


def exit_code(results: Iterable[StartCheckResult]) -> int:
    """0, or that of a refusal: a consumer would not start, or could not."""
    return Refused.exit_code if stopped_by(results) else 0


def document(results: Sequence[StartCheckResult]) -> dict[str, Any]:
    """As docs/interfaces.md has it."""
    checks = [
        {"check": each.name, "outcome": each.finding.outcome.value, "message": each.finding.message, "seconds": round(each.seconds, 3)}
        for each in results
    ]
    return {"ok": stopped_by(results) is None, "checks": checks}


def show(results: Sequence[StartCheckResult], console: Console) -> None:
    """The table, and under it what has to be done, in a line that can be copied."""
    grid = Table("check", "result", "seconds", "found")
    for each in results:
        outcome = each.finding.outcome
        seconds = "" if outcome is CheckOutcome.NOT_REACHED else f"{each.seconds:.2f}"
        message = each.asks if outcome is CheckOutcome.NOT_REACHED else each.finding.message
        grid.add_row(each.name, f"[{COLOURS.get(outcome, 'red')}]{outcome}[/]", seconds, escape(message))
    console.print(grid)
    if stop := stopped_by(results):
        console.print(f"[red]{stop.name}[/]: {escape(stop.finding.message)}", soft_wrap=True)
    else:
        console.print("[green]a consumer can start[/]; what only a write shows was not tried")


def console() -> Console:
    """Standard output."""
    made = Console(emoji=False, highlight=False)
    return made if made.is_terminal else Console(emoji=False, highlight=False, width=WIDTH)


def terminate(results: Sequence[StartCheckResult]) -> None:
    """In a container: its last message. A failure to leave it changes nothing: standard output has all of it.

    In a driver's pod, where somebody runs a check beside it, the message is the driver's.
    """
    if pod.from_environment() is not None:
        return
    stop = stopped_by(results)
    reason = type(stop.finding.error).__name__ if stop and stop.finding.error else "NoAnswer" if stop else "Checked"
    termination_log.write({"reason": reason, "message": stop.finding.message if stop else "a consumer can start"})


def as_json(results: Sequence[StartCheckResult]) -> str:
    """One line."""
    return json.dumps(document(results))
