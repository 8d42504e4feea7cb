"""The consumer under test: its parts, waiting for a state of it, and a window for one change to it."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from sluice_lab.errors import LabError
from sluice_lab.nemesis.injector import Injector
from sluice_lab.nemesis.lake_sinks import LakeSink
from sluice_lab.nemesis.passes import CarriedOut
from sluice_lab.nemesis.runner import Runner
from sluice_lab.nemesis.sampler import TableSampler
from sluice_lab.nemesis.takeover import Window
from sluice_lab.nemesis.timeline import Injection
from sluice_lab.scenario import installing
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.live_view import LiveView
from sluice_lab.scenario.producer import LoadGenerator, Producer
from sluice_lab.scenario.topology import Stream

NAMESPACE = installing.NAMESPACE
TIMEOUT, POLL = 240.0, 0.25  # seconds


@dataclass(frozen=True)
class Neighbour:
    """Another member of the pool, and what is recorded of it."""

    sampler: TableSampler
    checkpoints: Checkpoints


@dataclass
class Experiment:
    """A consumer under test, and all that is recorded of it. `neighbours`: the other members of its pool, by name."""

    injector: Injector
    sampler: TableSampler
    view: LiveView
    stream: Stream
    producer: Producer
    load: LoadGenerator
    runner: Runner
    checkpoints: Checkpoints
    lake: LakeSink | None
    neighbours: Mapping[str, Neighbour] = field(default_factory=dict)
    resets: list[CarriedOut] = field(default_factory=list)
    windows: dict[str, Window] = field(default_factory=dict)

    @property
    def samplers(self) -> tuple[TableSampler, ...]:
        """Of the consumer, and of its neighbours."""
        return (self.sampler, *(one.sampler for one in self.neighbours.values()))

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the consumer's namespace."""
        return self.injector.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def until(self, what: str, ready: Callable[[], bool], seconds: float = TIMEOUT) -> None:
        """Wait for a condition.

        Raises:
            LabError: it does not hold within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise LabError(f"{what}: not within {seconds:.0f} s. Now: {', '.join(self.view.refresh().state())}")
            time.sleep(POLL)

    def settled(self, executors: int) -> bool:
        """Whether that many executors run and nothing is under way."""
        snapshot = self.view.snapshot
        return snapshot.settled and len(snapshot.running) == executors

    @contextmanager
    def window(self, name: str) -> Iterator[None]:
        """A window for one change to the consumer. Batches are committed before it and after it."""
        self.batches(1)
        began = time.time()
        with self.view.step(name):
            yield
        self.windows[name] = Window(name, began, time.time())
        self.runner.injections.append(Injection(name, began, began))
        self.batches(1)

    def batches(self, count: int) -> None:
        """Wait for `count` more committed batches, of the neighbours too."""
        for sampler, goal in [(sampler, sampler.batch + count) for sampler in self.samplers]:
            self.until(f"batch {goal}", partial(_reached, sampler, goal))


def _reached(sampler: TableSampler, batch: int) -> bool:
    return sampler.batch >= batch
