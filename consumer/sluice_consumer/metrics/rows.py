"""Figures that are read at each scrape: so nothing has to be kept up to date, and an ended shard leaves no series behind.

What the rows of an epoch say, and the requests to AWS: those of the driver's process, and those of tasks as the rows of committed batches carry them
(`shards.request_counts`).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner, retention
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.metrics.driver import BEHIND, CALLS, COMMITTED, GENERATION, RETENTION, RETRIES, SHARDS, USED, Family
from sluice_consumer.shards.request_counts import RequestCounter

Samples = Iterable[tuple[tuple[str, ...], float]]
DRIVER, TASKS = "driver", "tasks"


class RowFigures(Collector):
    """The gauges of one epoch.

    `wall` gives the time in seconds since the epoch, and `finished` the shards of which a run with an end owes nothing more: they have no retention.
    """

    def __init__(
        self, consumer: Consumer, wall: Callable[[], float] = time.time, finished: Callable[[TableView], frozenset[str]] = lambda _view: frozenset()
    ) -> None:
        self._consumer, self._wall, self._finished = consumer, wall, finished

    def collect(self) -> Iterable[Metric]:
        """The series for Prometheus."""
        view, generation = self._consumer.view, self._consumer.epoch.generation
        opened = view.opened
        held = planner.held(view, generation)
        states = {"open": len(opened), "ended": view.known - len(opened), "held": held}
        yield _gauge(GENERATION, [((), generation)])
        yield _gauge(COMMITTED, [((), view.committed)])
        yield _gauge(SHARDS, (((state,), number) for state, number in states.items()))
        yield _gauge(BEHIND, (((row.id,), row.behind) for row in opened if row.has_begun))
        finished = self._finished(view)
        yield from self._retention([planner.aged(view, row) for row in opened if row.id not in finished])

    def _retention(self, opened: list[ShardRow]) -> Iterable[Metric]:
        stream, now = self._consumer.identity, round(self._wall() * 1000)
        yield _gauge(RETENTION, [((), stream.retention_millis / 1000)] if stream else [])
        used = ((row, retention.used(row, stream.retention_millis, now, stream.created_millis)) for row in opened) if stream else ()
        yield _gauge(USED, (((row.id,), share) for row, share in used))

    def describe(self) -> Iterable[Metric]:
        """Names and types only."""
        return [_gauge(family, []) for family in (GENERATION, COMMITTED, SHARDS, BEHIND, RETENTION, USED)]


def _gauge(family: Family, samples: Samples) -> Metric:
    gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        gauge.add_metric(labels, value)
    return gauge


class RequestFigures(Collector):
    """What one epoch has called.

    Attributes:
        requests: counts what this process calls.
    """

    def __init__(self) -> None:
        self.requests = RequestCounter()
        self._tasks: Counter[str] = Counter()
        self._lock = threading.Lock()

    def carried(self, rows: Iterable[ShardRow]) -> None:
        """A batch was committed, as these rows say."""
        with self._lock:
            for row in rows:
                self._tasks.update(row.calls)

    def collect(self) -> Iterable[Metric]:
        """The series for Prometheus."""
        with self._lock:
            tasks = self._tasks.copy()
        calls, retries = (Counter[tuple[str, ...]]() for _ in range(2))
        for process, counts in ((DRIVER, self.requests.counts()), (TASKS, tasks)):
            for key, number in counts.items():
                service, operation, *cause = key.split("/", 2)
                family, last = (retries, cause[0]) if cause else (calls, operation)
                family[process, service, last] += number
        yield from (_family(CALLS, calls), _family(RETRIES, retries))

    def describe(self) -> Iterable[Metric]:
        """Names and types only."""
        return [_family(family, {}) for family in (CALLS, RETRIES)]


def _family(family: Family, counts: Mapping[tuple[str, ...], int]) -> Metric:
    made = CounterMetricFamily(family.name, family.help, labels=family.labels)
    for values, number in sorted(counts.items()):
        made.add_metric(values, number)
    return made
