"""What both tellings of the story share: watching, waiting, the reshards, and the reckoning."""

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.scenario import delivered, ledger
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.ledger import Account, Books
from sluice_lab.scenario.pauses import Event, Sampler
from sluice_lab.scenario.producer import Stroll
from sluice_lab.scenario.setting import World
from sluice_lab.scenario.topology import short
from sluice_lab.scenario.view import LiveView
from sluice_lab.steps import ProgressStep, step

POLL_SECONDS = 0.25


@dataclass
class Stage:
    """A story under way. `trouble` says why waiting makes no sense any more, or None."""

    world: World
    checkpoints: Checkpoints
    sampler: Sampler
    stroll: Stroll
    view: LiveView
    trouble: Callable[[], str | None]
    events: list[Event] = field(default_factory=list)

    @contextmanager
    def event(self, name: str, goal: str) -> Iterator[ProgressStep]:
        """Something that happens to the consumer; inside, it is made to happen and its goal is waited for."""
        began = time.monotonic()
        with self.view.step(f"{name}: {goal}") as current:
            yield current
        self.events.append(Event(name, goal, began, time.monotonic()))

    def until(self, what: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait.

        Raises:
            LabError: it does not come, within `seconds` or ever.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if trouble := self.trouble():
                raise LabError(f"{what}: will not happen: {trouble}")
            if time.monotonic() > deadline:
                raise LabError(f"{what}: not within {seconds:.0f} s. Now: {', '.join(self.view.look().state())}")
            time.sleep(POLL_SECONDS)

    def another_batch(self, seconds: float) -> None:
        """Wait for one more committed batch than there are now."""
        before = self.sampler.batch
        self.until("a committed batch", lambda: self.sampler.batch > before, seconds)

    def another_epoch(self, seconds: float) -> None:
        """Wait for a batch of a later epoch than that of the last batch."""
        before = self.sampler.generation
        self.until("a batch of the next driver", lambda: self.sampler.generation > before, seconds)

    def split(self, number: int) -> None:
        """Split a shard, and wait until its children are read."""
        with self.event(f"split of shard {number}", "children read") as current:
            self._read_on(self.world.stream.split(number), current)

    def merge(self, first: int, second: int) -> None:
        """Merge two shards, and wait until their child is read."""
        with self.event(f"merge of shards {first} and {second}", "child read") as current:
            self._read_on(self.world.stream.merge(first, second), current)

    def caught_up(self, seconds: float = 240) -> None:
        """Wait until everything put so far is behind a checkpoint."""
        last = self.world.producer.last()
        self.until("every record behind a checkpoint", lambda: not ledger.behind(last, self.checkpoints.shards()), seconds)

    def _read_on(self, children: Sequence[str], current: ProgressStep) -> None:
        current.note(" and ".join(map(short, children)))
        self.until("the children read", lambda: all(self._started(child) for child in children), 90)

    def _started(self, shard: str) -> bool:
        return self.checkpoints.shards().get(shard, {}).get("at") in {"AFTER", "END"}


@contextmanager
def alone() -> Iterator[Path]:
    """The demo's folder, for one run at a time: two would write to one sink."""
    work = places.work()
    with (work / "demo.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step("another demo runs: waiting for its end"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield places.made(work / "demo")


def reckon(world: World, sink: Path) -> Account:
    """The account of everything that was put, against what lies in the sink."""
    return ledger.account(Books(world.producer.produced, world.checkpoints, delivered.read(sink), world.stream.parents()))
