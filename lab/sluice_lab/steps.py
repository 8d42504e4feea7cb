"""Prints one line for each step, with its duration: `✓ kind cluster  15 s`.

A terminal shows seconds and progress while a step lasts. Elsewhere only finished steps are printed. A step that takes long prints a line with `…`
first, and one more every half minute if it has progress. So the log of a CI run shows that it moves.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

QUIET_SECONDS = 10.0
AGAIN_SECONDS = 30.0
console = Console(emoji=False, highlight=False)


@dataclass
class ProgressStep:
    """A step under way. `note` adds a result to its line; `progress` says how far it is, e.g. `412 of 1290 packages`."""

    title: str
    began: float = field(default_factory=time.monotonic)
    remark: str = ""
    progress: str = ""

    def note(self, remark: str) -> None:
        """Set the result of the step, e.g. `already there`."""
        self.remark = remark

    def line(self, mark: str, style: str) -> Text:
        """The line of the finished step."""
        text = Text.assemble((mark, style), " ", self.title)
        if self.remark:
            text.append(f"  {self.remark}", style="cyan")
        return text.append(f"  {duration(time.monotonic() - self.began)}", style="dim")

    def __rich__(self) -> Text:
        """The line of the step under way."""
        return Text.assemble(
            self.title, (f"  {self.progress}" if self.progress else "", "cyan"), (f"  {duration(time.monotonic() - self.began)}", "dim")
        )


def duration(seconds: float) -> str:
    """A duration as text: `0.3 s`, `15 s`, `4 min 45 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def step(title: str) -> Iterator[ProgressStep]:
    """Print one line for the work inside: ✓ or ✗, title, note, duration. Errors propagate."""
    current = ProgressStep(title)
    try:
        with _live(current) if console.is_terminal else _plain(current):
            yield current
    except BaseException:
        console.print(current.line("✗", "bold red"), soft_wrap=True)
        raise
    console.print(current.line("✓", "bold green"), soft_wrap=True)


@contextmanager
def _live(current: ProgressStep) -> Iterator[None]:
    with Live(Spinner("dots", current), console=console, transient=True, refresh_per_second=5):
        yield


@contextmanager
def _plain(current: ProgressStep) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=_report, args=(current, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _report(current: ProgressStep, over: threading.Event) -> None:
    """Print the step when it takes long, and its progress whenever that has changed."""
    shown, wait = None, QUIET_SECONDS
    while not over.wait(wait):
        if shown != current.progress:
            shown = current.progress
            console.print(Text.assemble("… ", current.__rich__()), soft_wrap=True) if shown else console.print(f"… {current.title}", soft_wrap=True)
        wait = AGAIN_SECONDS
