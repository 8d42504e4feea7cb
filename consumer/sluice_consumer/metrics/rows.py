"""What the rows of an epoch say, read from them at each scrape: so nothing has to be kept up to date, and an ended shard leaves no series behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner, retention
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.metrics.driver import BEHIND, COMMITTED, GENERATION, RETENTION, SHARDS, USED, Family

Samples = Iterable[tuple[tuple[str, ...], float]]


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
        yield _gauge(USED, (((row.id,), part) for row, part in used))

    def describe(self) -> Iterable[Metric]:
        """Names and types only."""
        return [_gauge(family, []) for family in (GENERATION, COMMITTED, SHARDS, BEHIND, RETENTION, USED)]


def _gauge(family: Family, samples: Samples) -> Metric:
    gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        gauge.add_metric(labels, value)
    return gauge
