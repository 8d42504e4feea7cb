"""Counting the calls that the driver process makes, and why some are made again. Executors count nothing: their figures could not arrive exactly."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice_consumer.metrics import CALLS, RETRIES

UNKNOWN = "Unknown"  # the client that probes idle shards counts its retries, and not their causes


class Calls(Collector):
    """The calls of one process; `probes` gives what the client of the shards has counted so far (`HttpKinesis.counts`)."""

    def __init__(self, probes: Callable[[], Mapping[str, int]] = dict) -> None:
        self._made, self._again = (collections.Counter[tuple[str, str]]() for _ in range(2))
        self._lock, self._probes = threading.Lock(), probes

    def called(self, service: str, operation: str) -> None:
        """A call is made."""
        with self._lock:
            self._made[service, operation] += 1

    def again(self, service: str, cause: str) -> None:
        """A call is made again."""
        with self._lock:
            self._again[service, cause] += 1

    def listener(self, service: str) -> Heard:
        """What hears of the calls to one service."""
        return Heard(self, service)

    def collect(self) -> Iterable[Metric]:
        """What Prometheus is told."""
        with self._lock:
            made, again = self._made.copy(), self._again.copy()
        probes = dict(self._probes())
        again["kinesis", UNKNOWN] += probes.pop("retries", 0)
        made.update({("kinesis", operation): number for operation, number in probes.items()})
        yield from (_family(CALLS.name, CALLS.help, CALLS.labels, made), _family(RETRIES.name, RETRIES.help, RETRIES.labels, +again))

    def describe(self) -> Iterable[Metric]:
        """Names and types only."""
        return [CounterMetricFamily(family.name, family.help, labels=family.labels) for family in (CALLS, RETRIES)]


@dataclass(frozen=True)
class Heard:
    """Hears of the calls to one service. Implements `retrying.Listener`."""

    calls: Calls
    service: str

    def called(self, operation: str) -> None:
        """A call is made."""
        self.calls.called(self.service, operation)

    def again(self, operation: str, cause: str) -> None:  # noqa: ARG002 - retries are told by cause
        """A call is made again."""
        self.calls.again(self.service, cause)


def _family(name: str, text: str, labels: tuple[str, ...], counts: Mapping[tuple[str, str], int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in sorted(counts.items()):
        family.add_metric(values, number)
    return family
