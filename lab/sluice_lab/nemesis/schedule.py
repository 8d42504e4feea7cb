"""What happens when, from a seed. Pure: the same seed gives the same schedule, on every machine.

A deed that needs a victim names it by a number from 0 to 1, `pick`: which pod or shard that is follows from those there are at the time.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

QUIET_END = 20.0  # seconds at the end in which nothing new begins
OUTAGE = 30.0  # seconds that an emulator misbehaves
SLOW_BEFORE = 2.0  # seconds from the beginning of slow work until a zombie is made
SCALES = (4, 2)
LIGHT, HEAVY = (4.0, 9.0), (20.0, 28.0)  # seconds until the next deed: after one that a consumer hardly feels, and after one that it waits out


class FaultKind(StrEnum):
    """What is done."""

    KILL_EXECUTOR = "kill executor"  # SIGKILL
    EVICT_EXECUTOR = "evict executor"
    KILL_DRIVER = "kill driver"  # SIGKILL
    EVICT_DRIVER = "evict driver"
    KILL_OPERATOR = "kill operator"  # SIGKILL of the leader
    SPLIT = "split"
    MERGE = "merge"
    SCALE = "scale"
    THROTTLE = "throttle"
    FAIL = "fail"
    CUT = "cut"
    LOSE = "lose replies"
    DELAY = "delay"
    ZOMBIE = "zombie"  # an executor reaches nothing but Kinesis and the sink
    CUT_DRIVER = "cut driver off"  # from DynamoDB
    SLOW = "slow work"  # tasks take seconds, so that there is something to interrupt


class ProxiedService(StrEnum):
    """Whose calls misbehave."""

    DYNAMODB = "DynamoDB"
    KINESIS = "Kinesis"


@dataclass(frozen=True, slots=True)
class Deed:
    """One deed.

    Attributes:
        at: seconds after the beginning.
        seconds: how long it lasts; 0 for what is done once.
        pick: which of the possible victims, from 0 to 1.
        share: of the calls that are hit; seconds for DELAY, which hits all.
        count: executors wanted, for SCALE.
    """

    at: float
    kind: FaultKind
    seconds: float = 0.0
    pick: float = 0.0
    service: ProxiedService | None = None
    share: float = 1.0
    count: int = 0

    @property
    def title(self) -> str:
        """For people."""
        to = f" to {self.count}" if self.kind is FaultKind.SCALE else ""
        how = f"{self.share:g} s" if self.kind is FaultKind.DELAY else f"{self.share:.0%}"
        of = f" {self.service} {how}" if self.service else ""
        return f"{self.kind}{to}{of}"


Make = Callable[[random.Random, float], tuple[Deed, ...]]


def schedule(seed: int, seconds: float) -> tuple[Deed, ...]:
    """The deeds of so many seconds, in order of time.

    Five minutes hold every kind that is not one of `FURTHER`. The seed decides their order; while there is time they come again, in another.
    """
    dice = random.Random(seed)  # noqa: S311 - replayable, not secret
    deeds: list[Deed] = []
    at, makers = dice.uniform(*LIGHT), _turns(dice)
    while at < seconds - QUIET_END:
        light, make = next(makers)
        deeds += make(dice, round(at, 1))
        at += dice.uniform(*(LIGHT if light else HEAVY))
    return tuple(sorted(deeds, key=lambda deed: deed.at))


def _turns(dice: random.Random) -> Iterator[tuple[bool, Make]]:
    """All makers for ever, each round in another order; heavy ones apart from each other as far as there are light ones between."""
    while True:
        heavy, light = _shuffled(dice, HEAVY_DEEDS) + _shuffled(dice, FURTHER), _shuffled(dice, LIGHT_DEEDS)
        for turn in range(max(len(heavy), len(light))):
            yield from ((True, make) for make in light[turn : turn + 1])
            yield from ((False, make) for make in heavy[turn : turn + 1])


def _shuffled(dice: random.Random, makers: tuple[Make, ...]) -> list[Make]:
    return dice.sample(makers, len(makers))


def _once(kind: FaultKind) -> Make:
    return lambda dice, at: (Deed(at, kind, pick=round(dice.random(), 3)),)


def _slowed(kind: FaultKind, least: float, most: float) -> Make:
    """While tasks take seconds, so that work is under way when it happens; `least` and `most` seconds long."""

    def make(dice: random.Random, at: float) -> tuple[Deed, ...]:
        seconds, pick = round(dice.uniform(least, most), 1), round(dice.random(), 3)
        return Deed(at, FaultKind.SLOW, SLOW_BEFORE + 10), Deed(at + SLOW_BEFORE, kind, seconds, pick)

    return make


def _outage(kind: FaultKind, *shares: float) -> Make:
    def make(dice: random.Random, at: float) -> tuple[Deed, ...]:
        return (Deed(at, kind, OUTAGE, service=dice.choice(list(ProxiedService)), share=dice.choice(shares)),)

    return make


def _scales(_: random.Random, at: float) -> tuple[Deed, ...]:
    """Up and down again."""
    return tuple(Deed(at + 12 * turn, FaultKind.SCALE, count=count) for turn, count in enumerate(SCALES))


LIGHT_DEEDS: tuple[Make, ...] = (
    _once(FaultKind.SPLIT),
    _once(FaultKind.MERGE),
    _once(FaultKind.KILL_OPERATOR),
    _scales,
    _once(FaultKind.EVICT_EXECUTOR),
    _outage(FaultKind.DELAY, 0.3),
)
HEAVY_DEEDS: tuple[Make, ...] = (
    _slowed(FaultKind.KILL_EXECUTOR, 0, 0),
    _slowed(FaultKind.ZOMBIE, 15, 15),
    _once(FaultKind.KILL_DRIVER),
    _slowed(FaultKind.CUT_DRIVER, 4, 16),
    _outage(FaultKind.THROTTLE, 0.5, 0.9),
    _outage(FaultKind.FAIL, 0.3, 1.0),
)
FURTHER: tuple[Make, ...] = (
    _once(FaultKind.EVICT_DRIVER),
    _outage(FaultKind.CUT, 0.3, 1.0),
    _outage(FaultKind.LOSE, 0.1, 0.3),
)
