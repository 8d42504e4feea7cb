"""Trials of a new version, `spec.rollout.trial`: what counts for it, what against it, and what is done then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan.views import NOW, REPORT, RESOURCE, attempt, driver, ended, executor, gone, position, seconds, view, wanted

from sluice_operator.plan import trial
from sluice_operator.plan.rules import plan
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.state.actions import CreateDriver, CreateStandby, DeletePod
from sluice_operator.state.objects import Observed, Pod, Trouble
from sluice_operator.state.status import (
    DriverStatus,
    PositionState,
    ProvenStatus,
    RestartStatus,
    StandbyState,
    StandbyStatus,
    Status,
    StreamStatus,
    TrialState,
    TrialStatus,
)
from sluice_operator.state.view import View

TRIAL: dict[str, Any] = {"batches": 3, "seconds": 130}
IMAGES = {name: {"entrypoint": "orders.pipeline:process", "image": f"orders:{name}"} for name in ("good", "bad", "other")}


def spec(image: str = "bad", *, strategy: str = "Recreate", trial: dict[str, Any] | None = TRIAL, **fields: Any) -> DesiredSpec:
    return wanted(pipeline=IMAGES[image], rollout={"strategy": strategy, **({"trial": trial} if trial else {})}, **fields)


GOOD, BAD = spec("good"), spec("bad")
PROVEN = ProvenStatus(hash=GOOD.driver_hash, since=seconds(-9000))
TRYING = TrialStatus(hash=BAD.driver_hash, state=TrialState.RUNNING, since=seconds(-60), after=1, base=40)
BACK = replace(TRYING, led_from=20, state=TrialState.ROLLED_BACK, reason="Failed", message="attempt 2 ended: sink is full", after=2, base=None)
LEADS = replace(REPORT, generation=7)


def scene(
    one: TrialStatus | None = TRYING,
    pod: Pod | None = None,
    asked: DesiredSpec = BAD,
    *,
    former: DesiredSpec | None = GOOD,
    running: DriverStatus | None = None,
    resource: Any = RESOURCE,
    **status: Any,
) -> View:
    """A consumer whose `good` version is proven, and whose spec names `bad`: attempt 2 runs it."""
    running = attempt(2, spec_hash=BAD.driver_hash) if running is None else running
    given: dict[str, Any] = {"proven": PROVEN, "proven_spec": GOOD.version, "trial": one} | status
    seen = Observed(drivers=(pod,) if pod else (), executors=(executor(1, owner="driver-2"), executor(2, owner="driver-2")) if pod else ())
    found = view(spec=asked, status=Status(observed_generation=1, driver=running, **given), observed=seen, resource=resource)
    return replace(found, former=former)


def second(**fields: Any) -> Pod:
    return driver(name="orders-driver-2", uid="driver-2", attempt=2, **fields)


def working(batch: int | None = 40, **fields: Any) -> Pod:
    return second(report=replace(LEADS, batch=batch, **fields))


def told(found: View) -> TrialStatus:
    after = plan(found).status.trial
    assert after is not None
    return after


def test_another_version_begins_a_trial_before_anything_is_done() -> None:
    """It is in the status that is written before the driver is asked to end."""
    running = attempt(1, spec_hash=GOOD.driver_hash)
    made = plan(scene(None, driver(report=LEADS), running=running))
    assert made.status.trial is not None
    assert (made.status.trial.state, made.status.trial.hash, made.status.trial.after) == (TrialState.RUNNING, BAD.driver_hash, 1)
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)
    assert "TrialStarted" in [event.reason for event in made.events]


@pytest.mark.parametrize(("batch", "passes"), [(42, False), (43, True), (99, True)])
def test_so_many_batches_prove_a_version(batch: int, passes: bool) -> None:  # noqa: FBT001 - pytest passes names
    after = plan(scene(pod=working(batch))).status
    assert (after.trial is None) == passes
    assert (after.proven and after.proven.hash, after.proven_spec) == ((BAD if passes else GOOD).driver_hash, (BAD if passes else GOOD).version)


def test_a_driver_that_does_not_hold_every_shard_yet_has_committed_nothing() -> None:
    """Whatever number it reports, the batch is that of another driver."""
    for fields in ({"phase": "Starting", "held_shards": 0}, {"held_shards": 2}):
        assert told(scene(pod=working(99, **fields))).state is TrialState.RUNNING


def test_a_version_that_has_committed_enough_and_then_failed_has_passed() -> None:
    pod = replace(second(report=replace(LEADS, batch=43)), exit=ended(1).exit, phase="Failed")
    assert plan(scene(pod=pod)).status.trial is None


FAULTS: dict[str, tuple[Pod, str]] = {
    "it raises": (replace(second(), exit=ended(1).exit), "Failed"),
    "it is refused": (replace(second(), exit=ended(65, "Refused").exit), "Refused"),
    "its memory is too small": (replace(second(), exit=ended(137, "OOMKilled").exit), "OOMKilled"),
    "it ends though nobody asked": (replace(second(), exit=ended(0, "Completed").exit), "Completed"),
    "it searches for a record": (working(41, warnings=("Isolating: batch 42, attempt 3",)), "Isolating"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_its_own_rolls_a_version_back_at_once(fault: str) -> None:
    pod, reason = FAULTS[fault]
    made = plan(scene(pod=pod))
    condition, stalled = made.status.condition("RolledBack"), made.status.condition("Stalled")
    assert condition is not None
    assert stalled is not None
    assert (condition.status, condition.reason, stalled.reason) == ("True", reason, "RolledBack")
    assert BAD.driver_hash in condition.message
    assert GOOD.driver_hash in condition.message
    assert "kubectl sluice restart orders" in condition.message
    assert [event.reason for event in made.events].count("RolledBack") == 1
    assert made.status.last_good_spec == BAD.raw  # what the user wrote


NO_FAULTS = [(75, "LeaseHeld"), (75, "NotNow"), (76, "Fenced"), (None, "Evicted"), (0, "Drained"), (137, "Killed"), (None, "DriverLost")]


@pytest.mark.parametrize(("code", "reason"), NO_FAULTS)
def test_what_is_not_its_own_fault_is_not_held_against_a_version(code: int, reason: str) -> None:
    assert told(scene(pod=replace(second(), exit=ended(code, reason).exit))).state is TrialState.RUNNING


def test_an_end_before_the_trial_is_not_held_against_it() -> None:
    over = gone(2, spec_hash=BAD.driver_hash, exit=ended(1).exit)
    assert told(scene(replace(TRYING, after=2), running=over)).state is TrialState.RUNNING
    assert told(scene(replace(TRYING, after=1), running=over)).state is TrialState.ROLLED_BACK


def test_the_proven_version_follows_at_once() -> None:
    restarts = RestartStatus(count=1, reason="Failed", message="sink is full", next_at=seconds(300))
    made = plan(scene(BACK, running=gone(2, spec_hash=BAD.driver_hash, exit=ended(1).exit), restarts=restarts))
    assert (made.status.driver.attempt, made.status.driver.spec_hash, made.actions) == (3, GOOD.driver_hash, (CreateDriver(),))


@pytest.mark.parametrize("strategy", ["Recreate", "Standby"])
def test_a_version_that_works_and_is_too_late_is_replaced_by_either_strategy(strategy: str) -> None:
    asked, former = spec("bad", strategy=strategy), spec("good", strategy=strategy)
    made = plan(scene(replace(TRYING, worked=135), working(41), asked, former=former))
    assert made.status.trial is not None
    assert (made.status.trial.state, made.status.trial.reason) == (TrialState.ROLLED_BACK, "NotInTime")
    assert "1 of 3 batches in 130 s" in made.status.trial.message
    assert made.actions == ((CreateStandby(),) if strategy == "Standby" else (DeletePod("orders-driver-2", "driver-2"),))


def test_a_standby_that_fails_is_rolled_back_and_the_driver_never_notices() -> None:
    asked, former = spec("bad", strategy="Standby"), spec("good", strategy="Standby")
    one = StandbyStatus(
        attempt=2, pod="orders-driver-2", spec_hash=BAD.driver_hash, since=NOW, state=StandbyState.BACKING_OFF, reason="Failed", message="no module"
    )
    found = scene(TRYING, driver(report=LEADS), asked, former=former, running=attempt(1, spec_hash=GOOD.driver_hash), standby=one)
    made = plan(found)
    assert made.status.trial is not None
    assert (made.status.trial.state, made.actions, made.status.driver.attempt) == (TrialState.ROLLED_BACK, (), 1)
    held = replace(found, status=replace(found.status, standby=replace(one, reason="LeaseHeld")))
    assert told(held).state is TrialState.RUNNING


@pytest.mark.parametrize(("reason", "state"), [("StandbyNotReady", TrialState.ROLLED_BACK), ("StandbyWithoutRoom", TrialState.RUNNING)])
def test_the_proven_driver_does_not_end_for_a_standby_that_never_got_ready(reason: str, state: TrialState) -> None:
    asked, former = spec("bad", strategy="Standby"), spec("good", strategy="Standby")
    one = StandbyStatus(attempt=2, pod="orders-driver-2", spec_hash=BAD.driver_hash, since=NOW, state=StandbyState.GIVEN_UP, reason=reason)
    made = plan(scene(TRYING, driver(report=LEADS), asked, former=former, running=attempt(1, spec_hash=GOOD.driver_hash), standby=one))
    assert made.status.trial is not None
    assert made.status.trial.state is state
    assert bool(made.actions) is (state is TrialState.RUNNING)


WAITS: dict[str, View] = {
    "no records": scene(pod=working(phase="Idle")),
    "the lease is held": scene(pod=second(report=replace(LEADS, phase="WaitingOutLease"))),
    "it stands by": scene(pod=second(report=replace(LEADS, phase="StandingBy"))),
    "silent": scene(pod=replace(working(), reported_at=seconds(-200))),
    "paused": scene(pod=working(), resource=replace(RESOURCE, paused=True)),
    "suspended": scene(pod=working(), asked=spec(suspend=True), former=spec("good", suspend=True)),
    "no replicas": scene(pod=working(), asked=spec(replicas=0), former=spec("good", replicas=0)),
}


@pytest.mark.parametrize("case", WAITS)
def test_time_that_is_not_its_own_does_not_count(case: str) -> None:
    one = told(replace(WAITS[case], status=replace(WAITS[case].status, trial=replace(TRYING, working_since=seconds(-20)))))
    assert (one.state, one.worked, one.working_since) == (TrialState.RUNNING, 20, None)


@pytest.mark.parametrize("pod", [working(), second(report=None), second(report=None, trouble=Trouble("ImagePullBackOff", "no such image")), None])
def test_work_and_a_start_count(pod: Pod | None) -> None:
    """Also that of a pod that cannot be made. A minute is written down together, and an operator that was away counts two at most."""

    def after(since: float | None) -> View:
        one = replace(TRYING, working_since=None if since is None else seconds(since))
        return scene(one, pod, running=attempt(2, uid=pod and pod.uid, spec_hash=BAD.driver_hash))

    assert told(after(None)).working_since == NOW
    assert (told(after(-59)).worked, told(after(-61)).worked) == (0, 61)
    assert told(after(-9000)).worked == 120
    assert (plan(after(-5)).wake, plan(after(-5)).look_by) == (seconds(15), seconds(15))


def test_a_version_that_cannot_start_is_rolled_back_with_the_words_of_its_pod() -> None:
    """An image that does not exist is the commonest bad version."""
    one = told(scene(replace(TRYING, base=None, worked=130), second(report=None, trouble=Trouble("ImagePullBackOff", "no such image"))))
    assert (one.state, one.reason) == (TrialState.ROLLED_BACK, "ImagePullBackOff")
    assert "no such image" in one.message


SLOW = {"batches": 3, "seconds": 600, "maxSlowdown": 2}


@pytest.mark.parametrize(
    ("rate", "busy", "worked", "state"),
    [
        (400.0, 1.0, 90, TrialState.ROLLED_BACK),
        (400.0, 1.0, 89, TrialState.RUNNING),  # not settled: it is not proven, and not slow
        (500.0, 1.0, 90, None),
        (40.0, 0.1, 10, None),  # it keeps up: there is no more to do
        (None, None, 10, None),  # an image that reports no figures
    ],
)
def test_a_version_is_slow_only_when_its_batches_follow_each_other(rate: float, busy: float, worked: int, state: TrialState | None) -> None:
    one = replace(TRYING, speed=1000.0, executors=2, worked=worked, led_from=0)
    after = plan(scene(one, working(43, records_per_second=rate, busy=busy), spec(trial=SLOW), former=spec("good", trial=SLOW))).status.trial
    assert (after.state if after else None) is state


def test_the_speed_before_is_that_of_the_proven_driver() -> None:
    stream = StreamStatus(records_per_second=300.0, busy=0.5, reported_at=NOW)
    one = told(scene(None, driver(report=LEADS), running=attempt(1, spec_hash=GOOD.driver_hash), stream=replace(stream)))
    assert one.speed is None  # the report of this moment has no figures, and is newer
    pod = driver(report=replace(LEADS, records_per_second=300.0, busy=0.5))
    assert told(scene(None, pod, running=attempt(1, spec_hash=GOOD.driver_hash))).speed == 600.0


# after a rollback


def test_a_batch_of_the_proven_version_settles_the_blame() -> None:
    running = attempt(3, spec_hash=GOOD.driver_hash)
    pod = replace(working(41), name="orders-driver-3", uid="driver-3")
    first = told(scene(BACK, pod, running=running))
    assert (first.base, first.passed) == (41, False)
    later = replace(pod, report=replace(LEADS, batch=42))
    assert told(scene(first, later, running=running)).passed
    failed = plan(scene(replace(first, passed=True), running=gone(3, spec_hash=GOOD.driver_hash, exit=ended(1).exit)))
    assert failed.status.trial is not None
    assert failed.status.trial.state is TrialState.ROLLED_BACK


def test_when_the_proven_version_fails_as_well_the_new_one_is_not_to_blame() -> None:
    made = plan(scene(replace(BACK, base=41), running=gone(3, spec_hash=GOOD.driver_hash, exit=ended(1).exit)))
    assert made.status.trial is not None
    assert (made.status.trial.state, made.status.trial.reason) == (TrialState.FORWARD, "FormerFails")
    assert "may not be to blame" in made.status.trial.message
    assert (made.status.driver.spec_hash, made.status.condition("RolledBack")) == (BAD.driver_hash, None)
    assert [event.warning for event in made.events if event.reason == "NoWayBack"] == [True]


def test_another_version_or_another_request_is_tried_and_nothing_else_is() -> None:
    over = gone(2, spec_hash=BAD.driver_hash, exit=ended(1).exit)
    for asked, former in [(BAD, GOOD), (spec(replicas=7), spec("good", replicas=7)), (spec(restart={"backoffSeconds": 5}), GOOD)]:
        assert told(scene(BACK, asked=asked, former=former, running=over)).state is TrialState.ROLLED_BACK
    asked_before = replace(BACK, restart="one")
    assert told(scene(asked_before, running=over)).state is TrialState.ROLLED_BACK
    again = told(scene(asked_before, running=over, resource=replace(RESOURCE, restart="two")))
    assert (again.state, again.restart) == (TrialState.RUNNING, "two")
    assert told(scene(BACK, asked=spec("other"), running=over)).hash == spec("other").driver_hash


def test_a_restart_during_a_trial_goes_on_with_it() -> None:
    one = told(scene(replace(TRYING, worked=30), working(41), resource=replace(RESOURCE, restart="two")))
    assert (one.state, one.worked, one.base, one.restart) == (TrialState.RUNNING, 30, 40, "two")


def test_a_revert_ends_the_trial_and_restarts_nothing() -> None:
    made = plan(scene(BACK, driver(report=LEADS), GOOD, running=attempt(1, spec_hash=GOOD.driver_hash)))
    assert (made.status.trial, made.actions, made.status.condition("Stalled")) == (None, (), None)


def test_without_the_field_the_spec_is_carried_out() -> None:
    made = plan(scene(BACK, driver(report=LEADS), spec(trial=None), running=attempt(1, spec_hash=GOOD.driver_hash)))
    assert (made.status.trial, made.status.proven, made.status.proven_spec) == (None, None, None)
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)


# no way back

RUNS_GOOD = attempt(1, spec_hash=GOOD.driver_hash)
MOVED = position(state=PositionState.COMPLETE)
ELSEWHERE = {"name": "orders", "region": "eu-west-1", "dynamodbEndpoint": "http://127.0.0.1:8000"}
ONE_WAY: dict[str, tuple[View, str]] = {
    "nothing is proven": (scene(None, driver(report=LEADS), running=RUNS_GOOD, proven=None, proven_spec=None, former=None), "NoneProven"),
    "it is not allowed": (scene(None, driver(report=LEADS), running=RUNS_GOOD, former=None), "NotValid"),
    "another endpoint": (scene(None, driver(report=LEADS), spec(stream=ELSEWHERE), running=RUNS_GOOD), "StreamChanged"),
    "positions were moved": (scene(None, driver(report=LEADS), running=RUNS_GOOD, position=MOVED), "PositionsMoved"),
    "positions are to be moved": (
        scene(None, driver(report=LEADS), spec(position={"id": "one", "to": {"latest": True}}), running=RUNS_GOOD),
        "PositionsMoved",
    ),
    "the proven one fails": (
        scene(None, running=gone(1, spec_hash=GOOD.driver_hash, exit=ended(1).exit), restarts=RestartStatus(count=2, message="sink is full")),
        "FormerFails",
    ),
}


@pytest.mark.parametrize("case", ONE_WAY)
def test_some_changes_go_forward_only_and_say_so(case: str) -> None:
    found, reason = ONE_WAY[case]
    made = plan(found)
    assert made.status.trial is not None
    assert (made.status.trial.state, made.status.trial.reason) == (TrialState.FORWARD, reason)
    assert "NoWayBack" in [event.reason for event in made.events]
    over = gone(2, spec_hash=found.asked.driver_hash if found.asked else None, exit=ended(1).exit)
    later = replace(found, status=replace(found.status, trial=made.status.trial, driver=over), observed=Observed())
    assert told(later).state is TrialState.FORWARD


def test_a_version_without_a_way_back_is_proven_as_any_other() -> None:
    one = replace(TRYING, state=TrialState.FORWARD, reason="NoneProven", base=40)
    after = plan(scene(one, working(43), former=None, proven=None, proven_spec=None)).status
    assert (after.trial, after.proven_spec) == (None, BAD.version)


def test_what_became_impossible_during_a_trial_is_not_rolled_back() -> None:
    assert told(scene(pod=FAULTS["it raises"][0], former=None)).reason == "NotValid"
    assert told(scene(pod=FAULTS["it raises"][0], position=MOVED)).reason == "PositionsMoved"
    gone_since = told(scene(BACK, former=None, running=gone(2, spec_hash=BAD.driver_hash)))
    assert (gone_since.state, gone_since.reason) == (TrialState.FORWARD, "NotValid")


def test_a_resource_that_is_deleted_changes_no_trial() -> None:
    found = scene(pod=FAULTS["it raises"][0], resource=replace(RESOURCE, deleting=True))
    assert trial.note(found) == found.status
