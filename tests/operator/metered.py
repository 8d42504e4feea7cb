"""The simulated cluster, with the metrics of its operator."""

from __future__ import annotations

from dataclasses import replace

from simulated_cluster import MIGRATING, SimulatedCluster, ready

from sluice_operator.run.shared import ReconcileContext
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import MeteredCluster, OperatorMetrics


class Metered(SimulatedCluster):
    """The simulated cluster with an operator that counts, and leads or not."""

    metrics = OperatorMetrics()
    leads = True

    def equipped(self, context: ReconcileContext) -> ReconcileContext:
        """A new process counts from zero."""
        self.metrics = OperatorMetrics()
        self.metrics.registry.register(Gauges(Sources(context.cache.snapshots, lambda: self.leads, lambda: {"Pod": 7.0})))
        metered = MeteredCluster(context.cluster, self.metrics)
        return replace(context, cluster=metered, on_status_written=self.metrics.on_status_written)

    def value(self, metric: str, /, **labels: str) -> float | None:
        """One sample, as exported."""
        return self.metrics.registry.get_sample_value(metric, labels)


def experienced() -> Metered:
    """A consumer that migrated, runs, and has failed once."""
    found = Metered()
    found.habits.job_exits = [75]
    found.apply(MIGRATING)
    assert found.run(240, until=lambda: ready(found))
    fail(found)
    return found


def fail(world: Metered) -> None:
    """The driver fails, and another one becomes ready."""
    attempt = world.status["driver"]["attempt"]
    world.habits.exits = [1]
    assert world.run(60, until=lambda: not world.habits.exits)
    assert world.run(240, until=lambda: ready(world) and world.status["driver"]["attempt"] == attempt + 1)
