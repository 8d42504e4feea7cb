"""A schedule of faults, from a seed. Pure: the same seed gives the same schedule on every machine.

A fault names its victim by `pick`, a number from 0 to 1. Which pod or shard that is depends on those that exist at the time.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

QUIET_END = 20.0  # seconds at the end in which no fault begins
OUTAGE = 30.0  # seconds that a fault of a service lasts
SLOW_BEFORE = 2.0  # seconds from the beginning of slow work until a zombie is made
SCALES = (4, 2)
POISON_APART, POISON_IN_A_ROW = (35.0, 70.0), 2  # seconds until the next; so many before the sink is down
LIGHT, HEAVY = (4.0, 9.0), (20.0, 28.0)  # seconds until the next fault: after one that hardly delays a consumer, and after one that does


class FaultKind(StrEnum):
    """What a fault does."""

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
    ZOMBIE = "zombie"  # an executor reaches only Kinesis and the sink
    CUT_DRIVER = "cut driver off"  # from DynamoDB
    SLOW = "slow work"  # tasks take seconds, so that a later fault interrupts one
    MAINTAIN = "maintain table"  # snapshots expire, and another writer appends
    POISON = "poison record"  # one on which the pipeline raises
    DOWN = "sink down"  # the pipeline raises on everything, by the same error


class ProxiedService(StrEnum):
    """A service whose calls go through a proxy that can fail them."""

    DYNAMODB = "DynamoDB"
    KINESIS = "Kinesis"
    S3 = "S3"
    CATALOG = "catalog"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at: seconds after the beginning of the schedule.
        seconds: how long it lasts; 0 if it happens at one moment.
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
        """The fault in a few words."""
        to = f" to {self.count}" if self.kind is FaultKind.SCALE else ""
        how = f"{self.share:g} s" if self.kind is FaultKind.DELAY else f"{self.share:.0%}"
        of = f" {self.service} {how}" if self.service else ""
        return f"{self.kind}{to}{of}"


Services = Sequence[ProxiedService]
ALWAYS: Services = (ProxiedService.DYNAMODB, ProxiedService.KINESIS)


class SinkKind(StrEnum):
    """The idempotent sink: Parquet files in a folder of the node, or one of `sluice_consumer.sinks` on S3, as its function is called."""

    FILES = "files"
    PARQUET = "parquet"
    ICEBERG = "iceberg"
    DELTA = "delta"

    @property
    def services(self) -> Services:
        """The services that get a proxy."""
        lake = {SinkKind.FILES: (), SinkKind.ICEBERG: (ProxiedService.S3, ProxiedService.CATALOG)}
        return (*ALWAYS, *lake.get(self, (ProxiedService.S3,)))


@dataclass(frozen=True, slots=True)
class NemesisRun:
    """What is asked of one experiment: faults for so many seconds, in an order that the seed decides, with a sink."""

    seed: int
    seconds: float
    sink: SinkKind = SinkKind.FILES
    poison: bool = False

    def faults(self) -> tuple[Fault, ...]:
        """The schedule; with `poison` there are records beside it on which the pipeline raises, and times when its sink is down."""
        faults = schedule(self.seed, self.seconds, self.sink.services)
        return tuple(sorted((*faults, *poisoned(self.seed, self.seconds)), key=lambda fault: fault.at)) if self.poison else faults


Generator = Callable[[random.Random, float, Services], tuple[Fault, ...]]


def schedule(seed: int, seconds: float, services: Services = ALWAYS) -> tuple[Fault, ...]:
    """The faults of so many seconds, by time.

    Five minutes hold every kind but those in `FURTHER`. The seed decides their order. In a longer schedule they repeat, in another order.

    Args:
        seed: decides the order of faults, their victims and shares.
        seconds: the length.
        services: that have a proxy. A catalog's table is maintained, too.
    """
    rng = random.Random(seed)  # noqa: S311 - replayable, not secret
    faults: list[Fault] = []
    at, generators = rng.uniform(*LIGHT), _rounds(rng, services)
    while at < seconds - QUIET_END:
        light, generate = next(generators)
        faults += generate(rng, round(at, 1), services)
        at += rng.uniform(*(LIGHT if light else HEAVY))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def poisoned(seed: int, seconds: float) -> Iterator[Fault]:
    """Poison records one after the other, and the sink down each time that a few have come; nothing in the last third, for each takes minutes."""
    rng = random.Random(f"poison {seed}")  # noqa: S311 - replayable, not secret
    at, turn = rng.uniform(*LIGHT), 0
    while at < seconds * 2 / 3:
        down = turn % (POISON_IN_A_ROW + 1) == POISON_IN_A_ROW
        kind = FaultKind.DOWN if down else FaultKind.POISON
        yield Fault(round(at, 1), kind, OUTAGE if down else 0.0, pick=round(rng.random(), 3))
        at, turn = at + rng.uniform(*POISON_APART), turn + 1


def _rounds(rng: random.Random, services: Services) -> Iterator[tuple[bool, Generator]]:
    """All generators without end, each round in another order. Light faults separate heavy ones as long as there are any."""
    lights = (*LIGHT_FAULTS, _once(FaultKind.MAINTAIN)) if ProxiedService.CATALOG in services else LIGHT_FAULTS
    while True:
        heavy, light = _shuffled(rng, HEAVY_FAULTS) + _shuffled(rng, FURTHER), _shuffled(rng, lights)
        for turn in range(max(len(heavy), len(light))):
            yield from ((True, generator) for generator in light[turn : turn + 1])
            yield from ((False, generator) for generator in heavy[turn : turn + 1])


def _shuffled(rng: random.Random, generators: tuple[Generator, ...]) -> list[Generator]:
    return rng.sample(generators, len(generators))


def _once(kind: FaultKind) -> Generator:
    return lambda rng, at, _: (Fault(at, kind, pick=round(rng.random(), 3)),)


def _slowed(kind: FaultKind, least: float, most: float) -> Generator:
    """The fault begins while tasks take seconds, so that it interrupts one. It lasts from `least` to `most` seconds."""

    def generate(rng: random.Random, at: float, _: Services) -> tuple[Fault, ...]:
        seconds, pick = round(rng.uniform(least, most), 1), round(rng.random(), 3)
        return Fault(at, FaultKind.SLOW, SLOW_BEFORE + 10), Fault(at + SLOW_BEFORE, kind, seconds, pick)

    return generate


def _outage(kind: FaultKind, *shares: float) -> Generator:
    def generate(rng: random.Random, at: float, services: Services) -> tuple[Fault, ...]:
        return (Fault(at, kind, OUTAGE, service=rng.choice(services), share=rng.choice(shares)),)

    return generate


def _scales(_: random.Random, at: float, __: Services) -> tuple[Fault, ...]:
    """Scale up, then down."""
    return tuple(Fault(at + 12 * turn, FaultKind.SCALE, count=count) for turn, count in enumerate(SCALES))


LIGHT_FAULTS: tuple[Generator, ...] = (
    _once(FaultKind.SPLIT),
    _once(FaultKind.MERGE),
    _once(FaultKind.KILL_OPERATOR),
    _scales,
    _once(FaultKind.EVICT_EXECUTOR),
    _outage(FaultKind.DELAY, 0.3),
)
HEAVY_FAULTS: tuple[Generator, ...] = (
    _slowed(FaultKind.KILL_EXECUTOR, 0, 0),
    _slowed(FaultKind.ZOMBIE, 15, 15),
    _once(FaultKind.KILL_DRIVER),
    _slowed(FaultKind.CUT_DRIVER, 4, 16),
    _outage(FaultKind.THROTTLE, 0.5, 0.9),
    _outage(FaultKind.FAIL, 0.3, 1.0),
)
FURTHER: tuple[Generator, ...] = (
    _once(FaultKind.EVICT_DRIVER),
    _outage(FaultKind.CUT, 0.3, 1.0),
    _outage(FaultKind.LOSE, 0.1, 0.3),
)
