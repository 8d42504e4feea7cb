"""The parent process of an epoch: takes the lease, beats, and kills (docs/protocol.md, "An epoch").

Small and without Spark, so that a driver whose main thread is stuck in native code cannot keep a dead lease alive. It may not read records.
"""

from __future__ import annotations

import dataclasses
import datetime
import logging
import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.lease import MARGIN, LeaseRequest, TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.model import StreamCatalog
from sluice_consumer import logs
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import check_identity
from sluice_consumer.config import Config, MigrateFromConfig
from sluice_consumer.exits.ending import Ending, Stopped, decoded, killed, unexplained
from sluice_consumer.process import pod, wiring
from sluice_consumer.process.child_process import DriverProcess, end_group, pass_on
from sluice_consumer.process.lease_handoff import WORKING

log = logging.getLogger(__name__)
STOP_SECONDS = 20.0  # what a drain has beyond drainTimeoutSeconds, for Spark to stop; the grace period of a pod is 30 s longer than that


GONE = (
    "does not exist, or is not ready, though a driver has worked on it: a new one would begin at start.position again. Restore it from a backup; "
    "or, to begin again, delete this KinesisConsumer and create it again"
)
EARLY = "stopped before the driver had begun"
WayToTake = Callable[[CheckpointStore, LeaseRequest, Watcher], TakenLease]


@dataclass
class Heartbeats:
    """Beats a lease in a thread of its own; `alive` is what the watchdog asks.

    Attributes:
        beat: one beat, with the new promise or None; True accepted, False the lease is another's, raises when no answer came in time.
        lease: seconds.
        keep_promise_until: monotonic time before which the old, longer promise holds (a forced take).
        accepted: monotonic time at which the last accepted beat was *sent*.
        on_beat: called with each such time.
        beats: how many are sent in the duration of a lease.
    """

    beat: Callable[[int | None], bool]
    lease: float
    accepted: float
    keep_promise_until: float = 0.0
    clock: Callable[[], float] = time.monotonic
    on_beat: Callable[[float], None] = lambda _sent: None
    beats: int = 3
    refused: bool = False
    given_up: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    def once(self) -> None:
        """Sends one beat. One that comes too late brings nothing back: the driver has ended itself by the same rule."""
        sent = self.clock()
        self.given_up |= sent - self.accepted > self.lease * WORKING
        promise = round(self.lease * 1000) if sent >= self.keep_promise_until else None
        try:
            if self.beat(promise):
                self.accepted = sent
                self.on_beat(sent)
            else:
                self.refused = True
        except Exception as error:  # noqa: BLE001 - whatever it was, this beat was not accepted
            log.warning("a heartbeat was not accepted: %s", error)

    def run(self) -> None:
        """Beats until `stop`, every third of the lease, or as often as `beats` says; after a failure sooner."""
        while not self.stop.is_set() and not self.refused:
            self.once()
            pause = self.lease / self.beats
            self.stop.wait(pause if self.clock() - self.accepted < pause else pause / 8)

    @staticmethod
    def of(taken: TakenLease, config: Config, store: CheckpointStore, on_beat: Callable[[float], None] = lambda _sent: None) -> Heartbeats:
        """The heart of a lease that was just taken; `store` has a heartbeat's patience."""
        return Heartbeats(
            lambda promise: store.beat(taken.epoch, promise, logs.now_millis()),
            config.lease_duration_seconds,
            accepted=taken.sent,
            keep_promise_until=taken.sent + taken.wait_out_millis / 1000 * MARGIN if taken.wait_out_millis else 0.0,
            on_beat=on_beat,
        )

    def give_up(self) -> None:
        """The end: work was stopped, so that a beat that is accepted later brings nothing back, and none is sent."""
        self.given_up = True
        self.stop.set()

    @property
    def alive(self) -> bool:
        """Whether this epoch may still work: not refused, not given up, and a beat sent in the last two thirds was accepted."""
        return not (self.refused or self.given_up) and self.clock() - self.accepted <= self.lease * WORKING

    @property
    def why(self) -> str:
        """Why it is not alive."""
        return "the lease was taken by another epoch" if self.refused else "no heartbeat was accepted for two thirds of the lease"


