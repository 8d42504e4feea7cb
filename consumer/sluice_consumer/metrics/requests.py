"""The requests to AWS that the driver's process makes, and those of tasks as the rows of committed batches carry them (`shards.request_counts`)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.metrics.driver import CALLS, RETRIES, Family
from sluice_consumer.shards.request_counts import RequestCounter

DRIVER, TASKS = "driver", "tasks"


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
