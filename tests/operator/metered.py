"""The simulated cluster, with the metrics of its operator."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from simulated_cluster import MIGRATING, SimulatedCluster, ready

from sluice_operator.run.shared import ReconcileContext
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import MeteredCluster, OperatorMetrics

Json = dict[str, Any]


class Metered(SimulatedCluster):
    metrics = OperatorMetrics()
    leads = True

    def equipped(self, context: ReconcileContext) -> ReconcileContext:
        self.metrics = OperatorMetrics()
        pools = context.pools.snapshots
        sources = Sources(context.cache.snapshots, lambda: self.leads, lambda: {"Pod": 7.0}, pools, lambda: self.now)
        self.metrics.registry.register(Gauges(sources))
        metered = MeteredCluster(context.cluster, self.metrics)
        return replace(context, cluster=metered, on_status_written=self.metrics.on_status_written)

    def value(self, metric: str, /, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(metric, labels)

    def told(self, **figures: Any) -> Json:
        """The driver's next report has these figures; returns its pod, which the operator has yet to see."""
        (driver,) = self.drivers()
        notes = driver["metadata"]["annotations"]
        report = json.loads(notes["sluice.dev/report"])
        notes["sluice.dev/report"] = json.dumps({**report, "number": report["number"] + 1, **figures})
        return driver


def experienced() -> Metered:
    """A consumer that migrated, runs, and has failed once."""
    found = Metered()
    found.habits.job_exits = [75]
    found.apply(MIGRATING)
    assert found.run(240, until=lambda: ready(found))
    found.habits.exits = [1]
    assert found.run(60, until=lambda: not found.habits.exits)
    assert found.run(240, until=lambda: ready(found) and found.status["driver"]["attempt"] == 2)
    return found
