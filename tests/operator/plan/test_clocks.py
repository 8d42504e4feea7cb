"""Times that a leader wrote whose clock was ahead: none is waited for longer than the policy can ask for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.views import MOVING, NOW, REPORT, attempt, driver, gone, job, migration, position, seconds, view, wanted

from sluice_operator.names import clock
from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import CreateDriver, CreateJob, CreateStandby
from sluice_operator.state.objects import Observed, Pod
from sluice_operator.state.status import MigrationState, PositionState, RestartStatus, StandbyState, StandbyStatus, Status, StreamStatus

AHEAD = [datetime(2027, 11, 26, 13, tzinfo=UTC), datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC)]
NOTHING = Observed()
MIGRATOR = Pod(name="orders-reset", uid="pod-1", role="migration", owner="job-1", owner_kind="Job")
LONGEST = timedelta(seconds=300)
WAITS = Status(observed_generation=1, driver=gone(), restarts=RestartStatus(count=1, reason="Failed", message="boom"))
ahead = pytest.mark.parametrize("time", AHEAD, ids=str)


def later(status: Status, since: timedelta, **fields: Any) -> Any:
    return plan(replace(view(status=status, **fields), now=NOW + since))


@ahead
def test_a_driver_is_made_after_the_longest_pause(time: datetime) -> None:
    first = later(replace(WAITS, restarts=replace(WAITS.restarts, next_at=time)), timedelta(), observed=NOTHING)
    assert (first.actions, first.status.restarts.next_at, first.wake) == ((), NOW + LONGEST, NOW + LONGEST)
    assert later(first.status, LONGEST / 2, observed=NOTHING).status.restarts.next_at == NOW + LONGEST
    assert CreateDriver() in later(first.status, LONGEST, observed=NOTHING).actions


@ahead
def test_a_migration_is_tried_after_the_longest_pause(time: datetime) -> None:
    spec = wanted(migrateFrom={"table": "orders-kcl"}, restart={"backoffSeconds": 5, "maxBackoffSeconds": 60})
    lost = replace(migration(state=MigrationState.LOST, next_at=time, uid=None), spec_hash=spec.job_hash)
    first = later(Status(observed_generation=1, migration=lost), timedelta(), spec=spec, observed=NOTHING)
    assert first.actions == ()
    assert first.status.migration.next_at == seconds(60)
    assert CreateJob() in later(first.status, timedelta(seconds=60), spec=spec, observed=NOTHING).actions


@ahead
def test_what_is_not_done_is_stalled_at_its_deadline(time: datetime) -> None:
    begun = Status(observed_generation=1, driver=attempt(uid=None), progressing_since=time)
    first = later(begun, timedelta(), observed=Observed(drivers=(driver(report=None),)))
    assert first.status.progressing_since == NOW
    second = later(first.status, timedelta(seconds=600), observed=Observed(drivers=(driver(report=None),)))
    assert second.status.condition("Stalled") is not None


@ahead
def test_a_batch_that_began_in_the_future_is_overdue_at_its_deadline(time: datetime) -> None:
    """Otherwise a hanging `process` would never be told of."""
    hangs = Observed(drivers=(driver(report=replace(REPORT, open_batch=8)),))
    status = Status(observed_generation=1, driver=attempt(), stream=StreamStatus(number=9, open_batch=8, batch_at=time, reported_at=NOW))
    first = later(status, timedelta(), observed=hangs).status
    assert first.stream is not None
    assert first.stream.batch_at == NOW


@ahead
def test_a_job_without_a_pod_is_lost_after_a_minute(time: datetime) -> None:
    status = Status(observed_generation=1, migration=migration(podless_since=time))
    spec = wanted(migrateFrom={"table": "orders-kcl"})
    first = later(status, timedelta(), spec=spec, observed=Observed(jobs=(job(),))).status
    assert first.migration.podless_since == NOW
    second = later(first, timedelta(seconds=60), spec=spec, observed=Observed(jobs=(job(),))).status
    assert second.migration.state is MigrationState.LOST


@ahead
def test_a_move_that_no_pod_carries_out_is_given_up_at_its_deadline(time: datetime) -> None:
    """Otherwise no driver would read until then."""
    status = Status(observed_generation=1, driver=gone(), position=position(since=time))
    pending = Observed(jobs=(job(name=position().job, active=True),), migrators=(replace(MIGRATOR, phase="Pending"),))
    first = later(status, timedelta(), spec=MOVING, observed=pending)
    assert (first.status.position.state, first.status.position.since) == (PositionState.RUNNING, NOW)
    assert first.wake == seconds(600)
    assert later(first.status, timedelta(seconds=600), spec=MOVING, observed=pending).status.position.state is PositionState.REFUSED


@ahead
def test_a_driver_that_started_in_the_future_becomes_stable(time: datetime) -> None:
    failed = Status(observed_generation=1, driver=attempt(started_at=None), restarts=RestartStatus(count=3))
    observed = Observed(drivers=(driver(started_at=time),))
    first = later(failed, timedelta(), observed=observed).status
    assert first.driver.started_at == NOW
    assert later(first, timedelta(seconds=600), observed=observed).status.restarts == RestartStatus()
    known = replace(failed, driver=attempt(started_at=time))
    assert later(known, timedelta(), observed=Observed(drivers=(driver(started_at=None),))).status.driver.started_at == NOW


def test_a_clock_that_is_ahead_makes_no_driver_stable() -> None:
    """The driver began a second ago, by its node's clock 700 s ago; the operator saw it begin. Otherwise it would forget each failure."""
    failed = Status(observed_generation=1, driver=attempt(started_at=None), restarts=RestartStatus(count=3))
    observed = Observed(drivers=(driver(started_at=seconds(-700), seen_at=seconds(-1)),))
    first = later(failed, timedelta(), observed=observed).status
    assert first.restarts == failed.restarts
    assert later(first, timedelta(seconds=600), observed=observed).status.restarts == RestartStatus()


