"""A scenario under way, in a cluster or without one: events, waits, reshards, and the account at the end."""

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.scenario import account, delivered
from sluice_lab.scenario.account import Account, AccountInput
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.environment import Environment
from sluice_lab.scenario.live_view import LiveView
from sluice_lab.scenario.pauses import CommitSampler, Event
from sluice_lab.scenario.producer import LoadGenerator
from sluice_lab.scenario.topology import short
from sluice_lab.steps import ProgressStep, step

POLL_SECONDS = 0.25


@dataclass
class ScenarioRun:
    """A scenario under way. `failure` returns why further waiting is useless, or None."""

    environment: Environment
    checkpoints: Checkpoints
    sampler: CommitSampler
    load: LoadGenerator
    view: LiveView
    failure: Callable[[], str | None]
    events: list[Event] = field(default_factory=list)

    @contextmanager
    def event(self, name: str, goal: str) -> Iterator[ProgressStep]:
        """Record an event. The block causes it and waits for its goal."""
        began = time.monotonic()
        with self.view.step(f"{name}: {goal}") as current:
            yield current
        self.events.append(Event(name, goal, began, time.monotonic()))

    def until(self, what: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition.

        Raises:
            LabError: it does not hold within `seconds`, or `failure` says that it never will.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if failure := self.failure():
                raise LabError(f"{what}: will not happen: {failure}")
            if time.monotonic() > deadline:
                raise LabError(f"{what}: not within {seconds:.0f} s. Now: {', '.join(self.view.refresh().state())}")
            time.sleep(POLL_SECONDS)

    def another_batch(self, seconds: float) -> None:
        """Wait for one more committed batch."""
        before = self.sampler.batch
        self.until("a committed batch", lambda: self.sampler.batch > before, seconds)

    def another_epoch(self, seconds: float) -> None:
        """Wait for a batch committed by a later epoch."""
        before = self.sampler.generation
        self.until("a batch of the next driver", lambda: self.sampler.generation > before, seconds)

    def split(self, number: int) -> None:
        """Split a shard, and wait until its children are read."""
        with self.event(f"split of shard {number}", "children read") as current:
            self._children_read(self.environment.stream.split(number), current)

    def merge(self, first: int, second: int) -> None:
        """Merge two shards, and wait until their child is read."""
        with self.event(f"merge of shards {first} and {second}", "child read") as current:
            self._children_read(self.environment.stream.merge(first, second), current)

    def caught_up(self, seconds: float = 240) -> None:
        """Wait until every record produced so far is behind a checkpoint."""
        last = self.environment.producer.last_positions()
        self.until("every record behind a checkpoint", lambda: not account.behind(last, self.checkpoints.shards()), seconds)

    def _children_read(self, children: Sequence[str], current: ProgressStep) -> None:
        current.note(" and ".join(map(short, children)))
        self.until("the children read", lambda: all(self._started(child) for child in children), 90)

    def _started(self, shard: str) -> bool:
        return self.checkpoints.shards().get(shard, {}).get("at") in {"AFTER", "END"}


@contextmanager
def exclusive() -> Iterator[Path]:
    """The demo's folder, for one run at a time: two runs would share one sink."""
    work = places.work()
    with (work / "demo.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step("wait for another demo to end"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield places.made(work / "demo")


def take_account(environment: Environment, sink: Path) -> Account:
    """The account of all produced records against the content of the sink."""
    return account.compare(AccountInput(environment.producer.produced, environment.checkpoints, delivered.read(sink), environment.stream.parents()))
