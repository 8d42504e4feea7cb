"""How long a consumer stood still after one thing happened to it, and how long it may. Pure.

A pause is the time between two commits, seen in the checkpoint table from outside; after a kill it counts from the kill. What a driver needs to
start is read from its own clock: from the beginning of its container to its first batch. That batch meets JVMs and Python workers that are cold. What
this costs is seen in the consumer's very first one, which had nothing to take over, and is part of a driver's start too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sluice_lab.nemesis.witness import Issue

MORE = 5.0  # seconds that may be added to what is known to be needed
SCALING = 3.0  # seconds; a batch while an executor's JVM starts beside it takes longer, which is no pause
NEVER = float("inf")
CALM, RESTART, UP, EXECUTOR, DOWN, DRIVER = "calm", "clean restart", "scale 1 to 4", "executor SIGKILL", "scale 4 to 2", "driver SIGKILL"


@dataclass(frozen=True, slots=True)
class Look:
    """A moment of the `consumer` row: the epoch that holds the lease (its driver's pod), and how many records had been put by then."""

    at: float
    generation: int
    epoch: str
    batch: int
    released: bool
    produced: int


@dataclass(frozen=True, slots=True)
class Happening:
    """Something done to the consumer while nothing else was: when, and when all was well again."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Start:
    """What an epoch needed, in seconds: to take the lease (waiting it out included), from then on to its first batch, and for that batch."""

    to_lease: float
    to_batch: float
    batch: float


@dataclass(frozen=True, slots=True)
class Pause:
    """What was measured, and the most it may be, in seconds; `needed` says what that is made of."""

    name: str
    seconds: float
    most: float
    needed: str

    @property
    def right(self) -> bool:
        """Whether it was short enough."""
        return self.seconds <= self.most


def commits(looks: Sequence[Look]) -> list[Look]:
    """The looks that first saw a batch committed."""
    return [look for before, look in pairwise(looks) if look.batch > before.batch]


def longest(looks: Sequence[Look], happening: Happening, *, after: bool = False) -> float:
    """The longest time without a commit that touches the happening, in seconds; `after`: only what lies after its beginning counts.

    Without end if there was no commit before it, or none afterwards.
    """
    times = [look.at for look in commits(looks)]
    spans = [(a, b) for a, b in pairwise(times) if b > happening.began and a < happening.ended]
    if not spans or spans[0][0] > happening.began or spans[-1][1] < happening.ended:
        return NEVER
    return max(later - (max(earlier, happening.began) if after else earlier) for earlier, later in spans)


def start(looks: Sequence[Look], issues: Sequence[Issue], epoch: str) -> Start:
    """What an epoch needed.

    Raises:
        ValueError: it never took the lease, or never committed a batch.
    """
    taken = min(look.at for look in looks if look.epoch == epoch)
    first = min((issue for issue in issues if issue.epoch == epoch), key=lambda issue: issue.at)
    committed = min(look.at for look in commits(looks) if look.epoch == epoch and look.at > first.at)
    return Start(taken - first.began, first.at - taken, committed - first.at)


def cold(looks: Sequence[Look], issues: Sequence[Issue]) -> float:
    """What the very first batch of the consumer took, in seconds."""
    return start(looks, issues, issues[0].epoch).batch


def next_epoch(issues: Sequence[Issue], at: float) -> str:
    """The first epoch that began a batch in a container that began after this moment; empty if none did."""
    return next((issue.epoch for issue in issues if issue.began > at), "")


def clean_restart(looks: Sequence[Look], issues: Sequence[Issue], happening: Happening) -> Pause:
    """No more than the next driver's start, and a little."""
    own = start(looks, issues, next_epoch(issues, happening.began))
    needs = own.to_lease + own.to_batch + cold(looks, issues)
    return Pause(happening.name, longest(looks, happening), needs + MORE, f"driver's start {needs:.1f} s + {MORE:g} s")


def killed_driver(looks: Sequence[Look], issues: Sequence[Issue], happening: Happening, usual: Start, lease: float) -> Pause:
    """No more than the lease, a driver's start, and a little.

    Args:
        looks: at the table.
        issues: of drivers.
        happening: the death.
        usual: the start of an epoch that found its lease released. The heir's own cannot be separated from its wait, for Spark starts meanwhile.
        lease: its duration in seconds.
    """
    needs = usual.to_lease + usual.to_batch + cold(looks, issues)
    return Pause(
        happening.name, longest(looks, happening, after=True), lease + needs + MORE, f"lease {lease:g} s + driver's start {needs:.1f} s + {MORE:g} s"
    )


def killed_executor(looks: Sequence[Look], happening: Happening, lease: float) -> Pause:
    """No more than the lease, and a little."""
    return Pause(happening.name, longest(looks, happening, after=True), lease + MORE, f"lease {lease:g} s + {MORE:g} s")


def scaled(looks: Sequence[Look], happening: Happening, ordinary: float) -> Pause:
    """None at all: no longer than between two batches of the time before, and a little for the machine that starts a JVM meanwhile."""
    return Pause(happening.name, longest(looks, happening), ordinary + SCALING, f"as before {ordinary:.1f} s + {SCALING:g} s")
