"""The dashboard of all consumers, and of the operator."""

from __future__ import annotations

from sluice_operator.generate.grafana import Dashboard, Panel, Query, Row, Variable
from sluice_operator.generate.promql import happened, latest, mean, quantile, rate

CHOSEN = 'namespace=~"$namespace"'
TO_CONSUMER = "/d/sluice-consumer?var-datasource=${datasource}&var-namespace=${__data.fields.namespace}&var-name=${__data.fields.name}"
SMALL = (4, 4)

SUMMARY = Row(
    "Consumers",
    (
        Panel("Consumers", (Query(f"count({latest('sluice_consumer_ready', CHOSEN)})"),), "stat", size=SMALL),
        Panel("Not ready", (Query(f"sum(1 - {latest('sluice_consumer_ready', CHOSEN)})"),), "stat", size=SMALL, limits=(1, 5)),
        Panel("Need attention", (Query(f"sum({latest('sluice_consumer_stalled', CHOSEN)})"),), "stat", size=SMALL, limits=(1, 1)),
        Panel("Furthest behind", (Query(f"max({latest('sluice_consumer_lag_seconds', CHOSEN)})"),), "stat", "s", SMALL, (300, 900)),
        Panel("Records a second", (Query(f"sum({latest('sluice_consumer_records_per_second', CHOSEN)})"),), "stat", size=SMALL),
        Panel("Executors", (Query(f"sum({latest('sluice_consumer_executors', CHOSEN)})"),), "stat", size=SMALL),
        Panel(
            "Each consumer",
            (
                Query(latest("sluice_consumer_lag_seconds", CHOSEN), "behind", "s"),
                Query(latest("sluice_consumer_records_per_second", CHOSEN), "records a second"),
                Query(latest("sluice_consumer_open_shards", CHOSEN), "open shards"),
                Query(latest("sluice_consumer_executors", CHOSEN), "executors"),
                Query(latest("sluice_consumer_ready", CHOSEN), "ready", "bool_yes_no"),
                Query(latest("sluice_consumer_stalled", CHOSEN), "stalled", "bool_yes_no"),
                Query(latest("sluice_consumer_scaling_limited", CHOSEN), "scaling limited", "bool_yes_no"),
                Query(latest("sluice_consumer_position_refused", CHOSEN), "move refused", "bool_yes_no"),
                Query(latest("sluice_consumer_rolled_back", CHOSEN), "rolled back", "bool_yes_no"),
                Query(latest("sluice_consumer_standby_ready", CHOSEN), "standby ready", "bool_yes_no"),
                Query(latest("sluice_consumer_out_of_pool", CHOSEN), "out of its pool", "bool_yes_no"),
                Query(latest("sluice_consumer_report_age_seconds", CHOSEN), "age of report", "s"),
            ),
            "table",
            size=(24, 9),
            link=TO_CONSUMER,
        ),
        Panel("Ten furthest behind", (Query(f"topk(10, {latest('sluice_consumer_lag_seconds', CHOSEN)})", "{{namespace}}/{{name}}"),), unit="s"),
        Panel(
            "Ten busiest, records a second", (Query(f"topk(10, {latest('sluice_consumer_records_per_second', CHOSEN)})", "{{namespace}}/{{name}}"),)
        ),
        Panel(
            "Phases, in all namespaces",
            (Query(f"sum by (phase) ({latest('sluice_consumers', by='namespace, phase')})", "{{phase}}"),),
            stacked=True,
        ),
    ),
)

POOLS = Row(
    "Pools",
    (
        Panel(
            "Each pool",
            (
                Query(latest("sluice_pool_members", CHOSEN), "members"),
                Query(latest("sluice_pool_ready_members", CHOSEN), "ready members"),
                Query(latest("sluice_pool_members_out", CHOSEN), "members out"),
                Query(latest("sluice_pool_deaths", CHOSEN), "ends in a row"),
                Query(latest("sluice_pool_ready", CHOSEN), "ready", "bool_yes_no"),
                Query(latest("sluice_pool_stalled", CHOSEN), "stalled", "bool_yes_no"),
            ),
            "table",
            size=(24, 6),
        ),
    ),
)

EVENTS = Row(
    "What happened, in all namespaces",
    (
        Panel("Drivers that ended unasked", (Query(happened("sluice_restarts_total", by="cause"), "{{cause}}"),), stacked=True),
        Panel("Drains cut short", (Query(happened("sluice_drains_forced_total", by="reason"), "{{reason}}"),), stacked=True),
        Panel(
            "Tries of migrations and of moves of positions",
            (
                Query(happened("sluice_migrations_total", by="state"), "migration: {{state}}"),
                Query(happened("sluice_position_moves_total", by="state"), "move: {{state}}"),
            ),
            stacked=True,
        ),
        Panel("Kubernetes events", (Query(happened("sluice_events_total", by="reason"), "{{reason}}"),), stacked=True, size=(12, 8)),
        Panel(
            "Mean time in a phase, of the last hour",
            (Query(mean("sluice_phase_seconds", by="phase", window="1h"), "{{phase}}"),),
            unit="s",
            size=(12, 8),
        ),
    ),
)

OPERATOR = Row(
    "Operator",
    (
        Panel("Leads", (Query(latest("sluice_leader", by="namespace, pod"), "{{namespace}}/{{pod}}"),), unit="bool_yes_no"),
        Panel("Replicas by version", (Query("count by (namespace, version) (sluice_build_info)", "{{namespace}} {{version}}"),), stacked=True),
        Panel(
            "Watches behind",
            (Query(latest("sluice_watch_behind_seconds", by="namespace, pod, kind"), "{{pod}} {{kind}}"),),
            unit="s",
        ),
        Panel(
            "Reconciles",
            (
                Query(quantile(0.95, "sluice_reconcile_seconds", by="result"), "95 % {{result}}"),
                Query(quantile(0.95, "sluice_reconcile_wait_seconds"), "95 % wait for a thread"),
            ),
            unit="s",
        ),
        Panel("Reconciles that wait", (Query(latest("sluice_reconcile_queue", by="namespace, pod"), "{{pod}}"),)),
        Panel("Reconciles a second", (Query(rate("sluice_reconcile_seconds_count", by="result"), "{{result}}"),), stacked=True),
        Panel("Calls to the API server, 95 %", (Query(quantile(0.95, "sluice_api_request_seconds", by="verb"), "{{verb}}"),), unit="s"),
        Panel(
            "Calls to the API server a second",
            (Query(rate("sluice_api_request_seconds_count", by="verb, result"), "{{verb}} {{result}}"),),
            stacked=True,
        ),
        Panel(
            "Watch events and reports a second",
            (Query(rate("sluice_watch_events_total", by="kind"), "{{kind}}"), Query(rate("sluice_driver_reports_total"), "reports of drivers")),
        ),
    ),
)

FLEET = Dashboard(
    "sluice-fleet",
    "Sluice / Fleet",
    "All KinesisConsumers and their pools, and the operator that looks after them.",
    (Variable("namespace", "sluice_consumer_ready", "namespace", several=True),),
    (SUMMARY, POOLS, EVENTS, OPERATOR),
)
