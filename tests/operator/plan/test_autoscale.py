"""`spec.autoscale` of one view: when a report is judged, what is remembered, and what people read of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan.views import EXECUTORS, NOW, REPORT, RESOURCE, attempt, driver, executor, gone, seconds, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.resource.changes import CHANGES, ChangeCost
from sluice_operator.state.actions import Plan, Retarget
from sluice_operator.state.objects import Observed, Pod, Trouble
from sluice_operator.state.serialization import dump_status, load_status
from sluice_operator.state.status import AutoscaleStatus, DrainStatus, ScaleSample, ScaleTrial, Status
from sluice_operator.state.view import View

SCALED = wanted(replicas=1, autoscale={"min": 2, "max": 8})
SAMPLE = ScaleSample(at=seconds(-60), attempt=1, executors=2, batch=7, records=0, millis_behind_latest=80_000)
MEMORY = AutoscaleStatus(replicas=2, sample=SAMPLE)
BUSY = replace(REPORT, busy=1.0, batch=8, records=600, millis_behind_latest=120_000, active_shards=4, farthest_shard="s", millis_behind_others=90_000)


def scaled(memory: AutoscaleStatus | None = MEMORY, pod: Pod | None = None, **fields: Any) -> View:
    """A view with that memory and that driver: of one that is 2 minutes behind and does nothing but batches, by default."""
    pod = pod or driver(report=BUSY)
    status = Status(observed_generation=1, driver=attempt(), autoscale=memory)
    here: dict[str, Any] = {"spec": SCALED, "status": status, "observed": Observed(drivers=(pod,), executors=EXECUTORS)}
    return view(**here | fields)


def reported(**figures: Any) -> Pod:
    return driver(report=replace(BUSY, **figures))


def memory(of: Plan) -> AutoscaleStatus:
    assert of.status.autoscale is not None
    return of.status.autoscale


def test_the_number_is_written_down_before_the_driver_gets_it() -> None:
    """The status is the write-ahead log: after a crash in between, the next pass writes the annotation, and decides nothing again."""
    planned = plan(scaled())
    assert planned.actions == (Retarget("orders-driver-1", "driver-1", 4),)
    assert (memory(planned).replicas, memory(planned).reason, memory(planned).changed_at) == (4, "ScaledUp", NOW)
    assert [event.reason for event in planned.events] == ["DriverReady", "Autoscaled", "Scaling"] or "Autoscaled" in {
        e.reason for e in planned.events
    }
    stored = load_status(dump_status(planned.status))
    again = plan(replace(scaled(), status=stored))
    assert (again.actions, memory(again)) == (planned.actions, stored.autoscale)


def test_executors_that_come_are_waited_for() -> None:
    grown = replace(MEMORY, replicas=4, reason="ScaledUp", changed_at=seconds(-10), sample=None)
    coming = plan(scaled(grown, driver(report=BUSY, target="4")))
    assert (coming.actions, memory(coming).reason, memory(coming).message) == ((), "ExecutorsPending", "2 executors ready, 4 wanted")
    there = plan(scaled(grown, driver(report=replace(BUSY, executors=4), target="4")))
    assert (there.actions, memory(there).sample) == ((), replace(SAMPLE, at=NOW, executors=4, batch=8, records=600, millis_behind_latest=120_000))


GROWN = AutoscaleStatus(replicas=4, reason="ScaledUp", changed_at=seconds(-900))
QUIET: dict[str, Any] = {"busy": 0.5, "millis_behind_latest": 0, "farthest_shard": None, "millis_behind_others": 0}


def overdue(memory: AutoscaleStatus = GROWN, since: float = -600, pods: tuple[Pod, ...] = EXECUTORS, started: float = -900, **figures: Any) -> View:
    """Four executors are asked for since then, and two of them have come; the figures are those of one minute."""
    pod = driver(report=replace(BUSY, **{"executors": 2} | figures), target="4", started_at=seconds(started))
    status = Status(observed_generation=1, driver=attempt(started_at=seconds(started)), autoscale=memory, progressing_since=seconds(since))
    return scaled(pod=pod, status=status, observed=Observed(drivers=(pod,), executors=pods))


def test_executors_that_do_not_come_are_waited_for_until_the_progress_deadline() -> None:
    full = executor(3, trouble=Trouble("Unschedulable", "0/2 nodes are available: 2 Insufficient cpu"))
    early = plan(overdue(GROWN, -599, (*EXECUTORS, full)))
    assert (memory(early).reason, early.status.condition("ScalingLimited")) == ("ExecutorsPending", None)
    late = plan(overdue(GROWN, -600, (*EXECUTORS, full)))
    condition = late.status.condition("ScalingLimited")
    assert condition is not None
    assert (late.actions, memory(late).replicas, condition.reason) == ((), 4, "ExecutorsOverdue")
    assert condition.message == (
        "2 executors ready, 4 wanted: 0/2 nodes are available: 2 Insufficient cpu; not here within 600 s (spec.progressDeadlineSeconds). Run "
        "`kubectl sluice events orders`, and `kubectl sluice logs orders` for a quota. Then make room, or lower spec.autoscale.max."
    )
    judged = plan(overdue(replace(GROWN, sample=SAMPLE)))
    assert (judged.actions, memory(judged).replicas, memory(judged).reason) == ((), 4, "ExecutorsOverdue")


def test_executors_that_run_and_are_enough_become_the_number() -> None:
    begins = plan(overdue(replace(GROWN, sample=SAMPLE), **QUIET))
    assert (begins.actions, memory(begins).quiet_since, memory(begins).reason) == ((), NOW, "ExecutorsOverdue")
    enough = replace(GROWN, sample=SAMPLE, quiet_since=seconds(-600), trial=ScaleTrial(executors=2, seconds_per_record=1.0))
    planned = plan(overdue(enough, **QUIET))
    assert planned.actions == (Retarget("orders-driver-1", "driver-1", 2),)
    assert (memory(planned).replicas, memory(planned).reason, memory(planned).trial) == (2, "ScaledDown", None)
    assert memory(planned).message == "0s behind, busy 50% with 2 executors; no more came"
    assert planned.status.condition("ScalingLimited") is None


@pytest.mark.parametrize(("there", "number"), [(3, 3), (2, 2), (1, 4)])
def test_only_a_number_that_runs_is_taken_instead(there: int, number: int) -> None:
    """Fewer than the spec's minimum run: another number would be missed too, and Stalled would come and go."""
    enough = replace(GROWN, sample=replace(SAMPLE, executors=there), quiet_since=seconds(-600))
    planned = plan(overdue(enough, **QUIET | {"executors": there}))
    assert memory(planned).replicas == number
    assert planned.status.progressing_since == seconds(-600)