def prepare(config: Config, store: CheckpointStore, catalog: StreamCatalog) -> None:
    """Makes sure that the table belongs to this stream and says where each shard begins.

    Raises:
        Refused: another stream's table, or a migration was asked for and has not been completed.
    """
    identity = catalog.describe()
    check_migration(config, store)
    consumer = store.consumer()
    if config.migrate_from is None and consumer is None:
        seed = bootstrap.Seed(secrets.token_hex(4), secrets.token_hex(8), identity, catalog.list_shards())
        too_early = bootstrap.before_the_oldest(seed, config.start)
        if bootstrap.prepare(store, seed, config.start) and too_early:
            logs.warn(too_early)
        consumer = store.consumer()
    if consumer is None:
        raise unfinished(store)
    check_identity(consumer, identity)


def check_migration(config: Config, store: CheckpointStore) -> None:
    """Makes sure that a migration that was asked for is complete. Only reads.

    Raises:
        Refused: it is not.
    """
    if config.migrate_from is None:
        return
    row = store.migration()
    if row is None or row.state != "COMPLETE" or row.source != config.migrate_from.table:
        migration = "none" if row is None else f"{row.state} from {row.source}"
        raise Refused(
            f"migrateFrom.table: {store.table.name} holds no complete migration of {config.migrate_from.table} (found: {migration}); "
            f"{migrate_command(config, config.migrate_from)}"
        )


def unfinished(store: CheckpointStore) -> Refused:
    """The refusal of a table without a `consumer` row: it is the target of a migration."""
    return Refused(f"checkpoints.table: {store.table.name} is the target of a migration that is not complete")


def migrate_command(config: Config, source: MigrateFromConfig) -> str:
    """What to run where a migration is missing. In a cluster the operator's Job does it."""
    return f"outside of a cluster, run: sluice migrate --source {source.table} --target {config.checkpoints.table} {config.stream.options}"


def open_table(config: Config, *, made: bool = False) -> CheckpointStore:
    """The consumer's table, made and prepared if it is not there yet.

    Args:
        config: which table, of which stream.
        made: there was one before. It is not made again, for a new one would begin at `start` and leave out what lies between.

    Raises:
        Refused: no such stream, a table that is gone, a copy of another table (`copies.check`), or see `prepare`.
    """
    store, catalog = wiring.store(config), wiring.catalog(config)
    catalog.describe()  # a stream that does not exist is refused before a table is made for it
    targets, name = wiring.targets(config), config.checkpoints.table
    if (made or config.migrate_from is None) and targets.find(name) is None:
        if made:
            raise Refused(f"checkpoints.table: {name} {GONE}")
        logs.say(f"creating the checkpoint table {name}")
        for warning in targets.ensure(name).warnings:
            logs.warn(warning)
    prepare(config, store, catalog)
    row, identity = store.consumer(), targets.identity(name)
    if row is not None and identity is not None:
        copies.check(store, row, identity)
    return store


