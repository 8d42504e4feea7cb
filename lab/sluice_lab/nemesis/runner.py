"""Runs a schedule: injects each fault at its time and undoes those that last. One thread; every injection is recorded."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sluice_lab.nemesis.schedule import Fault
from sluice_lab.nemesis.timeline import Injection

Undo = Callable[[], None]
Inject = Callable[[Fault], tuple[str, Undo | None]]


@dataclass
class Runner:
    """Runs a schedule.

    Attributes:
        inject: injects a fault; returns its victim, and how to undo it if it lasts.
        now: the time; `wait` lasts until a time.
        on_injection: called after every injection.
        injections: all injections so far.
    """

    inject: Inject
    now: Callable[[], float]
    wait: Callable[[float], None]
    on_injection: Callable[[Injection], None] = lambda _: None
    injections: list[Injection] = field(default_factory=list)

    def run(self, faults: Iterable[Fault]) -> None:
        """Inject all of them; their times count from now. Faults that last are undone, even when an injection fails."""
        began, order = self.now(), itertools.count()
        # At one time, undoing comes before injecting.
        queue: list[tuple[float, int, int, Fault | Undo]] = [(began + fault.at, 1, next(order), fault) for fault in faults]
        heapq.heapify(queue)
        try:
            while queue:
                at, _, _, item = heapq.heappop(queue)
                self.wait(at)
                if not isinstance(item, Fault):
                    item()
                elif undo := self._inject(item):
                    heapq.heappush(queue, (self.now() + item.seconds, 0, next(order), undo))
        finally:
            for _, _, _, item in queue:
                if not isinstance(item, Fault):
                    item()

    def _inject(self, fault: Fault) -> Undo | None:
        began = self.now()
        victim, undo = self.inject(fault)
        self.injections.append(Injection(fault.title, began, began + fault.seconds, victim))
        self.on_injection(self.injections[-1])
        return undo