@pytest.mark.parametrize(("changed", "started"), [(-599, -900), (-900, -599)], ids=["by another number", "by another driver"])
def test_executors_that_were_asked_for_lately_are_not_overdue(changed: float, started: float) -> None:
    """Something else has been under way for longer, such as a pod that does not leave, or drivers that failed."""
    lately = plan(overdue(replace(GROWN, changed_at=seconds(changed)), started=started))
    assert (memory(lately).reason, lately.status.condition("ScalingLimited")) == ("ExecutorsPending", None)


def test_one_executor_fewer_has_to_be_enough_for_the_whole_cool_down() -> None:
    """That three were enough says nothing of two."""
    planned = plan(overdue(replace(GROWN, sample=replace(SAMPLE, executors=3), quiet_since=seconds(-600)), **QUIET))
    assert (memory(planned).reason, memory(planned).quiet_since) == ("ExecutorsOverdue", None)


@pytest.mark.parametrize(
    ("changes", "figures"),
    [
        ({"quiet_since": seconds(-599)}, {}),
        ({"changed_at": seconds(-599)}, {}),
        ({}, {"busy": 0.6}),
        ({}, {"millis_behind_latest": 15_001}),
        ({}, {"draining": (DrainStatus(pod="orders-exec-2"),)}),
        ({}, {"executors": 1, "busy": 0.0}),
    ],
    ids=["load", "change", "busy", "behind", "drain", "another"],
)
def test_executors_that_are_overdue_are_not_given_up_for_less(changes: dict[str, Any], figures: dict[str, Any]) -> None:
    quiet = replace(GROWN, sample=SAMPLE, quiet_since=seconds(-600))
    planned = plan(overdue(replace(quiet, **changes), **QUIET | figures))
    assert (planned.actions, memory(planned).replicas) == ((), 4)


def test_with_no_executor_at_all_there_are_no_figures() -> None:
    quiet = replace(GROWN, sample=replace(SAMPLE, executors=0), quiet_since=seconds(-600))
    planned = plan(overdue(quiet, -600, (), **QUIET | {"executors": 0}))
    assert (planned.actions, memory(planned).replicas, memory(planned).reason, memory(planned).sample) == ((), 4, "ExecutorsOverdue", None)


