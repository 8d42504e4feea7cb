"""The cost of each event: the time until its goal was reached, and the longest time without a committed batch until then.

Commits are sampled from outside, in the checkpoint table, because a killed driver reports nothing.
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
    """The first sample that has a batch committed (monotonic seconds), and the epoch that committed it."""

    at: float
    batch: int
    generation: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a scenario: when it was caused, and when its goal was reached."""

    name: str
    goal: str
    began: float
    reached: float

    @property
    def seconds(self) -> float:
        """Time until the goal was reached."""
        return self.reached - self.began


def longest_pause(commits: Sequence[Commit], event: Event) -> float | None:
    """The longest time without a commit until the goal was reached, in seconds; None if there was no commit before the event.

    It may begin before the event, with the last batch. Time after the goal does not count: the next event may be its cause.
    """
    times = [commit.at for commit in commits]
    first, last = bisect_right(times, event.began), bisect_left(times, event.reached)
    if first == 0:
        return None
    points = [times[first - 1], *times[first:last], event.reached]
    return max(later - earlier for earlier, later in itertools.pairwise(points))


class CommitSampler(threading.Thread):
    """Samples `committed` of a consumer until `stop`; `commits` may be read at any time.

    `read` returns (generation, committed), or None while there is no consumer. A read that raises counts as None.
    """

    def __init__(self, read: Callable[[], tuple[int, int] | None]) -> None:
        super().__init__(name="commits", daemon=True)
        self.commits: list[Commit] = []
        self._read = read
        self._ended = threading.Event()

    def run(self) -> None:
        """Sample until `stop`."""
        while not self._ended.wait(SAMPLE_SECONDS):
            self.sample(time.monotonic())

    def sample(self, now: float) -> None:
        """Sample once."""
        try:
            found = self._read()
        except Exception:  # noqa: BLE001 - an emulator that is being stopped; the next sample follows soon
            return
        if found is None:
            return
        generation, committed = found
        if committed > (self.commits[-1].batch if self.commits else 0):
            self.commits.append(Commit(now, committed, generation))

    def stop(self) -> None:
        """End the thread, and wait for it."""
        self._ended.set()
        self.join()

    @property
    def batch(self) -> int:
        """The last committed batch."""
        return self.commits[-1].batch if self.commits else 0

    @property
    def generation(self) -> int:
        """The epoch that committed it."""
        return self.commits[-1].generation if self.commits else 0
