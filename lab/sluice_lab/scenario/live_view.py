"""The live view of a consumer: a panel on a terminal; elsewhere one line for each change of its state."""

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

from sluice_lab.scenario.observed import ConsumerSnapshot
from sluice_lab.steps import ProgressStep, console

REFRESH_SECONDS = 0.5


class LiveView:
    """Refreshes its snapshot while entered. `read` returns a new snapshot; if it fails, the last one stays."""

    def __init__(self, read: Callable[[], ConsumerSnapshot], produced: Callable[[], int], out: Console = console) -> None:
        self.snapshot = ConsumerSnapshot()
        self._read, self._produced, self._out = read, produced, out
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="view", daemon=True)
        self._live = Live(self, console=out, refresh_per_second=4, transient=True) if out.is_terminal else None
        self._step: ProgressStep | None = None
        self._printed: tuple[str, ...] = ()
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

    def refresh(self) -> ConsumerSnapshot:
        """Read a snapshot now."""
        try:
            self.snapshot = dataclasses.replace(self._read(), produced=self._produced())
        except Exception:  # noqa: BLE001 - no resource yet, or an API that starts; each wait has a deadline of its own
            return self.snapshot
        if not self._live and self.snapshot.state() != self._printed:
            self._print_changes(self.snapshot)
        return self.snapshot

    @contextmanager
    def step(self, title: str) -> Iterator[ProgressStep]:
        """Print one line for the work inside, like `steps.step`. The panel stays above it."""
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
        """The panel, and the current step below it."""
        panel = Panel(self.snapshot, title="kc/demo", title_align="left", border_style="cyan", width=min(self._out.width, 110))
        return Group(panel, Spinner("dots", self._step) if self._step else Text())

    def _follow(self) -> None:
        while not self._ended.wait(REFRESH_SECONDS):
            self.refresh()

    def _print_changes(self, snapshot: ConsumerSnapshot) -> None:
        known = set(self._printed[1:])
        changed = [line for line in snapshot.state()[1:] if line not in known]
        phase = [] if self._printed[:1] == snapshot.state()[:1] else [snapshot.phase]
        self._printed = snapshot.state()
        if not phase and not changed:
            return  # a field became empty, such as the driver's pod between two drivers
        batch = "" if snapshot.batch is None else f"  (batch {snapshot.batch})"
        at = f"{time.monotonic() - self._began:5.1f} s"
        self._out.print(f"  {at}  {', '.join(phase + changed)}{batch}", style="dim", soft_wrap=True, markup=False)
