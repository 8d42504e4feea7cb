"""One simulated epoch: a supervisor that takes the lease and beats, and a driver with its engine. The real code of both, in steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from simulation.handover import CLUSTER, OWNER
from simulation.ledger import Ledger
from simulation.migration import SOURCE
from simulation.ports import LOST, UNAVAILABLE, Catalog, Client, Source
from simulation.spark import BatchOverdue, Clock, Engine, JobFailed, JobsNotDone, ProcessRaised
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.errors import ServiceUnavailable, SluiceError
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import PendingName
from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.lease import MARGIN, LeaseRequest, TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.versions import SpecName
from sluice_consumer.batches import planner, retention, versions
from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.folding import Folder, FoldLimits, FoldPorts
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.config import CheckpointsConfig, Config, MigrateFromConfig, PipelineConfig, StartConfig, StreamConfig
from sluice_consumer.exits.ending import UNCLEAN
from sluice_consumer.poison.exclusions import ExclusionPorts
from sluice_consumer.poison.isolator import IsolationPorts, Isolator, SettlePatience
from sluice_consumer.poison.search import BatchFailure, DoubtLimits, Search
from sluice_consumer.process import standby, supervisor
from sluice_consumer.process.lease_release import LeaseRelease
from sluice_consumer.process.supervisor import Heartbeats, Supervisor
from sluice_consumer.shards.probes import KinesisProber, ProbeLimits, ProbeScheduler

if TYPE_CHECKING:
    from simulation.world import World

PATIENCE = DoubtLimits(data=60, unknown=60, nothing=70, refused=200)  # outages of this world last for `outages.SECONDS`
HASTY = DoubtLimits(0, 0, 0, 0)
NEVER = 1_000_000
EXPECTED = (SluiceError, BatchOverdue, JobFailed, JobsNotDone, ProcessRaised)


@dataclass(frozen=True)
class Orders:
    """How an epoch is started.

    Attributes:
        lease: seconds; force: it takes it at once.
        start: where a new consumer begins; migrate: it begins where another system stopped.
        accept: the batch whose loss a person accepts.
        owner, clusters: whose driver it is; "" is nobody's.
        spec: the hash of its spec.
        standby: it stands by until the lease is released or has expired.
    """

    lease: float = 12.0
    force: bool = False
    start: str = "TRIM_HORIZON"
    migrate: bool = False
    accept: int | None = None
    owner: str = OWNER
    clusters: tuple[str, ...] = CLUSTER
    spec: str = "a"
    standby: bool = False


class Stop:
    """The heart's `threading.Event`, in virtual time."""

    def __init__(self, epoch: SimulatedEpoch) -> None:
        self._epoch, self._set = epoch, False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> None:
        self._epoch.sleep(seconds)


class Drain:
    """The batch loop's `threading.Event`, in virtual time: a step of the driver before each batch, and a sleep before each probe while it idles."""

    def __init__(self, epoch: SimulatedEpoch, driver: Process) -> None:
        self._epoch, self._driver = epoch, driver

    def is_set(self) -> bool:
        """Whether the driver was told to stop; asked before each batch."""
        self._driver.pause("next batch")
        return self._told()

    def wait(self, seconds: float) -> bool:
        """Sleeps, also when it is set: the next look notices."""
        if seconds:
            self._epoch.sleep(seconds, self._driver, at="idle")
        return self._told()

    def _told(self) -> bool:
        epoch = self._epoch
        if epoch.audit and epoch.loop is not None:
            epoch.audit, epoch.loop._audited = False, float("-inf")
        return epoch.draining


class Letters:
    def __init__(self, process: Process, ledger: Ledger) -> None:
        self._process, self._ledger = process, ledger

    def hold(self, name: PendingName, letters: tuple[DeadLetter, ...]) -> str:
        self._call("letter", lambda: self._ledger.pending.setdefault(str(name), letters))
        return str(name)

    def held(self) -> dict[str, tuple[PendingName, tuple[DeadLetter, ...]]]:
        return {name: (PendingName.parse(name), letters) for name, letters in self._ledger.pending.items()}

    def publish(self, entry: str) -> bool:
        self._call("publish", lambda: self._ledger.publishes(entry))
        return True

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        gone = frozenset(entries)
        for entry in sorted(gone):
            self._call("drop", lambda entry=entry: self._ledger.pending.pop(entry, None))
        return gone

    def _call(self, what: str, done: Callable[[], object]) -> None:
        fault = self._process.pause(what)
        if fault == UNAVAILABLE:
            raise ServiceUnavailable(f"{what}: injected")
        done()
        if fault == LOST:
            raise ServiceUnavailable(f"{what}: injected, after it was stored")