def claim(config: Config) -> LeaseRequest:
    """What this process asks of the lease."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return LeaseRequest(config.lease_millis, f"{socket.gethostname()}/{os.getpid()}", now, force=config.force, owner=pod.owner(config.name))


class Supervisor:
    """Holds the lease for one driver process."""

    def __init__(self, config: Config, store: CheckpointStore, beating: CheckpointStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._config, self._store, self._beating, self._clock = config, store, beating, clock
        self._child: DriverProcess | None = None
        self._stopping, self._waits = False, True
        self._drain_until = float("inf")

    def take(self, watcher: Watcher, way: WayToTake = take_over) -> TakenLease:
        """Takes the lease: gives up if it is held, or another `way` (`standby.wait`).

        Raises:
            Stopped: it was stopped. It ends while it waits, and not in the middle of a take, whose lease no process would release.
        """
        self._waits = False
        taken = way(self._store, claim(self._config), dataclasses.replace(watcher, sleep=lambda seconds: self._sleep(watcher, seconds)))
        if self._stopping:
            if not taken.wait_out_millis:
                self.release(taken.epoch)
            raise Stopped(EARLY)
        return taken

    def _sleep(self, watcher: Watcher, seconds: float) -> None:
        if self._stopping:
            raise Stopped(EARLY)
        self._waits = True
        watcher.sleep(seconds)
        self._waits = False

    def on_term(self, *_: object) -> None:
        """SIGTERM: let the driver drain, or stop if there is none yet. A second SIGTERM gives a drain no more time."""
        again, self._stopping = self._stopping, True
        if self._child is not None:
            self._drain_until = min(self._drain_until, self._clock() + self._drain_seconds)
            self._child.send_signal(signal.SIGTERM)
        elif self._waits or again:
            raise Stopped(EARLY)

    @property
    def _drain_seconds(self) -> float:
        return self._config.drain_timeout_seconds + STOP_SECONDS

    def heart(self, taken: TakenLease, on_beat: Callable[[float], None] = lambda _sent: None) -> Heartbeats:
        """The heart of a lease that was taken."""
        return Heartbeats.of(taken, self._config, self._beating, on_beat)

    def watch(self, child: DriverProcess, taken: TakenLease) -> Ending:
        """Beats while the driver lives, kills it when the lease is lost or its drain has no end, and releases after a clean drain.

        A driver that saw the lease end before this process did has killed itself.
        """
        self._child, epoch = child, taken.epoch
        if self._stopping:
            self.on_term()
        heart = self.heart(taken, lambda sent: pass_on(child, sent))
        thread = threading.Thread(target=heart.run, name="heart", daemon=True)
        thread.start()
        while child.poll() is None and heart.alive and self._clock() < self._drain_until:
            try:
                child.wait(heart.lease / 40)
            except subprocess.TimeoutExpired:
                continue
        cut, alive = child.poll() is None, heart.alive
        end_group(child)
        heart.stop.set()
        if not cut and (alive or child.returncode != -signal.SIGKILL):
            explained = child.returncode < 0 or child.gave_its_word()
            return self._ended(child.returncode, heart, epoch) if explained else self._unexplained(child, epoch)
        if alive:
            why = f"the open batch did not end within {self._drain_seconds:g} s of SIGTERM: the driver was killed"
            return Ending(1, "DrainTimeout", f"{why}; the lease was not released, and the batch comes again when it has run out")
        return Ending(76 if heart.refused else 1, "Fenced" if heart.refused else "LeaseLost", f"{heart.why}: the driver was killed")

    def _unexplained(self, child: DriverProcess, epoch: Epoch) -> Ending:
        """The ending of a driver without its own word; by its timer it is noted, too."""
        timer, how = child.armed(), self._config.on_error
        if timer is None or not timer.ended(child.returncode, time.monotonic()):
            return unexplained(child.returncode)
        try:
            timer.note(self._store, epoch, how)
        except SluiceError as error:
            log.warning("the end of batch %d was not noted, and does not count: %s", timer.batch, error)
        return timer.ending(how)

    def _ended(self, status: int, heart: Heartbeats, epoch: Epoch) -> Ending:
        if status < 0:
            return killed(status)
        code, quiet = decoded(status)
        lease = "the lease was not released: a task failed or an executor was lost recently; the next driver waits it out"
        if quiet and heart.clock() >= heart.keep_promise_until:
            lease = self.release(epoch)
        if code:
            return Ending(code, "", "")  # the driver has said why itself
        if self._config.until is None:
            return Ending(0, "Drained", lease)
        logs.say(lease)
        return Ending(0, "", "")  # the driver has said that it reached the end; a drain before it has another code

    def release(self, epoch: Epoch) -> str:
        """Releases, if it can: a drain was clean whether or not the table answers."""
        try:
            return "the lease was released" if self._beating.release(epoch) else "the lease had been taken by another epoch"
        except SluiceError as error:
            return f"the lease was not released: {error}; the next driver waits it out"
