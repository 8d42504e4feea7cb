"""The dashboard of one shard. Two metrics have a label for it; panels beside them are its consumer's."""

from __future__ import annotations

from sluice_operator.generate.grafana import Dashboard, Panel, Query, Row, Variable
from sluice_operator.generate.promql import latest

DRIVER = 'namespace="$namespace",sluice_dev_consumer="$name"'
ONE = f'{DRIVER},shard="$shard"'
SMALL = (8, 4)

BEHIND = latest("sluice_shard_millis_behind_latest", ONE, "shard")
USED = latest("sluice_shard_retention_used_ratio", ONE, "shard")
KEPT = latest("sluice_retention_seconds", DRIVER, "namespace, sluice_dev_consumer")
LEFT = f"(1 - max({USED})) * max({KEPT})"

SHARD = Dashboard(
    "sluice-shard",
    "Sluice / Shard",
    "One shard of a KinesisConsumer. All of it needs the chart's driverMetrics.port and driverMetrics.podMonitor.",
    (
        Variable("namespace", "sluice_shard_millis_behind_latest", "namespace"),
        Variable("name", 'sluice_shard_millis_behind_latest{namespace="$namespace"}', "sluice_dev_consumer"),
        Variable("shard", f"sluice_shard_millis_behind_latest{{{DRIVER}}}", "shard"),
    ),
    (
        Row(
            "Shard",
            (
                Panel("Behind", (Query(BEHIND),), "stat", "ms", SMALL, (300_000, 900_000)),
                Panel("Retention used", (Query(USED),), "stat", "percentunit", SMALL, (0.5, 0.8)),
                Panel("Unread records expire in", (Query(LEFT),), "stat", "s", SMALL, (43_200, 10_800)),
                Panel(
                    "Behind, beside the other shards",
                    (
                        Query(BEHIND, "{{shard}}"),
                        Query(f"max({latest('sluice_shard_millis_behind_latest', DRIVER, 'shard')})", "the furthest of all"),
                        Query(f"avg({latest('sluice_shard_millis_behind_latest', DRIVER, 'shard')})", "mean of all"),
                    ),
                    unit="ms",
                    size=(12, 9),
                ),
                Panel(
                    "Retention used, beside the other shards",
                    (Query(USED, "{{shard}}"), Query(f"max({latest('sluice_shard_retention_used_ratio', DRIVER, 'shard')})", "the most of all")),
                    unit="percentunit",
                    size=(12, 9),
                ),
            ),
        ),
    ),
)
