"""One consumer of a group, as its supervisor sees it: takes its lease, beats it, releases it, and tries again (docs/groups.md).

In a pool it does not try again: the operator counts its failures (docs/pools.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.protocol.lease import TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer import logs
from sluice_consumer.exits.ending import Ending, Interrupted, Stopped, ending_of
from sluice_consumer.group.ends import BEATS, Act, EpochWork, Pauses, ends_for_good
from sluice_consumer.group.messages import Beat, Begin, Doing, Drain, Lose, Message, Over
from sluice_consumer.group.shared_spark import Member
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.process.supervisor import EARLY, STOP_SECONDS, Heartbeats

LOOK_SECONDS = 0.2  # between two looks whether Spark has started
NOTICE_SECONDS = 10.0  # that a drain has beyond the driver's own limit, before the driver is killed


class DriverGone(SluiceError):
    """The driver process has ended, or is being killed: nothing more is heard of a run."""


class DriverDeaf(SluiceError):
    """The driver process does not read what its supervisor writes."""


class DriverLink(Protocol):
    """The driver process."""

    def send(self, message: Message) -> bool:
        """Writes down the pipe, and never waits: whether the pipe had room."""
        ...

    def kill(self, why: Ending) -> None:
        """Kills it, with all consumers."""
        ...

    @property
    def gone(self) -> bool:
        """Whether it has ended, or is being killed."""
        ...

    @property
    def reads(self) -> bool:
        """Whether it reads what is sent: Spark has started."""
        ...


@dataclass(frozen=True)
class LeasePorts:
    """Where a lease is: makes and checks the table, and gives the store for heartbeats. Replaced in tests."""

    open_table: Callable[[Member], CheckpointStore] = lambda one: supervisor.open_table(one.config)
    beating: Callable[[Member], CheckpointStore] = lambda one: wiring.beating_store(one.config)
    clock: Callable[[], float] = time.monotonic


@dataclass
class ConsumerLease:
    """Keeps one consumer running until it ends for good, or `stop` is set.

    Attributes:
        stop: it is to drain.
        pauses: between a run that failed and the next one; None: there is one run.
        ending: how its last run ended. doing: where its batch is.
        deadline: until when the lease of a former driver is waited for, ISO 8601; None: it is not.
    """

    member: Member
    link: DriverLink
    stop: threading.Event = field(default_factory=threading.Event)
    ports: LeasePorts = field(default_factory=LeasePorts)
    pauses: Pauses | None = field(default_factory=Pauses)
    ending: Ending | None = None
    doing: Doing | None = None
    deadline: str | None = None
    _over: Over | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stopped_at: float | None = None

    def run(self) -> None:
        """One run after the other."""
        with logs.of(self.member.name):
            while not self.link.gone:
                began = self.ports.clock()
                self.ending = self._attempt()
                if self.pauses is None or ends_for_good(self.ending) or self.stop.is_set() or self.link.gone:
                    logs.say(f"{self.ending.reason}: {self.ending.message}")
                    return
                pause = self.pauses.after(self.ports.clock() - began)
                logs.warn(f"{self.ending.reason}: {self.ending.message}. Started again in {pause:g} s; the other consumers continue")
                if self.stop.wait(pause):
                    return

    def hear(self, message: Doing | Over) -> None:
        """The driver says something about this consumer."""
        with self._changed:
            if isinstance(message, Over):
                self._over, self.doing = message, None
            else:
                self.doing = message if message.phase else None
            self._changed.notify_all()

    def _attempt(self) -> Ending:
        try:
            return self._epoch()
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again, and the other consumers continue
            logs.log.debug("an epoch failed", exc_info=True)
            early = isinstance(error, Stopped) and self.member.config.until is not None
            return ending_of(Interrupted(str(error)) if early else error)

    def _epoch(self) -> Ending:
        store = self.ports.open_table(self.member)
        taken = take_over(store, supervisor.claim(self.member.config), Watcher(self.ports.clock, self._sleep, self._announce, ready=self._until_read))
        self.deadline = None
        beating = self.ports.beating(self.member)
        heart = Heartbeats.of(taken, self.member.config, beating, self._beaten(taken))
        heart.beats = BEATS
        self._over = None
        if not self.link.send(self._begin(taken)):
            if not taken.wait_out_millis:
                beating.release(taken.epoch)
            raise DriverDeaf("the driver of the group does not read its messages, so the run has not begun")
        threading.Thread(target=heart.run, name=f"heart of {self.member.name}", daemon=True).start()
        try:
            return self._ended(self._watched(heart, taken), heart, beating, taken)
        finally:
            heart.stop.set()

    def _begin(self, taken: TakenLease) -> Begin:
        epoch, member = taken.epoch, self.member
        return Begin(member.key, epoch.generation, epoch.token, taken.how, taken.wait_out_millis, taken.sent, str(member.path), member.spec_hash)

    def _beaten(self, taken: TakenLease) -> Callable[[float], None]:
        def beaten(sent: float) -> None:
            self.link.send(Beat(self.member.key, taken.epoch.generation, sent))

        return beaten

    def _announce(self, seconds: float) -> None:
        logs.say(f"the previous driver did not release its lease; waiting {seconds:.0f} s to be sure that it has stopped")
        self.deadline = logs.in_seconds(seconds)

    def _sleep(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise Stopped(EARLY)

    def _until_read(self) -> None:
        """A lease that is lost before Spark has started would end the driver: what is sent to it cannot be taken back."""
        while not self.link.reads:
            if self.link.gone:
                raise DriverGone("the driver of the group has ended before it had started; no lease was taken")
            self._sleep(LOOK_SECONDS)

    def _watched(self, heart: Heartbeats, taken: TakenLease) -> tuple[Over, EpochWork]:
        """Waits for the end of the run; ends its work, or the driver, once the lease is lost."""
        name, generation = self.member.key, taken.epoch.generation
        work, ended_work, drains = EpochWork(generation, heart.lease, taken.sent), False, False
        while True:
            with self._changed:
                self._changed.wait(heart.lease / 40)
                over = self._over
            now = self.ports.clock()
            work = work.beaten(generation, heart.accepted).looked(now)  # the driver may have seen the loss first, and ended the run
            if heart.refused:
                work = work.losing(generation)
            if over is not None and over.generation == generation:
                return over, work
            if self.link.gone:
                raise DriverGone("the driver of the group has ended; the open batch comes again")
            if work.act(now) is Act.END_DRIVER:
                self.link.kill(self._lost(heart))
            elif work.act(now) is Act.END_WORK and not ended_work:
                ended_work = True
                self.link.send(Lose(name, generation))
            elif self._drained_too_long(now):
                self.link.kill(self._cause("DrainTimeout", "the open batch did not end in time after it was asked to drain: the driver was killed"))
            drains = drains or (self.stop.is_set() and self.link.send(Drain(name, generation)))

    def _lost(self, heart: Heartbeats) -> Ending:
        why = "the lease was taken by another epoch" if heart.refused else "no heartbeat was accepted for two thirds of the lease"
        return self._cause("LeaseLost", f"{why}, and its work did not end: the driver was killed, with all consumers of the group")

    def _cause(self, reason: str, words: str) -> Ending:
        """The end of the driver, because of this consumer."""
        return Ending(1, reason, f"{self.member.name}: {words}", working=(self.member.name,))

    def _drained_too_long(self, now: float) -> bool:
        if not self.stop.is_set():
            return False
        self._stopped_at = now if self._stopped_at is None else self._stopped_at
        return now - self._stopped_at > self.member.config.drain_timeout_seconds + STOP_SECONDS + NOTICE_SECONDS

    def _ended(self, watched: tuple[Over, EpochWork], heart: Heartbeats, beating: CheckpointStore, taken: TakenLease) -> Ending:
        over, work = watched
        heart.stop.set()
        if heart.refused or work.lost:
            why = "the lease was taken by another epoch" if heart.refused else "no heartbeat was accepted for half of the lease"
            return Ending(76 if heart.refused else 1, "Fenced" if heart.refused else "LeaseLost", f"{why}: the work of this consumer was ended")
        if not (over.quiet and heart.clock() >= heart.keep_promise_until):
            return over.ending
        try:
            beating.release(taken.epoch)
        except SluiceError as error:
            logs.say(f"the lease was not released: {error}; the next run waits it out")
        return over.ending
