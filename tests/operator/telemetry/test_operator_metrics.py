"""What Prometheus reads is what happened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from metered import Metered, experienced
from prometheus_client import generate_latest
from simulated_cluster import BEGIN, KEY, MIGRATING, SPEC, ready

from sluice_operator.cluster.port import Exists
from sluice_operator.observe import parse
from sluice_operator.observe.cache import ResourceSnapshot
from sluice_operator.plan.events import Reason
from sluice_operator.state.actions import EventToSend, Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Status
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import MeteredCluster, OperatorMetrics

Json = dict[str, Any]


@pytest.fixture
def world() -> Metered:
    """A consumer that migrated, runs, and has failed once."""
    return experienced()


def test_migrations_are_counted_by_what_became_of_each_try(world: Metered) -> None:
    """One that found its source active, one that went through."""
    states = {state: world.value("sluice_migrations_total", state=state) for state in ("Running", "SourceActive", "Complete", "Failed")}
    assert states == {"Running": 2, "SourceActive": 1, "Complete": 1, "Failed": None}


def test_restarts_are_counted_by_cause_and_only_unasked_ones(world: Metered) -> None:
    """A driver that was asked to go is none."""
    assert world.value("sluice_restarts_total", cause="Failed") == 1
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    assert world.run(240, until=lambda: ready(world) and world.status["driver"]["attempt"] == 3)
    assert world.value("sluice_restarts_total", cause="Drained") is None
    assert world.value("sluice_restarts_total", cause="Failed") == 1


def test_every_event_is_counted_by_its_reason(world: Metered) -> None:
    """As many as were written."""
    for reason in set(world.reasons()):
        assert world.value("sluice_events_total", reason=reason) == world.reasons().count(reason)


@pytest.mark.parametrize("reason", [Reason.DRAIN_CUT_SHORT, Reason.FORCED])
def test_drains_that_were_forced_are_counted(reason: Reason) -> None:
    """Killed in its drain, or given up by annotation; an orderly exit is none."""
    metrics = OperatorMetrics()
    body = {"metadata": {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "1"}, "spec": SPEC}
    view = parse.view(body, Observed(), BEGIN)
    metrics.on_status_written(view, Plan(status=Status(), events=(EventToSend(reason, ""), EventToSend(Reason.DRIVER_EXITED, ""))))
    assert metrics.registry.get_sample_value("sluice_drains_forced_total", {"reason": reason}) == 1
    assert metrics.registry.get_sample_value("sluice_drains_forced_total", {"reason": "DriverExited"}) is None


def test_time_in_a_phase_is_counted_when_the_phase_ends(world: Metered) -> None:
    """The present one is not over."""
    assert world.value("sluice_phase_seconds_count", phase="Migrating") == 1
    assert world.value("sluice_phase_seconds_count", phase="Running") == 1
    assert world.value("sluice_phase_seconds_count", phase="Idle") is None


def test_calls_are_timed_by_verb_and_result(world: Metered) -> None:
    """An error is a result, and goes on to the caller."""
    asked = world.value("sluice_api_request_seconds_count", verb="replace_status", result="ok")
    assert asked is not None
    assert asked > 5
    port = MeteredCluster(world.memory, world.metrics)
    with pytest.raises(Exists):
        port.create(world.drivers()[0])
    assert world.value("sluice_api_request_seconds_count", verb="create", result="Exists") == 1


def test_each_resource_is_told_of_by_the_leader_only(world: Metered) -> None:
    """Else a sum over replicas counts it twice."""
    where = {"namespace": KEY.namespace, "name": KEY.name}
    assert world.value("sluice_leader") == 1
    assert world.value("sluice_consumers", phase="Running") == 1
    assert world.value("sluice_consumers", phase="Failed") == 0
    assert world.value("sluice_consumer_open_shards", **where) == 4
    assert world.value("sluice_consumer_executors", **where) == 2
    assert world.value("sluice_consumer_ready", **where) == 1
    assert world.value("sluice_consumer_stalled", **where) == 0
    world.leads = False
    assert world.value("sluice_leader") == 0
    assert world.value("sluice_consumers", phase="Running") is None
    assert world.value("sluice_watch_behind_seconds", kind="Pod") == 7


def test_the_lag_grows_with_the_clock_while_a_batch_is_open(world: Metered) -> None:
    """A batch that hangs commits nothing, so no report says how far behind it falls."""
    driver = world.told(millisBehindLatest=5_000, openBatch=7)
    body, seen = world.must(), datetime.now(UTC) - timedelta(seconds=300)
    body["status"]["stream"] |= {"openBatch": 7, "batchAt": seen.isoformat()}
    world.context.cache.see("Pod", driver, world.now)
    world.context.cache.see("KinesisConsumer", {**body, "metadata": {**body["metadata"], "resourceVersion": "x"}}, world.now)
    lag = world.value("sluice_consumer_lag_seconds", namespace=KEY.namespace, name=KEY.name)
    assert lag is not None
    assert 305 <= lag < 320


def test_figures_are_those_of_the_last_report_however_old_the_status_is(world: Metered) -> None:
    """Of a thousand resources the figures in a status are minutes old; an alert on the lag must not be."""
    driver = world.told(millisBehindLatest=61_000, recordsPerSecond=7.5, openShards=9, openBatch=None, deadLetters=3)
    where = {"namespace": KEY.namespace, "name": KEY.name}
    world.context.cache.see("Pod", driver, datetime.now(UTC) - timedelta(seconds=40))
    assert world.status["stream"].get("millisBehindLatest") != 61_000
    assert world.value("sluice_consumer_lag_seconds", **where) == 61
    assert world.value("sluice_consumer_records_per_second", **where) == 7.5
    assert world.value("sluice_consumer_open_shards", **where) == 9
    assert world.value("sluice_consumer_dead_letters", **where) == 3
    assert 40 <= (world.value("sluice_consumer_report_age_seconds", **where) or 0) < 60


def test_a_report_of_somebody_elses_pod_is_not_the_drivers(world: Metered) -> None:
    """It has the name that the status says, and another owner."""
    (driver,) = world.drivers()
    driver["metadata"]["uid"] = driver["metadata"]["ownerReferences"][0]["uid"] = "another"
    world.context.cache.see("Pod", driver, world.now)
    assert world.value("sluice_consumer_open_shards", namespace=KEY.namespace, name=KEY.name) is None


def test_a_report_is_counted_once_however_often_its_pod_is_seen() -> None:
    """A watch shows a pod again for other reasons."""
    metrics = OperatorMetrics()
    for report in ("a", "a", "b", None, "b"):
        metrics.saw("Pod", "uid", report, gone=False)
    metrics.saw("Pod", "uid", "b", gone=True)
    assert metrics.registry.get_sample_value("sluice_driver_reports_total") == 2
    assert metrics.registry.get_sample_value("sluice_watch_events_total", {"kind": "Pod"}) == 6
    assert metrics._said == {}


def test_a_resource_without_a_status_is_exported_without_figures() -> None:
    """It was made a moment ago."""
    metrics, body = OperatorMetrics(), {"metadata": {"namespace": "a", "name": "b"}, "spec": SPEC}
    metrics.registry.register(Gauges(Sources(lambda: [ResourceSnapshot(body, None)], lambda: True, dict)))
    assert metrics.registry.get_sample_value("sluice_consumers", {"phase": "Pending"}) == 1
    assert b"sluice_consumer_lag_seconds{" not in generate_latest(metrics.registry)
