"""Times, figures and colours, the same on every screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from sluice_kubectl.views.consumer import ConsumerView, FiguresView
from sluice_kubectl.views.pool import PoolView
from sluice_operator.names import SILENT_SECONDS, lasting

STALE = SILENT_SECONDS * 1000  # in milliseconds
NONE = "-"
SAID_BY_READY = {"Ready", "Stalled", "Reconciling", "Draining", "DriverHealthy", "Migrated"}  # Ready depends on them, and gives their reason
PHASES = {"Running": "green", "Idle": "green", "Suspended": "blue", "Completed": "blue", "BackingOff": "yellow", "Failed": "red"}


def grid(*columns: str, wraps: str = "") -> Table:
    """A table without lines, as kubectl prints. The column `wraps` may take several lines; no other is cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column.upper(), no_wrap=column != wraps, overflow="fold")
    return table


def row(table: Table, *cells: str | Text) -> None:
    """Adds a row; text is not read as markup."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))


class Hanging:
    """Text whose second line and those after it are indented: none of them can be taken for a line of ours."""

    def __init__(self, text: Text, indent: int = 2) -> None:
        self._text, self._indent = text, indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        indent = min(self._indent, options.max_width - 1)
        first, *others = self._text.wrap(console, max(1, options.max_width - indent), overflow="fold") or [Text()]
        yield first
        for line in others:
            yield Text(" " * indent).append_text(line)


def age(since: datetime | None, now: datetime) -> str:
    """`13s`, `2m13s`; a clock that is behind the server's gives 0s."""
    return NONE if since is None else lasting(max(0, millis(since, now)))


def millis(since: datetime, now: datetime) -> int:
    """Whole milliseconds between two times."""
    return round((now - since).total_seconds() * 1000)


def lag(figures: FiguresView, now: datetime) -> str:
    """How far behind; with its age, if the driver has been silent since."""
    if figures.lag_millis is None:
        return NONE
    old = figures.reported is not None and millis(figures.reported, now) > STALE
    return lasting(figures.lag_millis) + (f" ({age(figures.reported, now)} ago)" if old else "")


def number(value: float | None) -> str:
    """A figure, or `-` where nobody has said it."""
    return NONE if value is None else f"{value:.12g}"


def phase(view: ConsumerView | PoolView) -> Text:
    """The phase, in its colour; red where you have to act."""
    return Text(view.phase, style="red" if view.stalled else PHASES.get(view.phase, "cyan"))


def ready(view: ConsumerView | PoolView) -> Text:
    """True, False or Unknown, in its colour."""
    return Text(view.ready, style="green" if view.ready == "True" else "red" if view.stalled else "yellow")


def why(view: ConsumerView | PoolView) -> str:
    """What a person should know of it, in one sentence; nothing of one that works."""
    marks = [word for word, on in (("paused", view.paused), ("suspended", view.suspended), ("being deleted", view.deleting)) if on]
    if view.ready != "True" or view.stalled or view.phase == "Completed":
        marks.append(f"{view.reason}: {view.message}")
    speaking = (condition for condition in view.conditions if condition.speaks and condition.type not in SAID_BY_READY)
    marks += [each.type if each.status == "True" else f"{each.type} is {each.status}" for each in speaking]
    return joined([*marks, *unreadable(view.unreadable)])


def joined(parts: Sequence[str]) -> str:
    """One line. A full stop before a semicolon is left out."""
    return "; ".join([*(each.removesuffix(".") for each in parts[:-1]), *parts[-1:]])


def unreadable(fields: Sequence[str]) -> list[str]:
    """`unreadable: status.driver.startedAt`; nothing of an object that has its form."""
    return [f"unreadable: {', '.join(fields)}"] if fields else []