def test_once_the_executors_run_the_number_may_grow_again() -> None:
    limited = replace(GROWN, reason="ExecutorsOverdue", message="2 executors ready, 4 wanted", sample=SAMPLE)
    pod = driver(report=replace(BUSY, executors=4, active_shards=8), target="4")
    status = Status(observed_generation=1, driver=attempt(), autoscale=limited, progressing_since=seconds(-900))
    there = plan(scaled(pod=pod, status=status, observed=Observed(drivers=(pod,), executors=tuple(executor(n) for n in range(4)))))
    assert (there.actions, memory(there).reason, there.status.condition("ScalingLimited")) == ((), "Measuring", None)
    measured = replace(memory(there), sample=replace(SAMPLE, executors=4))
    grows = plan(scaled(pod=pod, status=replace(status, autoscale=measured)))
    assert (memory(grows).replicas, memory(grows).reason) == (7, "ScaledUp")


def test_a_spec_that_is_new_has_the_whole_deadline() -> None:
    view = overdue()
    fresh = plan(replace(view, resource=replace(view.resource, generation=2)))
    assert memory(fresh).reason == "ExecutorsPending"


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (driver(report=BUSY, reported_at=seconds(-91)), "ReportStale"),
        (driver(report=None), "DriverStarting"),
        (reported(phase="Starting"), "DriverStarting"),
        (reported(held_shards=3), "DriverStarting"),
        (reported(warnings=("Isolating: batch 7",)), "Isolating"),
        (reported(busy=None), "Measuring"),
        (reported(millis_behind_latest=None), "Measuring"),
        (reported(executors=1), "ExecutorsPending"),
        (reported(draining=(DrainStatus(pod="orders-exec-2"),)), "ExecutorsPending"),
    ],
)
def test_without_figures_to_decide_by_nothing_is_changed_and_the_status_says_why(pod: Pod, reason: str) -> None:
    """And the minute begins again: what was measured before says nothing of what comes."""
    planned = plan(scaled(pod=pod))
    assert not any(isinstance(action, Retarget) for action in planned.actions)
    assert (memory(planned).replicas, memory(planned).reason, memory(planned).sample) == (2, reason, None)


def test_a_minute_is_measured_with_one_driver() -> None:
    """The counters of another begin at 0. So does the time after an operator that was ahead."""
    for other in (replace(SAMPLE, attempt=7), replace(SAMPLE, executors=3), replace(SAMPLE, at=seconds(-59)), replace(SAMPLE, at=seconds(9_999))):
        assert plan(scaled(replace(MEMORY, sample=other))).actions == ()


def test_an_open_batch_says_nothing_of_its_lag() -> None:
    """The decision waits for its commit; a driver with nothing to read commits none."""
    assert plan(scaled(pod=reported(batch=7))).actions == ()
    quiet = replace(MEMORY, replicas=3, sample=replace(SAMPLE, executors=3, millis_behind_latest=0), quiet_since=seconds(-600))
    idle = driver(report=replace(BUSY, phase="Idle", batch=7, executors=3, busy=0.0, millis_behind_latest=0, active_shards=0), target="3")
    assert plan(scaled(quiet, idle)).actions == (Retarget("orders-driver-1", "driver-1", 2),)


def test_a_batch_that_reads_up_to_the_tip_is_behind_by_the_time_that_it_takes() -> None:
    """A driver reports how far it was behind when it read: 0, if `process` works for minutes on all that there was."""
    behind = replace(MEMORY, sample=replace(SAMPLE, at=seconds(-400), millis_behind_latest=0))
    at_tip = {"millis_behind_latest": 0, "farthest_shard": None, "millis_behind_others": 0}
    slow = plan(scaled(behind, reported(**at_tip)))
    assert (memory(slow).replicas, memory(slow).reason) == (4, "ScaledUp")
    assert memory(slow).message == "6m40s behind, busy 100% with 2 executors"
    for figures in ({"batch": 7 + 400}, {"busy": 0.6}, {"batch": None, "phase": "Idle"}):
        assert memory(plan(scaled(behind, reported(**at_tip | figures)))).reason == "Steady"


def test_long_intervals_are_judged_by_three_of_them() -> None:
    slow = wanted(replicas=1, autoscale={"min": 2, "max": 8}, batch={"intervalSeconds": 60})
    for age, told in ((-179, 0), (-180, 1)):
        status = Status(driver=attempt(spec_hash=slow.driver_hash), autoscale=replace(MEMORY, sample=replace(SAMPLE, at=seconds(age))))
        assert len(plan(scaled(spec=slow, status=status)).actions) == told


