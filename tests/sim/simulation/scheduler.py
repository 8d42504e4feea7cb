"""The scheduler: whose turn it is, what goes wrong, and time.

Time only moves in `advance`, event by event: heartbeats are sent when they are due, watchdogs kill when they must, executors that are cut off exit,
and a migration Job goes on. Everything else moves one call at a time, when the test says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.ledger import Ledger
from simulation.lives import EXPECTED, SimulatedLife
from simulation.migration import Job
from simulation.ports import UNAVAILABLE
from simulation.spark import Attempt
from simulation.turnstile import Process

from sluice_checkpoints.errors import ProtocolViolation

MAX_STEPS = 400  # of one process without time passing: more is a loop without end


class Scheduler:
    """Processes in virtual time.

    Attributes:
        lives: all that ever began, migration Jobs among them.
        frozen: processes that stand still, and since when.
        trace: what happened, a line a step.
    """

    ledger: Ledger

    def __init__(self) -> None:
        self.time = 0.0
        self.lives: list[SimulatedLife] = []
        self.frozen: dict[Process, float] = {}
        self.trace: list[str] = []

    def now(self) -> float:
        """Virtual seconds."""
        return self.time

    def _stepping(self, process: Process) -> None:
        """A process is about to make its next call."""

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
        self._stepping(process)
        if process is life.host and life.cut:
            fault = UNAVAILABLE
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
        """A protocol violation seen by whoever still owns the table is real, and so is a migrator's."""
        owner = isinstance(life, Job) or (life.taken is not None and self.ledger.rows["consumer"]["generation"] == life.taken.life.generation)
        return owner and not (attempt is not None and attempt.lost)

    # -- faults --------------------------------------------------------------------------------------------------------------------

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
