"""Take-over times: how long a consumer committed no batch after one change, and how long it may. Pure.

A pause is the time between two commits, sampled in the checkpoint table by a process that is not Sluice. After a kill it counts from the kill. A
driver's start is read from the driver's own clock: from the beginning of its container to its first batch. That batch meets cold JVMs and Python
workers. Their cost is measured in the consumer's very first batch, which takes over from no other epoch, and counts as part of a start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sluice_lab.nemesis.history import Invocation

MORE = 5.0  # seconds of margin above what is known to be needed
SCALING = 3.0  # seconds of margin: a batch takes longer while an executor's JVM starts beside it
NEVER = float("inf")
CALM, RESTART, UP, EXECUTOR, DOWN, DRIVER = "calm", "clean restart", "scale 1 to 4", "executor SIGKILL", "scale 4 to 2", "driver SIGKILL"
STANDBY = "driver SIGKILL, with a standby"
EXPIRY = 1.05  # of a lease, until another driver may take it: the two clocks may differ by so much


@dataclass(frozen=True, slots=True)
class Sample:
    """The `consumer` row at one moment: the epoch that holds the lease (its driver's pod), and the number of records produced so far."""

    at: float
    generation: int
    epoch: str
    batch: int
    released: bool
    produced: int


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which one change was made to the consumer and no other: from its beginning until the consumer had settled."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Start:
    """What an epoch needed, in seconds: to acquire the lease (waiting for its expiry included), from there to its first batch, and for that batch."""

    to_lease: float
    to_batch: float
    batch: float


@dataclass(frozen=True, slots=True)
class Pause:
    """A measured pause and its limit, in seconds; `needed` says what the limit is made of."""

    name: str
    seconds: float
    most: float
    needed: str

    @property
    def right(self) -> bool:
        """Whether it was within its limit."""
        return self.seconds <= self.most


def commits(samples: Sequence[Sample]) -> list[Sample]:
    """The first sample of each committed batch."""
    return [sample for before, sample in pairwise(samples) if sample.batch > before.batch]


def longest(samples: Sequence[Sample], window: Window, *, after: bool = False) -> float:
    """The longest time between two commits that overlaps the window, in seconds. With `after`, time before the window does not count.

    Infinite if there was no commit before the window, or none after it.
    """
    times = [sample.at for sample in commits(samples)]
    spans = [(a, b) for a, b in pairwise(times) if b > window.began and a < window.ended]
    if not spans or spans[0][0] > window.began or spans[-1][1] < window.ended:
        return NEVER
    return max(later - (max(earlier, window.began) if after else earlier) for earlier, later in spans)


def start(samples: Sequence[Sample], invocations: Sequence[Invocation], epoch: str) -> Start:
    """What an epoch needed.

    Raises:
        ValueError: it never acquired the lease, or never committed a batch.
    """
    acquired = min(sample.at for sample in samples if sample.epoch == epoch)
    first = min((invocation for invocation in invocations if invocation.epoch == epoch), key=lambda invocation: invocation.at)
    committed = min(sample.at for sample in commits(samples) if sample.epoch == epoch and sample.at > first.at)
    return Start(acquired - first.began, first.at - acquired, committed - first.at)


def cold(samples: Sequence[Sample], invocations: Sequence[Invocation]) -> float:
    """How long the consumer's very first batch took, in seconds, of the first epoch that committed one: a batch that is overdue ends an epoch, too.

    Raises:
        ValueError: none did.
    """
    committed = {sample.epoch for sample in commits(samples)}
    return start(samples, invocations, next((one.epoch for one in invocations if one.epoch in committed), "")).batch


def next_epoch(invocations: Sequence[Invocation], at: float) -> str:
    """The first epoch whose container began after this moment and which called the pipeline; empty if there is none."""
    return next((invocation.epoch for invocation in invocations if invocation.began > at), "")


def clean_restart(samples: Sequence[Sample], invocations: Sequence[Invocation], window: Window, beside: float = 0.0) -> Pause:
    """At most the next driver's start, and a margin; in a pool, the batch `beside` that the drain of its driver waits for, too."""
    own = start(samples, invocations, next_epoch(invocations, window.began))
    needs = own.to_lease + own.to_batch + cold(samples, invocations)
    waits = f" + another's batch {beside:.1f} s" if beside else ""
    return Pause(window.name, longest(samples, window), needs + beside + MORE, f"driver's start {needs:.1f} s{waits} + {MORE:g} s")


def killed_driver(samples: Sequence[Sample], invocations: Sequence[Invocation], window: Window, usual: Start, lease: float) -> Pause:
    """At most the lease, a driver's start, and a margin.

    Args:
        samples: of the table.
        invocations: of the pipeline.
        window: from the kill.
        usual: the start of an epoch that found its lease released. The next driver's own start overlaps its wait for expiry: Spark starts in that
            time.
        lease: its duration in seconds.
    """
    needs = usual.to_lease + usual.to_batch + cold(samples, invocations)
    return Pause(
        window.name, longest(samples, window, after=True), lease + needs + MORE, f"lease {lease:g} s + driver's start {needs:.1f} s + {MORE:g} s"
    )


def followed(samples: Sequence[Sample], window: Window, lease: float) -> Pause:
    """A driver was killed behind which a standby stood. At most the lease by the standby's clock, and a margin: no start lies in between."""
    needed = f"lease {lease:g} s * {EXPIRY:g} + {MORE:g} s"
    return Pause(window.name, longest(samples, window, after=True), lease * EXPIRY + MORE, needed)


def killed_executor(samples: Sequence[Sample], window: Window, lease: float) -> Pause:
    """At most the lease, and a margin."""
    return Pause(window.name, longest(samples, window, after=True), lease + MORE, f"lease {lease:g} s + {MORE:g} s")


def scaled(samples: Sequence[Sample], window: Window, ordinary: float) -> Pause:
    """At most the longest time between two batches while calm, and a margin for the machine, which starts a JVM in that time."""
    return Pause(window.name, longest(samples, window), ordinary + SCALING, f"as before {ordinary:.1f} s + {SCALING:g} s")