def test_setting_the_field_changes_nothing_by_itself() -> None:
    for target, number in (("5", 5), ("99", 8), ("1", 2), ("many", 2), ("9" * 400, 2), (None, 2)):
        assert memory(plan(scaled(None, driver(report=BUSY, target=target)))).replicas == number
    assert memory(plan(scaled(None, observed=Observed(), status=Status(driver=gone())))).replicas == 2
    assert plan(scaled(None)).actions == ()


def test_removing_the_field_forgets_what_it_came_to() -> None:
    planned = plan(scaled(spec=wanted(replicas=3)))
    assert (planned.status.autoscale, planned.actions) == (None, (Retarget("orders-driver-1", "driver-1", 3),))


def test_bounds_that_are_edited_hold_at_once() -> None:
    planned = plan(scaled(spec=wanted(replicas=1, autoscale={"min": 3, "max": 8})))
    assert (memory(planned).replicas, memory(planned).changed_at) == (3, None)
    assert planned.actions == (Retarget("orders-driver-1", "driver-1", 3),)


@pytest.mark.parametrize(
    "other",
    [
        {"spec": wanted(replicas=1, autoscale={"min": 2, "max": 8}, suspend=True)},
        {"spec": wanted(replicas=1, autoscale={"min": 2, "max": 8}, batch={"intervalSeconds": 1})},
        {"spec": wanted(replicas=1, autoscale={"min": 2, "max": 8}, position={"id": "one", "to": {"latest": True}})},
        {"spec": wanted(replicas=1, autoscale={"min": 2, "max": 8}, migrateFrom={"table": "orders-kcl"})},
        {"resource": replace(RESOURCE, deleting=True)},
        {"resource": replace(RESOURCE, paused=True)},
        {"resource": replace(RESOURCE, restart="now")},
        {"pod": driver(report=BUSY, gone_by=seconds(60))},
        {"observed": Observed(drivers=(driver(report=BUSY), driver(name="orders-driver-9", uid="stray")), executors=EXECUTORS)},
    ],
    ids=["suspended", "rollout", "position", "migration", "deleted", "paused", "restart", "drain", "stray"],
)
def test_whatever_else_is_under_way_comes_first(other: dict[str, Any]) -> None:
    planned = plan(scaled(**other))
    assert not any(isinstance(action, Retarget) for action in planned.actions)
    assert memory(planned).replicas == 2
    assert memory(planned).changed_at is None


def test_a_consumer_that_is_limited_says_so_in_words() -> None:
    hot = reported(millis_behind_others=0, farthest_shard="shardId-000000000003")
    first = plan(scaled(pod=hot))
    condition = first.status.condition("ScalingLimited")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "HotShard")
    assert condition.message.startswith(
        "3m00s behind, busy 100%; only shardId-000000000003 is far behind, and one task reads a shard. Use more partition keys"
    )
    assert [event.reason for event in first.events if event.warning] == ["ScalingLimited"]
    later = plan(replace(scaled(pod=hot), status=replace(first.status, autoscale=replace(memory(first), sample=SAMPLE))))
    assert [event for event in later.events if event.warning] == []
    over = plan(
        replace(scaled(pod=reported(millis_behind_latest=0, busy=0.5)), status=replace(first.status, autoscale=replace(memory(first), sample=SAMPLE)))
    )
    assert over.status.condition("ScalingLimited") is None


def test_the_next_driver_is_made_with_the_number() -> None:
    stays = scaled(replace(MEMORY, replicas=5), observed=Observed(), status=Status(driver=gone(), autoscale=replace(MEMORY, replicas=5)))
    assert stays.executors == 5
    five = tuple(executor(number) for number in range(5))
    seen = driver(report=replace(REPORT, executors=5, busy=0.5, millis_behind_latest=0, batch=8), target="5")
    status = Status(observed_generation=1, driver=attempt(), autoscale=replace(MEMORY, replicas=5))
    planned = plan(scaled(status=status, observed=Observed(drivers=(seen,), executors=five)))
    ready = planned.status.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.message) == ("True", "4 open shards, 5 executors")


def test_autoscale_restarts_no_driver() -> None:
    assert CHANGES["autoscale"] is ChangeCost.SCALE
    assert SCALED.driver_hash == wanted(replicas=1).driver_hash
