"""The dashboard of one consumer: as the operator sees it, and as its driver counts."""

from __future__ import annotations

from sluice_operator.generate.grafana import Dashboard, Panel, Query, Row, Variable
from sluice_operator.generate.promql import happened, latest, mean, quantile, rate

ONE = 'namespace="$namespace",name="$name"'
DRIVER = 'namespace="$namespace",sluice_dev_consumer="$name"'
SMALL, WIDE = (4, 4), (6, 8)


def _stat(title: str, metric: str, unit: str = "short", limits: tuple[float, float] | None = None) -> Panel:
    return Panel(title, (Query(latest(metric, ONE)),), "stat", unit, SMALL, limits)


STATE = Row(
    "State",
    (
        _stat("Ready", "sluice_consumer_ready", "bool_yes_no", (1, 0.5)),
        _stat("Needs attention", "sluice_consumer_stalled", "bool_yes_no", (1, 1)),
        _stat("Behind", "sluice_consumer_lag_seconds", "s", (300, 900)),
        _stat("Records a second", "sluice_consumer_records_per_second"),
        _stat("Open shards", "sluice_consumer_open_shards"),
        _stat("Age of the report", "sluice_consumer_report_age_seconds", "s", (60, 180)),
        Panel("Behind", (Query(latest("sluice_consumer_lag_seconds", ONE), "behind"),), unit="s", size=WIDE),
        Panel("Records a second", (Query(latest("sluice_consumer_records_per_second", ONE), "records"),), size=WIDE),
        Panel("Busy", (Query(latest("sluice_consumer_busy_ratio", ONE), "busy"),), unit="percentunit", size=WIDE),
        Panel(
            "Executors",
            (
                Query(latest("sluice_consumer_executors", ONE), "executors"),
                Query(latest("sluice_consumer_draining_executors", ONE), "draining"),
                Query(latest("sluice_executors_out_of_memory_total", ONE), "out of memory so far"),
            ),
            size=WIDE,
        ),
    ),
)

BATCHES = Row(
    "Batches (metrics of the driver)",
    (
        Panel("Records a second, committed", (Query(rate("sluice_records_total", DRIVER), "records"),)),
        Panel("Bytes a second, committed", (Query(rate("sluice_bytes_total", DRIVER), "bytes"),), unit="Bps"),
        Panel("Batches", (Query(happened("sluice_batches_total", DRIVER, "kind"), "{{kind}}"),), stacked=True),
        Panel("Phases of a batch, mean", (Query(mean("sluice_batch_seconds", DRIVER, "phase"), "{{phase}}"),), unit="s", stacked=True),
        Panel("Phases of a batch, 95 %", (Query(quantile(0.95, "sluice_batch_seconds", DRIVER, "phase"), "{{phase}}"),), unit="s"),
        Panel(
            "Records a batch, mean",
            (Query(f"{rate('sluice_records_total', DRIVER)} / {rate('sluice_batches_total', DRIVER)}", "records"),),
        ),
        Panel("Last committed batch", (Query(latest("sluice_committed_batch", DRIVER, "namespace, sluice_dev_consumer"), "batch"),), size=WIDE),
        Panel("Busy", (Query(latest("sluice_busy_ratio", DRIVER, "namespace, sluice_dev_consumer"), "busy"),), unit="percentunit", size=WIDE),
        Panel(
            "Dead letters",
            (Query(happened("sluice_dead_letters_total", DRIVER), "records"), Query(latest("sluice_consumer_dead_letters", ONE), "ever")),
            size=WIDE,
        ),
        Panel("Warnings", (Query(happened("sluice_warnings_total", DRIVER, "reason"), "{{reason}}"),), stacked=True, size=WIDE),
    ),
)

SHARDS = Row(
    "Shards and lease (metrics of the driver)",
    (
        Panel("Shards", (Query(latest("sluice_shards", DRIVER, "state"), "{{state}}"),)),
        Panel(
            "Ten shards furthest behind",
            (Query(f"topk(10, {latest('sluice_shard_millis_behind_latest', DRIVER, 'shard')})", "{{shard}}"),),
            unit="ms",
        ),
        Panel(
            "Ten shards nearest to their retention",
            (Query(f"topk(10, {latest('sluice_shard_retention_used_ratio', DRIVER, 'shard')})", "{{shard}}"),),
            unit="percentunit",
            limits=(0.5, 0.8),
        ),
        Panel("Take-overs of the lease", (Query(happened("sluice_takeovers_total", DRIVER, "how"), "{{how}}"),), stacked=True),
        Panel("Generation of the lease", (Query(latest("sluice_generation", DRIVER, "namespace, sluice_dev_consumer"), "generation"),)),
        Panel("A driver stands by", (Query(latest("sluice_standby", DRIVER, "namespace, sluice_dev_consumer"), "stands by"),)),
        Panel("Reads that waited out the lease", (Query(happened("sluice_waits_total", DRIVER), "reads"),), stacked=True),
    ),
)

AWS = Row(
    "Requests to AWS (metrics of the driver)",
    (
        Panel(
            "Requests a second",
            (Query(rate("sluice_calls_total", DRIVER, "process, service, operation"), "{{process}} {{service}} {{operation}}"),),
            stacked=True,
            size=(12, 8),
        ),
        Panel(
            "Requests made again",
            (Query(happened("sluice_retries_total", DRIVER, "process, service, cause"), "{{process}} {{service}} {{cause}}"),),
            stacked=True,
            size=(12, 8),
        ),
    ),
)

CONSUMER = Dashboard(
    "sluice-consumer",
    "Sluice / Consumer",
    "One KinesisConsumer. Panels of the driver's metrics need the chart's driverMetrics.port and driverMetrics.podMonitor.",
    (
        Variable("namespace", "sluice_consumer_ready", "namespace"),
        Variable("name", 'sluice_consumer_ready{namespace="$namespace"}', "name"),
    ),
    (STATE, BATCHES, SHARDS, AWS),
)
