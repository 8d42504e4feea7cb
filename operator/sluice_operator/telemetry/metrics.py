"""Counters and histograms for Prometheus. Gauges are computed at each scrape, in `gauges`.

They are counted outside the rules: at the port, in the loops, and when a status was written. The tables of
docs/monitoring.md are generated from here.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from sluice_operator.cluster.port import POOL_KIND, ApiError
from sluice_operator.plan.events import Reason
from sluice_operator.plan.known_words import cause
from sluice_operator.state.status import PositionState
from sluice_operator.untrusted.values import objects, part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_operator.cluster.port import Cluster, Json, Labels
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.state.actions import EventToSend, Plan
    from sluice_operator.state.status import MigrationStatus, PositionStatus
    from sluice_operator.state.view import View

EXECUTOR = "executor"  # its container, and its role
CUT_SHORT = {Reason.DRAIN_CUT_SHORT, Reason.FORCED}
disable_created_metrics()  # type: ignore[no-untyped-call]  # otherwise each counter has a second series, `_created`
ENDED = "Drivers that ended unexpectedly, by cause. The driver of a pool counts once, and not again for each member."
QUICK = (0.005, 0.02, 0.05, 0.1, 0.5, 1, 5, 15)  # seconds of calls and reconciles
LONG = (1, 5, 15, 60, 300, 1800, 3600, 21600, 86400)  # seconds in a phase


class OperatorMetrics:
    """The counters of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._since: dict[tuple[str, str], tuple[str, float]] = {}
        self._killed: set[str] = set()
        self._happenings()
        self._durations()

    def _happenings(self) -> None:
        count = partial(Counter, registry=self.registry)
        self.watched = count("sluice_watch_events", "Watch events received.", ["kind"])
        self.reports = count("sluice_driver_reports", "New reports of drivers seen.")
        self.events = count("sluice_events", "Kubernetes events sent.", ["reason"])
        self.migrations = count("sluice_migrations", "Migration tries, by outcome.", ["state"])
        self.moves = count("sluice_position_moves", "Tries to move positions, by outcome.", ["state"])
        for state in PositionState:  # from zero on: a move is rare, and its first one is to be seen
            self.moves.labels(state)
        self.restarts = count("sluice_restarts", ENDED, ["cause"])
        text = "Executors whose container was killed because it used more memory than its limit."
        self.out_of_memory = count("sluice_executors_out_of_memory", text, ["namespace", "name"])
        self.forced = count("sluice_drains_forced", "Drivers killed during their drain, or removed by annotation.", ["reason"])

    def _durations(self) -> None:
        quick = partial(Histogram, registry=self.registry, buckets=QUICK)
        self.calls = quick("sluice_api_request_seconds", "Calls to the API server by reconciles.", ["verb", "result"])
        self.passes = quick("sluice_reconcile_seconds", "Reconciles of one resource.", ["result"])
        self.waits = quick("sluice_reconcile_wait_seconds", "Time a reconcile waited for a thread.")
        self.queue = Gauge("sluice_reconcile_queue", "Reconciles that wait for a thread.", registry=self.registry)
        text = "Time in a phase, counted when it ends."
        self.phases = Histogram("sluice_phase_seconds", text, ["phase"], registry=self.registry, buckets=LONG)

    def saw(self, kind: str, *, reported: bool) -> None:
        """A watch showed an object, perhaps with a new report on it."""
        self.watched.labels(kind).inc()
        self.reports.inc(int(reported))

    def saw_executor(self, uid: str, key: ResourceKey, body: Json, *, gone: bool) -> None:
        """A watch showed an executor of a consumer. One that was killed for its memory is counted once, from zero on."""
        if not gone:
            self.out_of_memory.labels(*key)
        if uid not in self._killed and _out_of_memory(body):
            self._killed.add(uid)
            self.out_of_memory.labels(*key).inc()
        if gone:
            self._killed.discard(uid)

    def on_status_written(self, view: View, intent: Plan) -> None:
        """A reconcile replaced `view.status` by `intent.status`, or sent the events of `intent`. Of a pool, only its events and ends are counted."""
        for event in intent.events:
            self._event(event)
        if view.resource.kind == POOL_KIND:
            return
        self._tried(self.migrations, view.status.migration, intent.status.migration)
        self._tried(self.moves, view.status.position, intent.status.position)
        self._phase((view.resource.namespace, view.resource.name), intent.status.phase, time.monotonic())

    def _event(self, event: EventToSend) -> None:
        self.events.labels(event.reason).inc()
        if event.reason in CUT_SHORT:
            self.forced.labels(event.reason).inc()
        if event.ended is not None:
            self.restarts.labels(cause(event.ended)).inc()

    @staticmethod
    def _tried(counter: Counter, before: MigrationStatus | PositionStatus | None, after: MigrationStatus | PositionStatus | None) -> None:
        if after is not None and (before is None or (before.job, before.state) != (after.job, after.state)):
            counter.labels(after.state).inc()

    def _phase(self, key: tuple[str, str], phase: str, now: float) -> None:
        before, since = self._since.get(key, (None, now))
        if before not in {None, phase}:
            self.phases.labels(before).observe(now - since)
        if before != phase:
            self._since[key] = (phase, now)

    def forget(self, key: ResourceKey) -> None:
        """The resource is gone."""
        self._since.pop((key.namespace, key.name), None)
        with suppress(KeyError):
            self.out_of_memory.remove(*key)


def _out_of_memory(pod: Json) -> bool:
    own = (each for each in objects(part(pod, "status"), "containerStatuses") if each.get("name") == EXECUTOR)
    return any(part(each, "state", "terminated").get("reason") == "OOMKilled" for each in own)


class MeteredCluster:
    """`Cluster` with every call timed, by verb and by the name of the error."""

    def __init__(self, cluster: Cluster, metrics: OperatorMetrics) -> None:
        self._cluster, self._calls = cluster, metrics.calls

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        with self._timed("get"):
            return self._cluster.get(kind, namespace, name)

    def list(self, kind: str, namespace: str, labels: Labels) -> list[Json]:
        with self._timed("list"):
            return self._cluster.list(kind, namespace, labels)

    def check(self, body: Json) -> None:
        with self._timed("check"):
            self._cluster.check(body)

    def create(self, body: Json) -> Json:
        with self._timed("create"):
            return self._cluster.create(body)

    def replace_status(self, body: Json) -> Json:
        with self._timed("replace_status"):
            return self._cluster.replace_status(body)

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        with self._timed("patch"):
            return self._cluster.patch(kind, namespace, name, changes)

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        with self._timed("delete"):
            self._cluster.delete(kind, namespace, name, uid, grace)

    @contextmanager
    def _timed(self, verb: str) -> Iterator[None]:
        began, result = time.monotonic(), "ok"
        try:
            yield
        except ApiError as error:
            result = type(error).__name__
            raise
        finally:
            self._calls.labels(verb, result).observe(time.monotonic() - began)
