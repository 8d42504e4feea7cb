"""The scheduler: whose turn it is, what goes wrong, and time.

Time only moves in `advance`, event by event: heartbeats are sent when they are due, watchdogs kill when they must, executors that are cut off exit,
and a migration Job goes on. Everything else moves one call at a time, when the test says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.epochs import EXPECTED, SimulatedEpoch
from simulation.ledger import Ledger
from simulation.migration import Job
from simulation.ports import UNAVAILABLE
from simulation.spark import Attempt
from simulation.turnstile import Process

from sluice_checkpoints.errors import ProtocolViolation

MAX_STEPS = 400  # of one process without time passing: more is a loop without end


class Scheduler:
    """Processes in virtual time.

    Attributes:
        epochs: all that ever began, migration Jobs among them.
        frozen: processes that stand still, and since when.
        trace: what happened, a line a step.
    """

    ledger: Ledger

    def __init__(self) -> None:
        self.time = 0.0
        self.epochs: list[SimulatedEpoch] = []
        self.frozen: dict[Process, float] = {}
        self.trace: list[str] = []

    def now(self) -> float:
        return self.time

    def _stepping(self, process: Process) -> None:
        """A process is about to make its next call."""

    # -- scheduling ----------------------------------------------------------------------------------------------------------------

    def processes(self) -> Iterator[tuple[SimulatedEpoch, Process, Attempt | None]]:
        """All that live, in a fixed order."""
        for epoch in self.epochs:
            if not epoch.host.done:
                yield epoch, epoch.host, None
            if epoch.driver is not None and not epoch.driver.done:
                yield epoch, epoch.driver, None
            for attempt in list(epoch.engine.attempts) if epoch.engine else []:
                yield epoch, attempt.process, attempt

    def ready(self, process: Process, attempt: Attempt | None = None) -> bool:
        if process.done or process in self.frozen or (attempt is not None and attempt.held()):
            return False
        waiting = process.waiting
        return waiting is None or (waiting.ready is not None and waiting.ready()) or (waiting.wake is not None and waiting.wake <= self.time)

    def runnable(self, epoch: SimulatedEpoch | None = None) -> list[tuple[SimulatedEpoch, Process, Attempt | None]]:
        """All that can go on now; hearts only go by themselves."""
        found = ((owner, p, a) for owner, p, a in self.processes() if epoch is None or owner is epoch)
        return [(owner, p, a) for owner, p, a in found if self.ready(p, a) and not (p is owner.host and owner.heart and p.at == "sleep")]

    def step(self, epoch: SimulatedEpoch, process: Process, attempt: Attempt | None, fault: str | None = None) -> None:
        self._stepping(process)
        if process is epoch.host and epoch.cut:
            fault = UNAVAILABLE
        before = process.at
        process.resume(fault)
        self.trace.append(f"{self.time:6.1f} {process.name}: {before}{f' !{fault}' if fault else ''} -> {self._whereabouts(process)}")
        if process.done:
            self._ended(epoch, process, attempt)

    def _whereabouts(self, process: Process) -> str:
        if not process.done:
            return process.at
        return "done" if process.error is None else f"{type(process.error).__name__}: {process.error}"

    def _ended(self, epoch: SimulatedEpoch, process: Process, attempt: Attempt | None) -> None:
        if isinstance(process.error, ProtocolViolation) and self._blames(epoch, attempt):
            self.ledger.breaks("progress", f"{process.name}: {process.error}")
        if attempt is not None:
            assert epoch.engine is not None
            epoch.engine.ended(attempt)
        elif process is epoch.driver:
            epoch.driver_ended()
        elif process.error is not None and not process.killed:
            if not isinstance(process.error, EXPECTED):
                raise process.error
            self._refused(epoch, process.error)
            epoch.kill_driver()

    def _refused(self, epoch: SimulatedEpoch, error: BaseException) -> None:
        """A supervisor, a Job or a command ended by an error of ours."""

    def _blames(self, epoch: SimulatedEpoch, attempt: Attempt | None) -> bool:
        """A protocol violation seen by whoever still owns the table is real, and so is a migrator's."""
        owner = isinstance(epoch, Job) or (epoch.taken is not None and self.ledger.rows["consumer"]["generation"] == epoch.taken.epoch.generation)
        return owner and not (attempt is not None and attempt.lost)

    # -- faults --------------------------------------------------------------------------------------------------------------------

    def settle(self, epoch: SimulatedEpoch) -> None:
        """Runs a supervisor until it sleeps."""
        for _ in range(MAX_STEPS):
            if epoch.host.done or epoch.host in self.frozen or not self.ready(epoch.host):
                return
            self.step(epoch, epoch.host, None)
        raise AssertionError(f"{epoch.host.name} does not come to rest")

    def crash(self, epoch: SimulatedEpoch) -> None:
        """The driver's node dies; executors live on until they notice."""
        self.trace.append(f"{self.time:6.1f} -- crash epoch {epoch.number}")
        for process in (epoch.host, epoch.driver):
            if process is not None:
                self.frozen.pop(process, None)
        epoch.host.kill()
        epoch.frozen_at = None
        epoch.kill_driver()

    def kill_attempt(self, epoch: SimulatedEpoch, attempt: Attempt) -> None:
        self.trace.append(f"{self.time:6.1f} -- kill {attempt.process.name}")
        self.frozen.pop(attempt.process, None)
        attempt.process.kill()
        assert epoch.engine is not None
        epoch.engine.ended(attempt)

    def lose_attempt(self, epoch: SimulatedEpoch, attempt: Attempt) -> None:
        """An executor is cut off from the driver, and from nothing else."""
        self.trace.append(f"{self.time:6.1f} -- lose {attempt.process.name}")
        assert epoch.engine is not None
        epoch.engine.lose(attempt)

    def freeze(self, process: Process) -> None:
        self.trace.append(f"{self.time:6.1f} -- freeze {process.name}")
        self.frozen[process] = self.time

    def freeze_epoch(self, epoch: SimulatedEpoch) -> None:
        """The driver's node stops; executors that hear nothing from it exit."""
        epoch.frozen_at = self.time
        for process in (epoch.host, epoch.driver):
            if process is not None and not process.done:
                self.freeze(process)
        if epoch.engine is not None:
            epoch.engine.orphan()

    def thaw(self, process: Process, steps: int) -> None:
        """A frozen process goes on, and makes some calls before anything can notice how late it is."""
        since = self.frozen.pop(process)
        epoch, _, attempt = next(entry for entry in self.processes() if entry[1] is process)
        self.trace.append(f"{self.time:6.1f} -- thaw {process.name}")
        if attempt is not None and self.time - since > epoch.orders.lease / 3:
            attempt.paused = True
        if process is epoch.driver:
            epoch.frozen_at = None
            if epoch.engine is not None and self.time - since > epoch.orders.lease / 3:
                epoch.engine.late = True
        for _ in range(steps):
            if not self.ready(process, attempt):
                break
            self.step(epoch, process, attempt)
        if process is epoch.driver and epoch.host in self.frozen:
            self.thaw(epoch.host, MAX_STEPS)
        self._reap()

    # -- time ----------------------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        target = self.time + seconds
        self._reap()
        while (due := min((t for t in self._deadlines() if t > self.time), default=target)) < target:
            self.time = due
            self._reap()
        self.time = target
        self._reap()

    def _deadlines(self) -> Iterator[float]:
        for epoch, process, attempt in self.processes():
            if process in self.frozen:
                continue
            if process is epoch.host and process.waiting is not None and process.waiting.wake is not None:
                yield process.waiting.wake
            if process is epoch.driver and epoch.heart is not None:
                yield epoch.clock.true(epoch.heart.accepted + epoch.heart.lease * 2 / 3) + 1e-3
            if attempt is not None and attempt.deadline is not None:
                yield attempt.deadline

    def _reap(self) -> None:
        """Does all that is due: heartbeats, watchdogs, executors that exit."""
        for epoch in self.epochs:
            if epoch.host not in self.frozen and not epoch.host.done and epoch.host.waiting is not None and self.ready(epoch.host):
                self.settle(epoch)
            if epoch.working and epoch.heart is not None and not epoch.heart.alive:
                self.trace.append(f"{self.time:6.1f} -- watchdog kills driver {epoch.number}")
                epoch.kill_driver()
                self.settle(epoch)
            elif epoch.driver is not None and epoch.driver.done and not epoch.host.done:
                self.settle(epoch)
            for attempt in list(epoch.engine.attempts) if epoch.engine else []:
                if attempt.process not in self.frozen and attempt.deadline is not None and attempt.deadline <= self.time:
                    self.kill_attempt(epoch, attempt)
