"""One line a step, with how long it took: `✓ kind cluster  15 s`.

A terminal sees the seconds run while a step lasts. Anywhere else only finished lines are printed, and one `…` line for
a step that takes long, so that a log of a CI run shows where it is.
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
console = Console(highlight=False)


@dataclass
class ProgressStep:
    """A step under way; `note` adds what came of it to its line."""

    title: str
    began: float = field(default_factory=time.monotonic)
    remark: str = ""

    def note(self, remark: str) -> None:
        """Say what came of the step, e.g. `already there`."""
        self.remark = remark

    def line(self, mark: str, style: str) -> Text:
        """The line printed once the step is over."""
        text = Text.assemble((mark, style), " ", self.title)
        if self.remark:
            text.append(f"  {self.remark}", style="cyan")
        return text.append(f"  {duration(time.monotonic() - self.began)}", style="dim")

    def __rich__(self) -> Text:
        """The line shown while the step lasts."""
        return Text.assemble(self.title, (f"  {time.monotonic() - self.began:.0f} s", "dim"))


def duration(seconds: float) -> str:
    """Seconds for people: `0.3 s`, `15 s`, `4 min 45 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def step(title: str) -> Iterator[ProgressStep]:
    """Print one line for what is done inside: ✓ or ✗, title, note, duration. Errors go on to the caller."""
    current = ProgressStep(title)
    try:
        with _live(current) if console.is_terminal else _patient(current):
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
def _patient(current: ProgressStep) -> Iterator[None]:
    timer = threading.Timer(QUIET_SECONDS, lambda: console.print(f"… {current.title}", soft_wrap=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
