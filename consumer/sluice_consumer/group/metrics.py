"""One page of metrics for all consumers of a group: each series carries the label `consumer`."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sluice_consumer.process.session import Session


class GroupMetrics(Collector):
    """The figures of the last run of each consumer."""

    def __init__(self) -> None:
        self._registries: dict[str, CollectorRegistry] = {}
        self._lock = threading.Lock()

    def keep(self, name: str, session: Session) -> None:
        """A run of a consumer began; its counters begin at 0, as those of a new driver do."""
        with self._lock:
            self._registries[name] = session.registry

    def forget(self, name: str) -> None:
        """A consumer has left: it may run elsewhere, and its figures here would be those of another day."""
        with self._lock:
            self._registries.pop(name, None)

    def collect(self) -> Iterable[Metric]:
        """All series, one family each."""
        with self._lock:
            registries = dict(self._registries)
        families: dict[str, Metric] = {}
        for name, registry in registries.items():
            for metric in registry.collect():
                family = families.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                family.samples += [sample._replace(labels={**sample.labels, "consumer": name}) for sample in metric.samples]
        return families.values()
