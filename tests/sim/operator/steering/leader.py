"""An operator's process: its watches, its cache, and the rhythm of `loops` in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from steering.ledger import Broken, claim
from steering.line import Crash, Faults, Guards, Line

from sluice_lab.fakes.cluster import JournalExpired, MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.parse import CONSUMER
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

Json = dict[str, Any]
Equip = Callable[[ReconcileContext], ReconcileContext]

KINDS = (CONSUMER_KIND, "Pod", "Job")
PASSES = 8  # a second; more than that is a loop that feeds itself
LONGEST_PAUSE = 60


class Leader:
    """One process of the operator, and those that are started after it died."""

    def __init__(self, server: MemoryCluster, key: ResourceKey, now: Callable[[], datetime], guards: Guards, equip: Equip) -> None:
        """`equip`: what each process makes of its context when it begins."""
        self.server, self.key, self._now, self._guards, self._equip = server, key, now, guards, equip
        self.faults = Faults()
        self.lag = 0
        self.deaf: set[str] = set()
        self.passes = self.crashes = self.down = 0
        self.restart()

    def restart(self) -> None:
        """A new process: an empty cache, three watches that begin with a list each, one after another."""
        self.line = Line(self.server, self.faults, self._guards, self._guards.time())
        self.context = self._equip(ReconcileContext(self.line, Cache(), Settings(image="sluice-consumer:test")))
        self.cursors: dict[str, int] = {}
        self.shown: dict[str, Json] = {}
        self.wake: datetime | None = None
        self.figures: datetime | None = None
        self.alive = self.acted = self.rung = False
        self.failures = 0

    def stop(self, seconds: int) -> None:
        self.restart()
        self.down = seconds

    def tick(self) -> None:
        self.line.arrive()
        if self.down > 0:
            self.down -= 1
            return
        for _ in range(PASSES):
            changed = self._feed() or self.rung
            self.rung = False
            due = self.wake is not None and self.wake <= self._now()
            if not changed and not due:
                return
            self._reconcile(force_refresh=not changed and not self.alive and not self.acted)
            if self.down > 0:
                return
        claim("no_hot_loop", holds=False, how=f"{PASSES} passes within a second")

    def listen(self) -> None:
        """A second passes in the middle of a pass, which waits for an answer. The watches feed the cache, and the bell is heard after the pass."""
        self.rung = self._feed() or self.rung

    def _reconcile(self, *, force_refresh: bool) -> None:
        self.passes += 1
        self.line.stalled = self.alive = False
        now = self._now()
        try:
            outcome = reconcile(self.context, self.key, now, force_refresh=force_refresh)
            self.wake, self.figures, self.acted = outcome.wake, outcome.figures, outcome.acted
            self.failures = 0
        except Crash:
            self.crashes += 1
            self.restart()
            self.down = 1
        except ApiError:
            self.failures += 1
            self.acted = False
            self.wake = now + timedelta(seconds=min(2**self.failures, LONGEST_PAUSE))
        except Broken:
            raise
        except Exception as error:  # noqa: BLE001 - a loop goes on after anything; here it may not come to that
            claim("no_faults", holds=False, how=f"a pass failed: {error!r}")

    def _feed(self) -> bool:
        """What the watches tell since they were last read; after a gap, what there is, and never what is gone."""
        if self.lag and self._now().second % self.lag:
            return False
        changed = False
        kinds = KINDS if self.cursors else KINDS[:1]  # three watches never start together
        for kind in kinds:
            if kind not in self.deaf:
                changed = self._read(kind) or changed
        return changed

    def _read(self, kind: str) -> bool:
        cursor, self.cursors[kind] = self.cursors.get(kind), self.server.version
        try:
            changes = () if cursor is None else self.server.watch(kind, cursor)
        except JournalExpired:
            cursor, changes = None, ()
        if cursor is None:
            present = list(self.server.all(kind))
            return sum(self._see(kind, body) for body in present) > 0  # all of them are taken in
        return sum(self._see(kind, change.body, gone=change.verb == "DELETED") for change in changes) > 0

    def _see(self, kind: str, body: Json, *, gone: bool = False) -> bool:
        """Whether it rings, as in `Loops.wake`. To a watch that selects by labels, an object that lost them is gone."""
        uid, labels = body["metadata"]["uid"], body["metadata"].get("labels") or {}
        if kind != CONSUMER_KIND and not (CONSUMER in labels and labels.get("app.kubernetes.io/managed-by") == "sluice"):
            last = self.shown.pop(uid, None)
            return last is not None and self._see(kind, last, gone=True)
        if not gone:
            self.shown[uid] = body
        try:
            sight = self.context.cache.see(kind, body, self._now(), gone=gone)
        except Exception as error:
            claim("no_faults", holds=False, how=f"{kind} {body['metadata']['name']} was not understood: {error!r}")
            raise
        rings = sight is not None and (sight.matters or self.figures is None or self._now() >= self.figures)
        self.alive = self.alive or (sight is not None and not rings)
        return rings

    def lose_events(self, kind: str) -> None:
        """The watch was interrupted for too long: it begins with a list again."""
        self.cursors.pop(kind, None)
