"""What each event cost: how long until its goal was reached, and how long no batch was committed meanwhile.

The commits are watched from outside, in the checkpoint table, because a driver that was killed tells nothing.
"""

import itertools
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SAMPLE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Commit:
    """When a batch was first seen committed (monotonic seconds), and by which epoch."""

    at: float
    batch: int
    generation: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: its name, when it was made to happen, and when its goal was reached."""

    name: str
    goal: str
    began: float
    reached: float

    @property
    def seconds(self) -> float:
        """Time until the goal was reached."""
        return self.reached - self.began


def longest_pause(commits: Sequence[Commit], event: Event) -> float | None:
    """The longest time without a commit until the goal was reached, in seconds; None if there had been none before.

    It may have begun with a batch before the event. What comes after the goal may be the next event's doing.
    """
    times = [commit.at for commit in commits]
    first, last = bisect_right(times, event.began), bisect_left(times, event.reached)
    if first == 0:
        return None
    points = [times[first - 1], *times[first:last], event.reached]
    return max(later - earlier for earlier, later in itertools.pairwise(points))


class Sampler(threading.Thread):
    """Watches `committed` of a consumer until `stop`; `commits` may be read meanwhile.

    `read` gives (generation, committed), or None as long as there is no consumer; whatever it raises counts as that.
    """

    def __init__(self, read: Callable[[], tuple[int, int] | None]) -> None:
        super().__init__(name="commits", daemon=True)
        self.commits: list[Commit] = []
        self._read = read
        self._ended = threading.Event()

    def run(self) -> None:
        """Sample."""
        while not self._ended.wait(SAMPLE_SECONDS):
            self.sample(time.monotonic())

    def sample(self, now: float) -> None:
        """Look once."""
        try:
            found = self._read()
        except Exception:  # noqa: BLE001 - an emulator that is being stopped; the next sample says more
            return
        if found is None:
            return
        generation, committed = found
        if committed > (self.commits[-1].batch if self.commits else 0):
            self.commits.append(Commit(now, committed, generation))

    def stop(self) -> None:
        """End, and wait for it."""
        self._ended.set()
        self.join()

    @property
    def batch(self) -> int:
        """The last batch that was committed."""
        return self.commits[-1].batch if self.commits else 0

    @property
    def generation(self) -> int:
        """The epoch that committed it."""
        return self.commits[-1].generation if self.commits else 0