class SimulatedEpoch:
    """One driver pod.

    Attributes:
        host: the supervisor; driver: its child, once the lease is taken.
        frozen_at: since when the whole pod stands still, or None.
        standing: it waits for a lease that another one may hold: it reads the consumer row and nothing else, and writes nothing.
        cut: the supervisor cannot reach the table.
    """

    ATTEMPTS = 2  # failures of a batch before it is shortened

    def __init__(self, world: World, number: int, orders: Orders) -> None:
        self.world, self.number, self.orders = world, number, orders
        self.host = Process(f"epoch {number} supervisor", self._supervise)
        self.driver: Process | None = None
        self.engine: Engine | None = None
        self.heart: Heartbeats | None = None
        self.taken: TakenLease | None = None
        self.consumer: Consumer | None = None
        self.loop: Loop | None = None
        self.draining = self.audit = self.cut = self.standing = False
        self.idle = 0
        self.frozen_at: float | None = None
        rates = world.habits.rates
        self.clock = Clock(world.now, rates[number % len(rates)], offset=1e6 * number)

    @property
    def over(self) -> bool:
        return self.host.done and (self.driver is None or self.driver.done)

    @property
    def working(self) -> bool:
        """Whether its driver runs, and is not paused."""
        return self.driver is not None and not self.driver.done and self.frozen_at is None

    def sleep(self, seconds: float, process: Process | None = None, at: str = "sleep") -> None:
        """Sleeps by the clock of its machine."""
        (process or self.host).pause(at, Waiting(wake=self.clock.after(seconds)))

    @property
    def looks_at(self) -> float | None:
        """When its idle driver looks for news again, or one whose batch hangs ends; None: it does neither."""
        driver = self.driver if self.working else None
        return driver.waiting.wake if driver is not None and driver.at in {"idle", "stuck"} and driver.waiting is not None else None

    # -- the supervisor ------------------------------------------------------------------------------------------------------------

    def _supervise(self, host: Process) -> None:
        store, orders, clock = CheckpointStore(Client(host, self.world.table, self.world.now)), self.orders, self.clock
        supervisor.prepare(self._config(), store, Catalog(host, self.world.stream))
        claim = LeaseRequest(round(orders.lease * 1000), host.name, "", force=orders.force, owner=Owner(orders.owner, orders.clusters))
        taken = self._takes(store, claim, Watcher(clock=clock, sleep=self.sleep))
        heart = Heartbeats(
            lambda promise: store.beat(taken.epoch, promise),
            orders.lease,
            accepted=taken.sent,
            keep_promise_until=taken.sent + taken.wait_out_millis / 1000 * MARGIN if taken.wait_out_millis else 0.0,
            clock=clock,
            stop=cast("Any", Stop(self)),
        )
        self.taken, self.heart = taken, heart
        self.driver = Process(f"epoch {self.number} driver (generation {taken.epoch.generation})", self._drive)
        heart.run()
        if self.world.habits.own_session and self.engine and isinstance(self.driver.error, JobFailed | JobsNotDone | ProcessRaised):
            self._left(heart, LeaseRelease(self.engine.quiet, give=lambda: store.release(taken.epoch)))
        elif not self.driver.killed:
            code = (0 if self.engine and self.engine.quiet() else UNCLEAN) if self.driver.error is None else 1
            Supervisor(self._config(), store, store)._ended(code, heart, taken.epoch)

    def _takes(self, store: CheckpointStore, claim: LeaseRequest, watcher: Watcher) -> TakenLease:
        """Takes the lease as its supervisor does; one that stands by makes the checks of its start again."""
        if not self.orders.standby:
            return take_over(store, claim, watcher)
        config, catalog = self._config(), Catalog(self.host, self.world.stream)
        self.standing = True
        taken = lease.stand_by(store, lambda: claim, replace(watcher, look_seconds=lease.LOOK_SECONDS))
        self.standing = False
        standby.confirm(Supervisor(config, store, store), taken, lambda: supervisor.prepare(config, store, catalog))
        return taken

    def _left(self, heart: Heartbeats, end: LeaseRelease) -> None:
        """What the session does that a run has left: it releases the lease as soon as it may, for two leases at most."""
        end.due = lambda: heart.clock() >= heart.keep_promise_until
        until = self.clock() + 2 * self.orders.lease
        while self.clock() < until and not end.release():
            self.sleep(0.5)

    def _config(self) -> Config:
        orders = self.orders
        return Config(
            StreamConfig("s", "r"),
            CheckpointsConfig("t"),
            PipelineConfig("m:f"),
            start=StartConfig(orders.start),
            lease_duration_seconds=orders.lease,
            migrate_from=MigrateFromConfig(SOURCE) if orders.migrate else None,
        )

    # -- the driver ----------------------------------------------------------------------------------------------------------------

    def _drive(self, driver: Process) -> None:
        assert self.taken is not None
        client, habits = Client(driver, self.world.table, self.world.now, self.world.habits.picks), self.world.habits
        client.page = habits.page
        store, catalog = CheckpointStore(client), Catalog(driver, self.world.stream)
        self.consumer = consumer = Consumer(store, catalog, self.taken.epoch)
        consumer.begin()
        self.world.ledger.reported.update(consumer.notes)
        source = Source(driver, self.world.source(consumer.identify()))
        retention.settle(consumer, self.world.kinesis(), source, self.orders.accept)
        versions.begin(consumer, SpecName(self.orders.spec), 0)
        self.engine = Engine(self.world, consumer, self.orders.lease, (driver, self.clock))
        if self.taken.wait_out_millis:
            self.sleep(self.taken.wait_out_millis / 1000 * MARGIN, driver)
        refreshing = planner.Refreshing(group=1, most=self.world.habits.refreshes)
        limits = FoldLimits(habits.folds or NEVER, group=2, writes=2, rests=0)
        folder = Folder(consumer, FoldPorts(store, self.clock, lambda: self.draining), limits)
        timings = LoopTimings(
            self.world.habits.interval, None, self._probe(driver), self._reported, self._rests, self.clock, refreshing, fold=folder.fold
        )
        search = Search(self.ATTEMPTS, HASTY if self.world.habits.hasty else PATIENCE)
        isolator = Isolator(consumer, self._isolation(driver, source), search) if self.world.habits.isolates else None
        self.engine.overdue = self._overdue(isolator)
        self.loop = Loop(consumer, self.engine, timings, cast("Any", Drain(self, driver)), isolator)
        self.loop.run()

    def _isolation(self, driver: Process, source: Source) -> IsolationPorts:
        assert self.engine is not None
        assert self.consumer is not None
        letters = self.consumer.letters = BatchLetters(Letters(driver, self.world.ledger), self.consumer.epoch.generation)
        self.consumer.publish()

        def wait(seconds: float) -> bool:
            self.sleep(seconds, driver, at="idle")
            return self.draining

        excluding = ExclusionPorts(source, letters)
        patience = SettlePatience(self.orders.lease, 10 * self.orders.lease)
        return IsolationPorts(excluding, self._judged, self.engine.quiet, wait, self.clock, self.engine.cancel, patience)

    def _overdue(self, isolator: Isolator | None) -> Callable[[int], None]:
        def overdue(number: int) -> None:
            if isolator is not None:
                isolator.overdue(number, "overdue", "overdue")
            raise BatchOverdue

        return overdue

    def _judged(self, error: Exception) -> BatchFailure | None:
        """A lost executor is told from the user's code; an outage of the sink is not."""
        if not isinstance(error, ProcessRaised | JobFailed):
            return None
        return BatchFailure(type(error).__name__, transient=isinstance(error, JobFailed), at=self.clock())

    def _probe(self, driver: Process) -> Callable[[Sequence[ShardRow]], dict[str, bool]]:
        limits = ProbeLimits(most=self.world.habits.probes)
        fault: str | None = None

        class Prober(KinesisProber):
            def idle(self) -> bool:
                if fault == UNAVAILABLE:
                    raise Again("probe: injected")
                return super().idle()

        probes = ProbeScheduler(lambda row: Prober(self.world.kinesis(), row.id, row.end), self.clock, limits)

        def probe(rows: Sequence[ShardRow]) -> dict[str, bool]:
            nonlocal fault
            fault = driver.pause("probe") if rows else None
            return probes(rows)

        return probe

    def _reported(self, committed: Committed | None, _seconds: float) -> None:
        assert self.driver is not None
        if committed is None:
            self.world.ledger.idles()
            return
        self.driver.pause("report")
        self.world.ledger.reported.update(committed.notes)
        self.idle = 0 if committed.records else self.idle + 1

    def _rests(self) -> None:
        self.idle += 1

    def driver_ended(self) -> None:
        assert self.driver is not None
        error = self.driver.error
        if error is not None and not self.driver.killed and not isinstance(error, EXPECTED):
            raise error
        if self.engine is not None:
            self.engine.orphan()
        if self.heart is not None:
            cast("Any", self.heart.stop).set()
        if not self.host.done and self.host.at == "sleep":
            self.host.waiting = None

    def kill_driver(self) -> None:
        if self.driver is not None and not self.driver.done:
            self.driver.kill()
            self.driver_ended()
