"""For each alert of the chart: series in which it fires, and series beside them in which it does not. One value a minute.

A case is what Prometheus' `promtool test rules` takes: series with their values, the minute at which it is looked, and the labels of the alerts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chart import NAMESPACE

Json = dict[str, Any]
Labels = dict[str, str]

POD_A, POD_B = f'namespace="{NAMESPACE}",pod="sluice-a"', f'namespace="{NAMESPACE}",pod="sluice-b"'
ORDERS = 'namespace="team",name="orders"'
DRIVER = 'namespace="team",sluice_dev_consumer="orders",pod="orders-driver-1"'
NEXT_DRIVER = 'namespace="team",sluice_dev_consumer="orders",pod="orders-driver-2"'
HERE: Labels = {"namespace": NAMESPACE}
SMALL = 'namespace="team",name="small"'
POOL: Labels = {"namespace": "team", "name": "small"}
CONSUMER: Labels = {"namespace": "team", "name": "orders"}
OF_DRIVER: Labels = {"namespace": "team", "sluice_dev_consumer": "orders"}
HOURLY: Labels = {f'sluice_warnings_total{{{DRIVER},reason="SourceMoved"}}': "_x9 1x60 2x60 3x240"}


@dataclass(frozen=True)
class Case:
    """At `minute` the alert is there with these labels, one set an alert, or it is not there (none)."""

    alert: str
    series: Labels
    minute: int
    fires: tuple[Labels, ...] = ()
    why: str = ""


def leads(a: str, b: str) -> Labels:
    return {f"sluice_leader{{{POD_A}}}": a, f"sluice_leader{{{POD_B}}}": b}


def up(*pods: str) -> Labels:
    return {f'sluice_build_info{{{pod},version="1"}}': "1x30" for pod in pods}


def restarts(values: str, cause: str = "OOMKilled") -> Labels:
    return {f'sluice_restarts_total{{{POD_A},cause="{cause}"}}': values}


def out_of_memory(values: str) -> Labels:
    return {f'sluice_executors_out_of_memory_total{{{ORDERS},pod="{pod}"}}': values for pod in "ab"}


def stands_still(behind: str, batches: str) -> Labels:
    return {
        f'sluice_shard_millis_behind_latest{{{DRIVER},shard="0"}}': behind,
        f'sluice_batches_total{{{DRIVER},kind="new"}}': batches,
    }


def throttled(refused: str, cause: str = "ProvisionedThroughputExceededException") -> Labels:
    return {
        f'sluice_calls_total{{{DRIVER},process="tasks",service="dynamodb",operation="UpdateItem"}}': "0+40x60",
        f'sluice_calls_total{{{DRIVER},process="driver",service="dynamodb",operation="Query"}}': "0+20x60",
        f'sluice_retries_total{{{DRIVER},process="tasks",service="dynamodb",cause="{cause}"}}': refused,
    }


def limited(limited: str, lag: str) -> Labels:
    return {f'sluice_consumer_scaling_limited{{{ORDERS},pod="a"}}': limited, f'sluice_consumer_lag_seconds{{{ORDERS},pod="a"}}': lag}


def led_by_another() -> Labels:
    first, second = f'{ORDERS},pod="a"', f'{ORDERS},pod="b"'
    limits = {f"sluice_consumer_scaling_limited{{{first}}}": "1x30 stale", f"sluice_consumer_scaling_limited{{{second}}}": "_x30 1x60"}
    return limits | {f"sluice_consumer_lag_seconds{{{first}}}": "60+30x30 stale", f"sluice_consumer_lag_seconds{{{second}}}": "_x30 990+30x60"}


CASES = (
    Case("SluiceOperatorAbsent", {}, 6, (HERE,)),
    Case("SluiceOperatorAbsent", up(POD_B), 6),
    Case(
        "SluiceOperatorAbsent", {'sluice_build_info{namespace="other",version="1"}': "1x30"}, 6, (HERE,), "another release is no replica of this one"
    ),
    Case("SluiceNobodyLeads", leads("1 1 0x30", "0x30"), 5, (HERE,)),
    Case("SluiceNobodyLeads", leads("1 1 0x30", "0 0 0 1x30"), 5, (), "another took over within a minute"),
    Case("SluiceWatchBehind", {f'sluice_watch_behind_seconds{{{POD_A},kind="Pod"}}': "0+60x9"}, 6, ({**HERE, "pod": "sluice-a", "kind": "Pod"},)),
    Case("SluiceWatchBehind", {f'sluice_watch_behind_seconds{{{POD_A},kind="Pod"}}': "0 90 0x9"}, 6, (), "the list found it"),
    Case("SluiceDriversFail", restarts("_x9 2 3 4 4x9"), 20, ({**HERE, "cause": "OOMKilled"},), "those before the first scrape count, too"),
    Case("SluiceDriversFail", restarts("_x9 1 2 3 3x9"), 20),
    Case("SluiceDriversFail", restarts("7x90"), 80, (), "it was hours ago"),
    Case("SluiceDriversFail", restarts("7x60 7+1x9 16x30"), 75, ({**HERE, "cause": "OOMKilled"},)),
    Case("SluiceDrainsForced", {f'sluice_drains_forced_total{{{POD_A},reason="Forced"}}': "_x9 1x30"}, 15, ({**HERE, "reason": "Forced"},)),
    Case("SluiceDrainsForced", {f'sluice_drains_forced_total{{{POD_A},reason="Forced"}}': "1x90"}, 80),
    Case("SluiceConsumerStalled", {f'sluice_consumer_stalled{{{ORDERS},pod="a"}}': "0 1x9"}, 3, (CONSUMER,)),
    Case("SluiceConsumerStalled", {f'sluice_consumer_stalled{{{ORDERS},pod="a"}}': "0x9"}, 3),
    Case(
        "SluiceConsumerStalled",
        {f'sluice_consumer_stalled{{{ORDERS},pod="a"}}': "1 1 stale", f'sluice_consumer_stalled{{{ORDERS},pod="b"}}': "_ _ 1x9"},
        2,
        (CONSUMER,),
        "it goes on when another replica leads",
    ),
    Case("SluiceConsumerNotReady", {f"sluice_consumer_ready{{{ORDERS}}}": "1 0x30"}, 17, (CONSUMER,)),
    Case("SluiceConsumerNotReady", {f"sluice_consumer_ready{{{ORDERS}}}": "1 0x9 1x30"}, 17, (), "it was restarted"),
    Case("SluiceConsumerBehind", {f"sluice_consumer_lag_seconds{{{ORDERS}}}": "0 901x30"}, 17, (CONSUMER,)),
    Case("SluiceConsumerBehind", {f"sluice_consumer_lag_seconds{{{ORDERS}}}": "0 900x30"}, 17),
    Case("SluiceScalingLimited", limited("1x60", "60+30x60"), 45, (CONSUMER,)),
    Case("SluiceScalingLimited", led_by_another(), 45, (CONSUMER,), "it goes on when another replica leads"),
    Case(
        "SluiceScalingLimited",
        limited("1x60", "60 90 120 60 90 120 60 90 120 60 90 120 60 90 120 60 90 120 60 90 120 60 90 120 60x60"),
        24,
        (),
        "it grows in each batch",
    ),
    Case("SluiceScalingLimited", limited("1x60", "3600-30x60"), 45, (), "it comes back by itself"),
    Case("SluiceScalingLimited", limited("0x60", "60+30x60"), 45, (), "executors are added"),
    Case("SluiceScalingLimited", limited("0x30 1x60", "60+30x90"), 49, (), "not for long yet"),
    Case("SluicePositionRefused", {f'sluice_consumer_position_refused{{{ORDERS},pod="a"}}': "0 1x9"}, 3, (CONSUMER,)),
    Case("SluiceRolledBack", {f'sluice_consumer_rolled_back{{{ORDERS},pod="a"}}': "0 1x9"}, 3, (CONSUMER,)),
    Case("SluiceRolledBack", {f'sluice_consumer_rolled_back{{{ORDERS},pod="a"}}': "0 1 0x9"}, 3, (), "another version was applied"),
    Case("SluicePositionRefused", {f'sluice_consumer_position_refused{{{ORDERS},pod="a"}}': "0 1 0x9"}, 3, (), "it was corrected"),
    Case("SluiceStandbyNotReady", {f'sluice_consumer_standby_ready{{{ORDERS},pod="a"}}': "1 0x30"}, 17, (CONSUMER,)),
    Case("SluiceStandbyNotReady", {f'sluice_consumer_standby_ready{{{ORDERS},pod="a"}}': "1 0x12 1x30"}, 17, (), "the next one is ready"),
    Case("SluiceOutOfPool", {f'sluice_consumer_out_of_pool{{{ORDERS},pod="a"}}': "0 1x9"}, 3, (CONSUMER,)),
    Case("SluiceOutOfPool", {f'sluice_consumer_out_of_pool{{{ORDERS},pod="a"}}': "0 1 0x9"}, 3, (), "it returned to its pool"),
    Case("SluicePoolStalled", {f'sluice_pool_stalled{{{SMALL},pod="a"}}': "0x20 1x20"}, 24, (POOL,)),
    Case("SluicePoolStalled", {f'sluice_pool_stalled{{{SMALL},pod="a"}}': "0x20 1 0x20"}, 24, (), "for a moment"),
    Case(
        "SluicePoolStalled",
        {f'sluice_pool_stalled{{{SMALL},pod="a"}}': "0x20 1 0x3 1 0x3 1 0x3 1 0x3"},
        31,
        (POOL,),
        "its process ends every few minutes",
    ),
    Case("SluicePoolStalled", {f'sluice_pool_stalled{{{SMALL},pod="a"}}': "1x20 0x20"}, 38, (), "it is over"),
    Case("SluiceRecordsExpireSoon", {f'sluice_shard_retention_used_ratio{{{DRIVER},shard="0"}}': "0.6x30"}, 6, (OF_DRIVER,)),
    Case("SluiceRecordsExpireSoon", {f'sluice_shard_retention_used_ratio{{{DRIVER},shard="0"}}': "0.5x30"}, 6),
    Case("SluiceBatchesStandStill", stands_still("5x60", "9x60"), 30, (OF_DRIVER,)),
    Case("SluiceBatchesStandStill", stands_still("5x60", "_x60"), 30, (OF_DRIVER,), "no batch was ever committed"),
    Case("SluiceBatchesStandStill", stands_still("0x60", "9x60"), 30, (), "an idle consumer has no batches"),
    Case("SluiceBatchesStandStill", stands_still("5x60", "9+1x60"), 30),
    Case("SluiceBatchesStandStill", stands_still("5x60", "_x15 1x45"), 18, (), "the first batch has just ended"),
    Case("SluiceCallsThrottled", throttled("0+30x60"), 30, ({**OF_DRIVER, "service": "dynamodb"},), "half of the calls"),
    Case("SluiceCallsThrottled", throttled("0+6x60"), 30, (), "a tenth: probes of quiet shards of a stream with other consumers"),
    Case("SluiceCallsThrottled", throttled("0+30x60", "ExpiredIteratorException"), 30, (), "another cause"),
    Case("SluiceCallsThrottled", throttled("0+30x60", "ThrottlingError"), 30, ({**OF_DRIVER, "service": "dynamodb"},), "in transactions"),
    Case("SluiceCallsThrottled", throttled("0+30x60", "TransactionConflict"), 30, (), "another writer, and no limit"),
    Case("SluiceCallsThrottled", throttled("0+30x60"), 8, (), "for some minutes"),
    Case("SluiceDataLossSuspected", {f'sluice_warnings_total{{{DRIVER},reason="DataLossSuspected"}}': "_x9 1x30"}, 12, (OF_DRIVER,)),
    Case("SluiceDataLossSuspected", {f'sluice_warnings_total{{{DRIVER},reason="BatchSlow"}}': "_x9 1x30"}, 12),
    Case("SluiceDataLossSuspected", {f'sluice_warnings_total{{{DRIVER},reason="DataLossSuspected"}}': "1x90"}, 80),
    Case("SluiceSourceMoved", {f'sluice_warnings_total{{{DRIVER},reason="SourceMoved"}}': "_x9 1x30"}, 12, (OF_DRIVER,)),
    Case("SluiceSourceMoved", {f'sluice_warnings_total{{{DRIVER},reason="DataLossSuspected"}}': "_x9 1x30"}, 12),
    Case("SluiceSourceMoved", HOURLY, 130, (OF_DRIVER,), "a driver looks once an hour, and a look takes its time"),
    Case("SluiceSourceMoved", HOURLY, 310, (), "nothing has moved there since"),
    Case("SluiceDeadLetters", {f"sluice_consumer_dead_letters{{{ORDERS}}}": "0x9 3x30"}, 12, (CONSUMER,)),
    Case("SluiceDeadLetters", {f"sluice_consumer_dead_letters{{{ORDERS}}}": "0x9 3 stale"}, 12, (CONSUMER,), "the driver died at once"),
    Case("SluiceDeadLetters", {f"sluice_consumer_dead_letters{{{ORDERS}}}": "3x30"}, 12),
    Case("SluiceDeadLetters", {f"sluice_consumer_dead_letters{{{ORDERS}}}": "3x9 0x30"}, 12, (), "another consumer has the name now"),
    Case("SluiceExecutorsOutOfMemory", out_of_memory("_x9 1x30"), 12, (CONSUMER,), "the first one counts"),
    Case("SluiceExecutorsOutOfMemory", out_of_memory("2x60 3x30"), 75, (CONSUMER,)),
    Case("SluiceExecutorsOutOfMemory", out_of_memory("2x90"), 80, (), "it was hours ago"),
    Case("SluiceLeaseChangesHands", {f"sluice_generation{{{DRIVER}}}": "5 stale", f"sluice_generation{{{NEXT_DRIVER}}}": "_ 9x20"}, 10, (OF_DRIVER,)),
    Case("SluiceLeaseChangesHands", {f"sluice_generation{{{DRIVER}}}": "5 stale", f"sluice_generation{{{NEXT_DRIVER}}}": "_ 8x20"}, 10),
)


def document(case: Case, rule: Json, rules: str) -> Json:
    """The file for promtool. The rules in `rules` have no annotations: those depend on the values."""
    expected = [{"exp_labels": {**labels, **rule["labels"]}} for labels in case.fires]
    looked = {"eval_time": f"{case.minute}m", "alertname": case.alert, "exp_alerts": expected}
    series = [{"series": series, "values": values} for series, values in case.series.items()]
    return {
        "rule_files": [rules],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": [looked]}],
    }