@given(st.integers(0, 300))
def test_a_time_that_the_policy_can_ask_for_is_kept(pause: int) -> None:
    due = seconds(pause)
    assert later(replace(WAITS, restarts=replace(WAITS.restarts, next_at=due)), timedelta(), observed=NOTHING).status.restarts.next_at in {due, None}


def test_a_message_shows_the_date_of_a_time_that_is_not_today() -> None:
    """`13:00:00Z` of next year reads as an hour from now."""
    assert clock(NOW + timedelta(hours=1), NOW) == "13:00:00Z"
    assert clock(NOW + timedelta(hours=12), NOW) == "2026-11-23T00:00:00Z"
    assert clock(NOW - timedelta(days=365), NOW) == "2025-11-22T12:00:00Z"
    spec = wanted(restart={"backoffSeconds": 5, "maxBackoffSeconds": 3600})
    waits = replace(view(spec=spec, status=replace(WAITS, restarts=replace(WAITS.restarts, next_at=AHEAD[0])), observed=NOTHING), now=seconds(43_000))
    ready = plan(waits).status.condition("Ready")
    assert ready is not None
    assert "attempt 2 at 2026-11-23T00:56:40Z" in ready.message


@ahead
def test_a_standby_is_given_up_in_time(time: datetime) -> None:
    spec = wanted(batch={"intervalSeconds": 9}, rollout={"strategy": "Standby", "readySeconds": 60})
    named = StandbyStatus(attempt=2, pod="orders-driver-2", spec_hash=spec.driver_hash, since=time)
    slow = replace(driver(name="orders-driver-2", uid="driver-2", attempt=2, report=None))
    there = Observed(drivers=(driver(), slow))
    first = later(Status(observed_generation=1, driver=attempt(), standby=named), timedelta(), spec=spec, observed=there)
    assert first.status.standby.since == NOW
    assert later(first.status, timedelta(seconds=60), spec=spec, observed=there).status.standby.state is StandbyState.GIVEN_UP


@ahead
def test_a_standby_is_tried_again_after_the_longest_pause(time: datetime) -> None:
    spec = wanted(batch={"intervalSeconds": 9}, rollout={"strategy": "Standby"})
    ended = StandbyStatus(
        attempt=2, pod="orders-driver-2", spec_hash=spec.driver_hash, since=time, state=StandbyState.BACKING_OFF, reason="Failed", next_at=time
    )
    there = Observed(drivers=(driver(),))
    first = later(Status(observed_generation=1, driver=attempt(), standby=ended), timedelta(), spec=spec, observed=there)
    assert (first.actions, first.status.standby.next_at) == ((), NOW + LONGEST)
    assert CreateStandby() in later(first.status, LONGEST, spec=spec, observed=there).actions
