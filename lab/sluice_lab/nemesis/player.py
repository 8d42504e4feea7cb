"""Does deeds at their times and undoes those that last, in one thread; keeps what was done."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sluice_lab.nemesis.picture import Done
from sluice_lab.nemesis.schedule import Deed

Doing = Callable[[Deed], tuple[str, Callable[[], None] | None]]


@dataclass
class Player:
    """Plays a schedule.

    Attributes:
        do: does a deed; gives what it hit, and what ends it if it lasts.
        now: the time; `wait` lasts until a time.
        on_done: called with every deed that was done.
        done: what was done.
    """

    do: Doing
    now: Callable[[], float]
    wait: Callable[[float], None]
    on_done: Callable[[Done], None] = lambda _: None
    done: list[Done] = field(default_factory=list)

    def play(self, deeds: Iterable[Deed]) -> None:
        """All of them, from now on. Whatever lasts is undone, also when a deed fails."""
        began, order = self.now(), itertools.count()
        # What ends comes before what begins at the same time.
        queue: list[tuple[float, int, int, Deed | Callable[[], None]]] = [(began + deed.at, 1, next(order), deed) for deed in deeds]
        heapq.heapify(queue)
        try:
            while queue:
                at, _, _, item = heapq.heappop(queue)
                self.wait(at)
                if not isinstance(item, Deed):
                    item()
                elif undo := self._do(item):
                    heapq.heappush(queue, (self.now() + item.seconds, 0, next(order), undo))
        finally:
            for _, _, _, item in queue:
                if not isinstance(item, Deed):
                    item()

    def _do(self, deed: Deed) -> Callable[[], None] | None:
        began = self.now()
        note, undo = self.do(deed)
        self.done.append(Done(deed.title, began, began + deed.seconds, note))
        self.on_done(self.done[-1])
        return undo
