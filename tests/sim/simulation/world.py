"""The simulated world: one table, one stream, virtual time, lives that come and go, and a scheduler that a test drives.

Time only moves in `advance`, event by event: heartbeats are sent when they are due, watchdogs kill when they must, and executors that are cut off
exit. Everything else moves one call at a time, when the test says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from simulation.ledger import Ledger
from simulation.lives import EXPECTED, Orders, SimulatedLife
from simulation.ports import UNAVAILABLE
from simulation.spark import Attempt, Habits
from simulation.turnstile import Process

from sluice_checkpoints.errors import ProtocolViolation
from sluice_checkpoints.memory import MemoryTable
from sluice_checkpoints.stream import ShardList
from sluice_checkpoints.stream_twin import StreamTwin
from sluice_checkpoints.table import Check
from sluice_consumer.binding import ShardSource
from sluice_consumer.kinesis_twin import KinesisTwin, Manners
from sluice_consumer.shard_reader import Reader

EPOCH = 1_700_000_000
MAX_STEPS = 400  # of one process without time passing: more is a loop without end
PATIENCE = 16  # rounds of two batches at the end that may bring nothing


class World:
    """Everything there is."""

    def __init__(self, shards: int = 2, habits: Habits | None = None) -> None:
        self.habits = habits or Habits()
        self.time = 0.0
        self.table = MemoryTable(hook=self._seen)
        self.stream = StreamTwin("s", shards, now=lambda: round((EPOCH + self.time) * 1000))
        self.parents: dict[str, tuple[str, ...]] = {}
        self.owed: dict[str, list[str]] = {}
        self.ledger = Ledger(self.table, self.parents, self.owed)
        self.lives: list[SimulatedLife] = []
        self.frozen: dict[Process, float] = {}
        self.attempt_numbers = count(1)
        self.trace: list[str] = []
        self._put: list[tuple[str, str]] = []
        self._listings = [self.stream.list_shards()]  # before the last split or merge, and now
        self._listed: dict[str, int] = {}  # supervisor → how many records there were when it last listed the shards
        self._marks: dict[str, int] = {}  # bootstrap plan → the same

    def now(self) -> float:
        """Virtual seconds."""
        return self.time

    def source(self) -> ShardSource:
        """The real reader over the twin of the stream."""
        return Reader(KinesisTwin(self.stream, Manners(end_with_records=self.habits.end_with_records)), self.stream, self.stream.describe())

    # -- the stream ----------------------------------------------------------------------------------------------------------------

    @property
    def open_shards(self) -> list[str]:
        """Ids of the shards that take records."""
        return [shard.id for shard in self.stream.list_shards().shards if not shard.closed]

    def put(self, shard: str, records: int = 1) -> None:
        """Puts records into a shard."""
        for _ in range(records):
            sequence = self.stream.put_in(shard, b"x")
            self._put.append((shard, sequence))
            if "consumer" in self.table.rows:
                self.owed.setdefault(shard, []).append(sequence)

    def split(self, shard: str) -> None:
        """Splits a shard."""
        self.stream.split(shard)
        self._note_parents()

    def merge(self, shard: str) -> bool:
        """Merges a shard with its upper neighbour, if it has one."""
        listed = {s.starting_hash: s for s in self.stream.list_shards().shards if not s.closed}
        mine = next(s for s in listed.values() if s.id == shard)
        if mine.ending_hash + 1 not in listed:
            return False
        self.stream.merge(shard, listed[mine.ending_hash + 1].id)
        self._note_parents()
        return True

    def _note_parents(self) -> None:
        self._listings = [self._listings[-1], self.stream.list_shards()]
        self.parents |= {shard.id: shard.parents for shard in self._listings[-1].shards}

    def listed_before(self) -> ShardList:
        """What a machine of the service answers that has not heard of the last split or merge; its clock is right."""
        return ShardList(self._listings[0].shards, self.stream.list_shards().date_millis)

    # -- what the table's hook sees ------------------------------------------------------------------------------------------------

    def _seen(self, when: str, operation: str, argument: object) -> None:
        if when != "after":
            return
        members = [argument] if operation == "write" else argument
        keys = [member.key for member in members if not isinstance(member, Check)]  # type: ignore[attr-defined]  # a write or a list of members
        fresh = "consumer" in keys and not self.owed and not self.ledger._last.get("consumer")
        self.ledger.wrote(keys)
        for key in keys:
            if key.startswith("bootstrap/"):
                self._marks[key.split("/")[1]] = self._listed[self._running.name]
        if fresh:
            row = self.table.rows["consumer"]
            latest = self.table.rows[f"bootstrap/{row['plan']}/0"]["position"] == "LATEST"
            for shard, sequence in self._put[self._marks[row["plan"]] if latest else 0 :]:
                self.owed.setdefault(shard, []).append(sequence)

    # -- scheduling ----------------------------------------------------------------------------------------------------------------

    def processes(self) -> Iterator[tuple[SimulatedLife, Process, Attempt | None]]:
        """All that live, in a fixed order."""
        for life in self.lives:
            if not life.host.done:
                yield life, life.host, None
            if life.driver is not None and not life.driver.done:
                yield life, life.driver, None
            for attempt in list(life.engine.attempts) if life.engine else []:
                yield life, attempt.process, attempt

    def ready(self, process: Process, attempt: Attempt | None = None) -> bool:
        """Whether a process can go on now."""
        if process.done or process in self.frozen or (attempt is not None and attempt.held()):
            return False
        waiting = process.waiting
        return waiting is None or (waiting.ready is not None and waiting.ready()) or (waiting.wake is not None and waiting.wake <= self.time)

    def runnable(self, life: SimulatedLife | None = None) -> list[tuple[SimulatedLife, Process, Attempt | None]]:
        """All that can go on now; hearts only go by themselves."""
        found = ((owner, p, a) for owner, p, a in self.processes() if life is None or owner is life)
        return [(owner, p, a) for owner, p, a in found if self.ready(p, a) and not (p is owner.host and owner.heart and p.at == "sleep")]

    def step(self, life: SimulatedLife, process: Process, attempt: Attempt | None, fault: str | None = None) -> None:
        """One call of one process."""
        self._running = process
        if process is life.host and life.cut:
            fault = UNAVAILABLE
        if process.at == "list":
            self._listed[process.name] = len(self._put)
        before = process.at
        process.resume(fault)
        self.trace.append(f"{self.time:6.1f} {process.name}: {before}{f' !{fault}' if fault else ''} -> {self._whereabouts(process)}")
        if process.done:
            self._ended(life, process, attempt)

    def _whereabouts(self, process: Process) -> str:
        if not process.done:
            return process.at
        return "done" if process.error is None else f"{type(process.error).__name__}: {process.error}"

    def _ended(self, life: SimulatedLife, process: Process, attempt: Attempt | None) -> None:
        if isinstance(process.error, ProtocolViolation) and self._blames(life, attempt):
            self.ledger.breaks("progress", f"{process.name}: {process.error}")
        if attempt is not None:
            assert life.engine is not None
            life.engine.ended(attempt)
        elif process is life.driver:
            life.driver_ended()
        elif process.error is not None and not process.killed:
            if not isinstance(process.error, EXPECTED):
                raise process.error
            life.kill_driver()

    def _blames(self, life: SimulatedLife, attempt: Attempt | None) -> bool:
        """A protocol violation seen by whoever still owns the table is real."""
        owner = life.taken is not None and self.table.rows["consumer"]["generation"] == life.taken.life.generation
        return owner and not (attempt is not None and attempt.lost)

    # -- faults --------------------------------------------------------------------------------------------------------------------

    def start(self, orders: Orders) -> SimulatedLife:
        """A new driver pod; its supervisor stands before its first call."""
        life = SimulatedLife(self, len(self.lives) + 1, orders)
        self.lives.append(life)
        self.trace.append(f"{self.time:6.1f} -- start {life.number}: {orders}")
        return life

    def settle(self, life: SimulatedLife) -> None:
        """Runs a supervisor until it sleeps."""
        for _ in range(MAX_STEPS):
            if life.host.done or life.host in self.frozen or not self.ready(life.host):
                return
            self.step(life, life.host, None)
        raise AssertionError(f"{life.host.name} does not come to rest")

    def crash(self, life: SimulatedLife) -> None:
        """The driver's node dies; executors live on until they notice."""
        self.trace.append(f"{self.time:6.1f} -- crash life {life.number}")
        for process in (life.host, life.driver):
            if process is not None:
                self.frozen.pop(process, None)
        life.host.kill()
        life.frozen_at = None
        life.kill_driver()

    def kill_attempt(self, life: SimulatedLife, attempt: Attempt) -> None:
        """An executor dies."""
        self.trace.append(f"{self.time:6.1f} -- kill {attempt.process.name}")
        self.frozen.pop(attempt.process, None)
        attempt.process.kill()
        assert life.engine is not None
        life.engine.ended(attempt)
        if not attempt.lost:
            life.engine.again(attempt, "executor killed")

    def lose_attempt(self, life: SimulatedLife, attempt: Attempt) -> None:
        """An executor is cut off from the driver, and from nothing else."""
        self.trace.append(f"{self.time:6.1f} -- lose {attempt.process.name}")
        assert life.engine is not None
        life.engine.lose(attempt)

    def freeze(self, process: Process) -> None:
        """A process stops for as long as the test likes."""
        self.trace.append(f"{self.time:6.1f} -- freeze {process.name}")
        self.frozen[process] = self.time

    def freeze_life(self, life: SimulatedLife) -> None:
        """The driver's node stops; executors that hear nothing from it exit."""
        life.frozen_at = self.time
        for process in (life.host, life.driver):
            if process is not None and not process.done:
                self.freeze(process)
        if life.engine is not None:
            life.engine.orphan()

    def thaw(self, process: Process, steps: int) -> None:
        """A frozen process goes on, and makes some calls before anything can notice how late it is."""
        since = self.frozen.pop(process)
        life, _, attempt = next(entry for entry in self.processes() if entry[1] is process)
        self.trace.append(f"{self.time:6.1f} -- thaw {process.name}")
        if attempt is not None and self.time - since > life.orders.lease / 3:
            attempt.paused = True
        if process is life.driver:
            life.frozen_at = None
            if life.engine is not None and self.time - since > life.orders.lease / 3:
                life.engine.late = True
        for _ in range(steps):
            if not self.ready(process, attempt):
                break
            self.step(life, process, attempt)
        if process is life.driver and life.host in self.frozen:
            self.thaw(life.host, MAX_STEPS)
        self._reap()

    # -- time ----------------------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        target = self.time + seconds
        self._reap()
        while (due := min((t for t in self._deadlines() if t > self.time), default=target)) < target:
            self.time = due
            self._reap()
        self.time = target
        self._reap()

    def _deadlines(self) -> Iterator[float]:
        for life, process, attempt in self.processes():
            if process in self.frozen:
                continue
            if process is life.host and process.waiting is not None and process.waiting.wake is not None:
                yield process.waiting.wake
            if process is life.driver and life.heart is not None:
                yield life.clock.true(life.heart.accepted + life.heart.lease * 2 / 3) + 1e-3
            if attempt is not None and attempt.deadline is not None:
                yield attempt.deadline

    def _reap(self) -> None:
        """Does all that is due: heartbeats, watchdogs, executors that exit."""
        for life in self.lives:
            if life.host not in self.frozen and not life.host.done and life.host.waiting is not None and self.ready(life.host):
                self.settle(life)
            if life.working and life.heart is not None and not life.heart.alive:
                self.trace.append(f"{self.time:6.1f} -- watchdog kills driver {life.number}")
                life.kill_driver()
                self.settle(life)
            elif life.driver is not None and life.driver.done and not life.host.done:
                self.settle(life)
            for attempt in list(life.engine.attempts) if life.engine else []:
                if attempt.process not in self.frozen and attempt.deadline is not None and attempt.deadline <= self.time:
                    self.kill_attempt(life, attempt)

    # -- longer stretches ----------------------------------------------------------------------------------------------------------

    def work(self, life: SimulatedLife, batches: int = 1, calls: int = MAX_STEPS) -> None:
        """Runs a life by turns, without faults, until some batches or calls are made, or nothing of it can go on."""
        goal, idle = self.ledger.committed + batches, life.idle
        while calls > 0 and self.ledger.committed < goal and life.idle < idle + batches:
            turn = [entry for entry in self.runnable(life) if entry[2] is None or not entry[2].lost]
            if not turn:
                return
            for entry in turn[:calls]:
                if self.ready(entry[1], entry[2]):
                    self.step(*entry)
                    calls -= 1

    def finish(self) -> None:
        """Faults end: one undisturbed life delivers everything. Then the zombies wake up, and must not change a thing."""
        for life in self.lives:
            life.cut = False
            if not any(process in self.frozen for process in (life.host, life.driver)):
                self.crash(life)
        self.advance(100)
        last = self.start(Orders(lease=12, start="TRIM_HORIZON"))
        self.settle(last)
        self.advance(200)
        left, rounds = self.ledger.missing(), 0
        while left and not last.over and rounds < PATIENCE:
            self.work(last, 2)
            self.advance(1)
            rounds = rounds + 1 if self.ledger.missing() == left else 0
            left = self.ledger.missing()
        if last.over or (last.driver is not None and last.driver.done):
            self.ledger.breaks("progress", f"the last life ended: {last.host.error!r}, {last.driver and last.driver.error!r}")
        for process in list(self.frozen):
            if process in self.frozen:
                self.thaw(process, MAX_STEPS)
        for shard, missing in self.ledger.missing().items():
            self.ledger.breaks("no_record_lost", f"never delivered: {missing} of {shard}")

    def end(self) -> None:
        """Kills every process."""
        for _, process, _ in list(self.processes()):
            process.kill()
