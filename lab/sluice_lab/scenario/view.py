"""The live view: on a terminal a panel that follows the consumer, elsewhere a line whenever its state changes."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.text import Text

from sluice_lab.scenario.observed import Sight
from sluice_lab.steps import ProgressStep, console

LOOK_SECONDS = 0.5


class LiveView:
    """Follows a consumer while it is entered. `read` gives a look; while it fails, the last look stays."""

    def __init__(self, read: Callable[[], Sight], produced: Callable[[], int], out: Console = console) -> None:
        self.sight = Sight()
        self._read, self._produced, self._out = read, produced, out
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="view", daemon=True)
        self._live = Live(self, console=out, refresh_per_second=4, transient=True) if out.is_terminal else None
        self._step: ProgressStep | None = None
        self._told: tuple[str, ...] = ()
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if self._live:
            self._live.stop()

    def look(self) -> Sight:
        """Look now."""
        try:
            self.sight = dataclasses.replace(self._read(), produced=self._produced())
        except Exception:  # noqa: BLE001 - not there yet, or an API that starts; whoever waits for something has a deadline
            return self.sight
        if not self._live and self.sight.state() != self._told:
            self._tell(self.sight)
        return self.sight

    @contextmanager
    def step(self, title: str) -> Iterator[ProgressStep]:
        """A line for what is done inside, as `steps.step`, below which the view goes on."""
        self._step = current = ProgressStep(title)
        try:
            yield current
        except BaseException:
            self._out.print(current.line("✗", "bold red"), soft_wrap=True)
            raise
        finally:
            self._step = None
        self._out.print(current.line("✓", "bold green"), soft_wrap=True)

    def __rich__(self) -> Group:
        """The panel, and the step under way below it."""
        panel = Panel(self.sight, title="kc/demo", title_align="left", border_style="cyan", width=min(self._out.width, 110))
        return Group(panel, Spinner("dots", self._step) if self._step else Text())

    def _follow(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()

    def _tell(self, sight: Sight) -> None:
        known = set(self._told[1:])
        news = [line for line in sight.state()[1:] if line not in known]
        phase = [] if self._told[:1] == sight.state()[:1] else [sight.phase]
        self._told = sight.state()
        if not phase and not news:
            return  # something is not known any more, such as the driver's pod between two drivers
        batch = "" if sight.batch is None else f"  (batch {sight.batch})"
        at = f"{time.monotonic() - self._began:5.1f} s"
        self._out.print(f"  {at}  {', '.join(phase + news)}{batch}", style="dim", soft_wrap=True, markup=False)
