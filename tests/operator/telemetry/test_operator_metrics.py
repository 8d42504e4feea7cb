"""What Prometheus reads is what happened."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from metered import Metered, experienced
from prometheus_client import generate_latest
from simulated_cluster import BEGIN, KEY, MIGRATING, SPEC, ready

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Exists
from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, ResourceSnapshot
from sluice_operator.plan.events import Reason
from sluice_operator.run.loops import Loops
from sluice_operator.run.shared import ReconcileContext, of_pools
from sluice_operator.settings import Settings
from sluice_operator.state.actions import EventToSend, Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import PositionState, Status
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import MeteredCluster, OperatorMetrics

Json = dict[str, Any]


@pytest.fixture
def world() -> Metered:
    return experienced()


def test_migrations_are_counted_by_what_became_of_each_try(world: Metered) -> None:
    states = {state: world.value("sluice_migrations_total", state=state) for state in ("Running", "SourceActive", "Complete", "Failed")}
    assert states == {"Running": 2, "SourceActive": 1, "Complete": 1, "Failed": None}


def test_moves_of_positions_are_counted_by_what_became_of_each_try(world: Metered) -> None:
    """From zero on, so that `increase` sees the first one, and the panel of a fleet without moves has data."""
    assert {state: world.value("sluice_position_moves_total", state=state) for state in PositionState} == dict.fromkeys(PositionState, 0)
    world.apply({**MIGRATING, "position": {"id": "one", "to": {"trimHorizon": True}}})
    assert world.run(240, until=lambda: world.status.get("position", {}).get("state") == "Complete")
    assert [world.value("sluice_position_moves_total", state=state) for state in ("Running", "Complete", "Refused")] == [1, 1, 0]


def test_a_refused_move_is_a_figure_of_its_resource(world: Metered) -> None:
    """Until `spec.position` is corrected: the alert goes by it."""
    of = {"namespace": KEY.namespace, "name": KEY.name}
    assert world.value("sluice_consumer_position_refused", **of) == 0
    world.habits.position = "refused"
    world.apply({**MIGRATING, "position": {"id": "one", "to": {"trimHorizon": True}}})
    assert world.run(240, until=lambda: world.value("sluice_consumer_position_refused", **of) == 1)
    world.apply(MIGRATING)
    assert world.run(240, until=lambda: world.value("sluice_consumer_position_refused", **of) == 0)


def test_a_rollback_is_a_figure_of_its_resource(world: Metered) -> None:
    """From zero on; until another version is applied. The alert goes by it."""
    of = {"namespace": KEY.namespace, "name": KEY.name}
    tried = {**MIGRATING, "rollout": {"trial": {"batches": 2, "seconds": 60}}}
    assert world.value("sluice_consumer_rolled_back", **of) == 0
    world.apply(tried)
    assert world.run(240, until=lambda: "proven" in world.status)
    world.habits.bad["bad"] = "raises"
    world.apply({**tried, "pipeline": {**SPEC["pipeline"], "image": "bad"}})
    assert world.run(240, until=lambda: world.value("sluice_consumer_rolled_back", **of) == 1)
    world.apply(tried)
    assert world.run(240, until=lambda: world.value("sluice_consumer_rolled_back", **of) == 0)


def test_a_driver_without_a_standby_is_shown_where_one_is_asked_for(world: Metered) -> None:
    """There is no such figure where the spec asks for none. The alert goes by it."""
    of = {"namespace": KEY.namespace, "name": KEY.name}
    guarded = {**MIGRATING, "rollout": {"strategy": "Standby", "standby": "Always"}}
    assert world.value("sluice_consumer_standby_ready", **of) is None
    world.apply(guarded)
    assert world.run(60, until=lambda: world.value("sluice_consumer_standby_ready", **of) == 0)
    assert world.run(60, until=lambda: world.value("sluice_consumer_standby_ready", **of) == 1)
    world.apply({**guarded, "suspend": True})
    assert world.run(60, until=lambda: world.value("sluice_consumer_standby_ready", **of) is None)
    world.apply(MIGRATING)
    assert world.run(120, until=lambda: ready(world) and "standby" not in world.status)


def test_restarts_are_counted_by_cause_and_only_unasked_ones(world: Metered) -> None:
    assert world.value("sluice_restarts_total", cause="Failed") == 1
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    assert world.run(240, until=lambda: ready(world) and world.status["driver"]["attempt"] == 3)
    assert world.value("sluice_restarts_total", cause="Drained") is None
    assert world.value("sluice_restarts_total", cause="Failed") == 1


def test_a_driver_whose_pod_vanishes_is_counted_whether_or_not_the_next_one_follows_at_once(world: Metered) -> None:
    """The status that says how it ended may already be that of the next attempt."""
    (driver,) = world.drivers()
    world.memory.delete("Pod", KEY.namespace, driver["metadata"]["name"], driver["metadata"]["uid"])
    world.memory.finish_deletion(driver)
    assert world.run(240, until=lambda: ready(world) and world.status["driver"]["attempt"] == 3)
    assert "DriverDisrupted" in world.reasons()
    assert world.value("sluice_restarts_total", cause="DriverLost") == 1


def test_every_event_is_counted_by_its_reason(world: Metered) -> None:
    for reason in set(world.reasons()):
        assert world.value("sluice_events_total", reason=reason) == world.reasons().count(reason)


@pytest.mark.parametrize("reason", [Reason.DRAIN_CUT_SHORT, Reason.FORCED])
def test_drains_that_were_forced_are_counted(reason: Reason) -> None:
    metrics = OperatorMetrics()
    body = {"metadata": {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "1"}, "spec": SPEC}
    view = parse.view(body, Observed(), BEGIN)
    metrics.on_status_written(view, Plan(status=Status(), events=(EventToSend(reason, ""), EventToSend(Reason.DRIVER_EXITED, ""))))
    assert metrics.registry.get_sample_value("sluice_drains_forced_total", {"reason": reason}) == 1
    assert metrics.registry.get_sample_value("sluice_drains_forced_total", {"reason": "DriverExited"}) is None


def executor(reason: str, container: str = "executor") -> Json:
    return {"status": {"containerStatuses": [{"name": container, "state": {"terminated": {"reason": reason, "exitCode": 137}}}]}}


def test_executors_that_ran_out_of_memory_are_counted_once_each() -> None:
    metrics = OperatorMetrics()
    for uid, body, gone in (
        ("a", {}, False),
        ("a", executor("OOMKilled"), False),
        ("a", executor("OOMKilled"), True),
        ("b", executor("OOMKilled"), True),
        ("c", executor("Error"), True),
        ("d", executor("OOMKilled", "proxy"), False),
    ):
        metrics.saw_executor(uid, KEY, body, gone=gone)
    of = {"namespace": KEY.namespace, "name": KEY.name}
    assert metrics.registry.get_sample_value("sluice_executors_out_of_memory_total", of) == 2
    metrics.forget(KEY)
    assert metrics.registry.get_sample_value("sluice_executors_out_of_memory_total", of) is None


def test_a_consumer_whose_executors_have_room_counts_zero() -> None:
    """So that its panel has data, and `increase` sees the first one. A consumer without a living executor has no series."""
    metrics = OperatorMetrics()
    of = {"namespace": KEY.namespace, "name": KEY.name}
    metrics.saw_executor("a", KEY, executor("Error"), gone=True)
    assert metrics.registry.get_sample_value("sluice_executors_out_of_memory_total", of) is None
    metrics.saw_executor("b", KEY, {}, gone=False)
    assert metrics.registry.get_sample_value("sluice_executors_out_of_memory_total", of) == 0


def test_time_in_a_phase_is_counted_when_the_phase_ends(world: Metered) -> None:
    assert world.value("sluice_phase_seconds_count", phase="Migrating") == 1
    assert world.value("sluice_phase_seconds_count", phase="Running") == 1
    assert world.value("sluice_phase_seconds_count", phase="Idle") is None


def test_calls_are_timed_by_verb_and_result(world: Metered) -> None:
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
    world.context.cache.see("Pod", world.told(millisBehindLatest=5_000, openBatch=7), world.now - timedelta(seconds=200))
    world.context.cache.see("Pod", world.told(millisBehindLatest=5_000, openBatch=7), world.now)
    assert world.value("sluice_consumer_lag_seconds", namespace=KEY.namespace, name=KEY.name) == 205
    body, seen = world.must(), world.now - timedelta(seconds=300)  # by the operator before this one
    body["status"]["stream"] |= {"openBatch": 7, "batchAt": seen.isoformat()}
    world.context.cache.see("KinesisConsumer", {**body, "metadata": {**body["metadata"], "resourceVersion": "x"}}, world.now)
    assert world.value("sluice_consumer_lag_seconds", namespace=KEY.namespace, name=KEY.name) == 305


def test_figures_are_those_of_the_last_report_however_old_the_status_is(world: Metered) -> None:
    """Of a thousand resources the figures in a status are minutes old; an alert on the lag must not be."""
    driver = world.told(millisBehindLatest=61_000, recordsPerSecond=7.5, busy=0.25, openShards=9, openBatch=None, deadLetters=3)
    where = {"namespace": KEY.namespace, "name": KEY.name}
    world.context.cache.see("Pod", driver, world.now - timedelta(seconds=40))
    assert world.status["stream"].get("millisBehindLatest") != 61_000
    assert world.value("sluice_consumer_lag_seconds", **where) == 61
    assert world.value("sluice_consumer_records_per_second", **where) == 7.5
    assert world.value("sluice_consumer_busy_ratio", **where) == 0.25
    assert world.value("sluice_consumer_open_shards", **where) == 9
    assert world.value("sluice_consumer_dead_letters", **where) == 3
    assert world.value("sluice_consumer_report_age_seconds", **where) == 40


def test_a_report_of_somebody_elses_pod_is_not_the_drivers(world: Metered) -> None:
    (driver,) = world.drivers()
    driver["metadata"]["uid"] = driver["metadata"]["ownerReferences"][0]["uid"] = "another"
    world.context.cache.see("Pod", driver, world.now)
    assert world.value("sluice_consumer_open_shards", namespace=KEY.namespace, name=KEY.name) is None


def test_events_and_the_reports_among_them_are_counted() -> None:
    metrics = OperatorMetrics()
    for reported in (True, False, True):
        metrics.saw("Pod", reported=reported)
    assert metrics.registry.get_sample_value("sluice_driver_reports_total") == 2
    assert metrics.registry.get_sample_value("sluice_watch_events_total", {"kind": "Pod"}) == 3


def test_a_resource_without_a_status_is_exported_without_figures() -> None:
    metrics, body = OperatorMetrics(), {"metadata": {"namespace": "a", "name": "b"}, "spec": SPEC}
    metrics.registry.register(Gauges(Sources(lambda: [ResourceSnapshot(body, None)], lambda: True, dict)))
    assert metrics.registry.get_sample_value("sluice_consumers", {"phase": "Pending"}) == 1
    assert b"sluice_consumer_lag_seconds{" not in generate_latest(metrics.registry)


@pytest.mark.parametrize("of_pool", [True, False])
def test_the_end_of_a_pool_forgets_nothing_of_a_consumer_of_the_same_name(*, of_pool: bool) -> None:
    metrics, context = OperatorMetrics(), ReconcileContext(MemoryCluster(lambda: BEGIN), Cache(), Settings())
    metrics.saw_executor("a", KEY, {}, gone=False)
    Loops(of_pools(context) if of_pool else context, metrics)._timed(time.monotonic(), KEY, force_refresh=False)
    of = {"namespace": KEY.namespace, "name": KEY.name}
    assert metrics.registry.get_sample_value("sluice_executors_out_of_memory_total", of) == (0 if of_pool else None)
    assert metrics.registry.get_sample_value("sluice_reconcile_seconds_count", {"result": "ok"}) == 1
