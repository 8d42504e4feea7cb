"""A schedule of faults, from a seed. Pure: the same seed gives the same schedule on every machine.

A fault names its victim by `pick`, a number from 0 to 1. Which pod or shard that is depends on those that exist at the time.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

QUIET_END = 20.0  # seconds at the end in which no fault begins
OUTAGE = 30.0  # seconds that a fault of a service lasts
SLOW_BEFORE = 2.0  # seconds from the beginning of slow work until a zombie is made
SCALES = (4, 2)
DEPLOY_BEFORE, RESETS_APART, MEANWHILE = 30.0, (75.0, 95.0), (1.0, 14.0)  # seconds before a reset; until the next; after it, until a fault
STANDBY_APART, GONE = (45.0, 60.0), 25.0  # seconds until the next: another standby has to be ready; for which a driver is frozen or lost
POOL_APART = (25.0, 40.0)  # seconds until the next
POOL_GONE = 45.0  # seconds for which somebody is frozen, lost or elsewhere: more than two leases of a member
HANGS, RESTS = 60.0, 20.0  # seconds for which a neighbour hangs, which is longer than its batch.maxSeconds; for which it is suspended
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
    DEPLOY = "deploy"  # another version of the spec, to which a reset can go back
    RESET = "reset"  # spec.position
    KILL_JOB = "kill Job"  # SIGKILL of the pod that moves the positions
    KILL_STANDBY = "kill standby"  # SIGKILL
    FREEZE_DRIVER = "freeze driver"  # SIGSTOP, and SIGCONT after more than a lease
    FREEZE_STANDBY = "freeze standby"
    LOSE_DRIVER = "lose driver"  # no packet reaches its pod or leaves it, as on a lost node
    LOSE_STANDBY = "lose standby"
    FREEZE_EXECUTOR = "freeze executor"
    DELETE_DRIVER = "delete driver"  # by force: its name is free before its processes are gone
    DELETE_EXECUTOR = "delete executor"
    LEAVE = "leave pool"  # the consumer runs in a driver of its own, and returns
    SUSPEND = "suspend neighbour"
    HANG = "hang neighbour"  # its tasks do not end, for longer than batch.maxSeconds
    FAIL_NEIGHBOUR = "fail neighbour"  # its pipeline raises on everything


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
    resets: bool = False
    standby: bool = False
    pool: bool = False

    def faults(self) -> tuple[Fault, ...]:
        """The schedule; with `poison` there are records beside it on which the pipeline raises, and times when its sink is down.

        With `resets` positions are moved beside it. With `standby` the driver and its standby are killed, frozen and lost beside it, and nothing is
        scaled: a standby has as many executors as the driver. With `pool` come the faults that a pool's pods and members have.
        """
        faults = schedule(self.seed, self.seconds, self.sink.services)
        more = (
            *(poisoned(self.seed, self.seconds) if self.poison else ()),
            *(resetting(self.seed, self.seconds) if self.resets else ()),
            *(standing_by(self.seed, self.seconds) if self.standby else ()),
            *(pooling(self.seed, self.seconds) if self.pool else ()),
        )
        kept = (fault for fault in faults if not (self.standby and fault.kind is FaultKind.SCALE))
        return tuple(sorted((*kept, *more), key=lambda fault: fault.at))


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


def resetting(seed: int, seconds: float) -> Iterator[Fault]:
    """Deploys, each followed by a reset, and that by a fault while it is carried out: each kind in turn, the seed decides in which order."""
    rng = random.Random(f"reset {seed}")  # noqa: S311 - replayable, not secret
    kinds = rng.sample(MEANWHILE_FAULTS, len(MEANWHILE_FAULTS))
    at, turn = rng.uniform(*LIGHT), 0
    while at + DEPLOY_BEFORE + MEANWHILE[1] < seconds - QUIET_END:
        reset = at + DEPLOY_BEFORE
        yield Fault(round(at, 1), FaultKind.DEPLOY)
        yield Fault(round(reset, 1), FaultKind.RESET, pick=round(rng.random(), 3))
        yield Fault(round(reset + rng.uniform(*MEANWHILE), 1), kinds[turn % len(kinds)], pick=round(rng.random(), 3))
        at, turn = at + rng.uniform(*RESETS_APART), turn + 1


def standing_by(seed: int, seconds: float) -> Iterator[Fault]:
    """Driver and standby are killed, frozen and lost: each in turn, the seed decides in which order."""
    rng = random.Random(f"standby {seed}")  # noqa: S311 - replayable, not secret
    kinds = rng.sample(STANDBY_FAULTS, len(STANDBY_FAULTS))
    at, turn = rng.uniform(*LIGHT), 0
    while at + GONE < seconds - QUIET_END:
        kind = kinds[turn % len(kinds)]
        yield Fault(round(at, 1), kind, 0.0 if kind in KILLS else GONE)
        at, turn = at + rng.uniform(*STANDBY_APART), turn + 1


def pooling(seed: int, seconds: float) -> Iterator[Fault]:
    """In turns, something happens to a member or its neighbour, and to a pod of the pool. The seed decides in which order."""
    rng = random.Random(f"pool {seed}")  # noqa: S311 - replayable, not secret
    kinds = tuple(rng.sample(sorted(of), len(of)) for of in (POOL_MEMBERS, POOL_PODS))
    at, turn = rng.uniform(*LIGHT), 0
    while at < seconds - QUIET_END:
        of = kinds[turn % 2]
        kind = of[turn // 2 % len(of)]
        fault = Fault(round(at, 1), kind, {**POOL_MEMBERS, **POOL_PODS}[kind], pick=round(rng.random(), 3))
        if fault.at + fault.seconds < seconds - QUIET_END:
            yield fault
        at, turn = at + rng.uniform(*POOL_APART), turn + 1


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


MEANWHILE_FAULTS = (FaultKind.KILL_JOB, FaultKind.KILL_DRIVER, FaultKind.KILL_OPERATOR, FaultKind.SPLIT, FaultKind.MERGE)
KILLS = {FaultKind.KILL_DRIVER, FaultKind.KILL_STANDBY}
STANDBY_FAULTS = (*sorted(KILLS), FaultKind.FREEZE_DRIVER, FaultKind.FREEZE_STANDBY, FaultKind.LOSE_DRIVER, FaultKind.LOSE_STANDBY)
# Seconds that each lasts.
POOL_MEMBERS: Mapping[FaultKind, float] = {
    FaultKind.LEAVE: POOL_GONE,
    FaultKind.SUSPEND: RESTS,
    FaultKind.HANG: HANGS,
    FaultKind.FAIL_NEIGHBOUR: OUTAGE,
}
POOL_PODS: Mapping[FaultKind, float] = {
    FaultKind.FREEZE_DRIVER: POOL_GONE,
    FaultKind.FREEZE_EXECUTOR: POOL_GONE,
    FaultKind.LOSE_DRIVER: POOL_GONE,
    FaultKind.DELETE_DRIVER: 0.0,
    FaultKind.DELETE_EXECUTOR: 0.0,
}
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
