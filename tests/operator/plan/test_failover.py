"""`spec.rollout.standby: Always`: when a standby is made behind a driver that works, what it does there, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from plan.views import EXECUTORS, NOW, REPORT, RESOURCE, attempt, driver, ended, executor, gone, seconds, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.plan.standby_terms import is_spare
from sluice_operator.state.actions import Action, CreateDriver, CreateResetJob, CreateStandby, DeletePod, Plan, Retarget
from sluice_operator.state.objects import Observed, Pod, Report, Trouble
from sluice_operator.state.status import (
    Exit,
    Leaving,
    ProvenStatus,
    RestartStatus,
    StandbyState,
    StandbyStatus,
    Status,
    TrialState,
    TrialStatus,
)
from sluice_operator.state.view import View

ALWAYS = {"rollout": {"strategy": "Standby", "standby": "Always"}}
SPEC = wanted(**ALWAYS)
ONE = StandbyStatus(attempt=2, pod="orders-driver-2", uid="driver-2", spec_hash=SPEC.driver_hash, since=NOW, state=StandbyState.READY)
STANDS, WORKS = Report(number=3, phase="StandingBy"), replace(REPORT, generation=5)
END = DeletePod("orders-driver-2", "driver-2")


def second(**fields: Any) -> Pod:
    """The pod of attempt 2, which stands by and said so just now."""
    return driver(**{"name": "orders-driver-2", "uid": "driver-2", "attempt": 2, "report": STANDS, "reported_at": NOW} | fields)


def behind(one: StandbyStatus | None = ONE, *pods: Pod, spec: Any = SPEC, **status: Any) -> View:
    """A driver that works, and its standby. `pods` instead of the two."""
    known = Status(observed_generation=1, driver=status.pop("driver", attempt()), standby=one, attempts=2, **status)
    return view(spec=spec, status=known, observed=Observed(drivers=pods or (driver(), second()), executors=EXECUTORS))


def alone(**status: Any) -> View:
    return replace(behind(None, driver(), **status))


def told(made: Plan) -> tuple[str, str]:
    found = made.status.condition("StandbyReady")
    assert found is not None
    return found.status, found.reason


def state(made: Plan) -> StandbyState:
    assert made.status.standby is not None
    return made.status.standby.state


def test_a_driver_that_works_gets_a_standby_without_a_rollout() -> None:
    made = plan(alone())
    assert made.actions == (CreateStandby(),)
    assert (state(made), told(made)) == (StandbyState.STARTING, ("False", "StandbyStarting"))
    assert (made.status.condition("Reconciling"), made.status.driver.attempt) == (None, 1)


@pytest.mark.parametrize("rollout", [{}, {"strategy": "Recreate"}, {"strategy": "Standby"}, {"strategy": "Standby", "standby": "Rollout"}])
def test_there_is_none_unless_it_is_asked_for(rollout: dict[str, str]) -> None:
    """Not by default: it costs a second driver."""
    made = plan(replace(alone(), asked=wanted(rollout=rollout)))
    assert (made.actions, made.status.standby, made.status.condition("StandbyReady")) == ((), None, None)


def test_one_that_is_ready_stays_behind_the_driver_for_good() -> None:
    made = plan(behind(replace(ONE, state=StandbyState.STARTING)))
    assert (made.actions, state(made), told(made)) == ((), StandbyState.READY, ("True", "Ready"))
    later = replace(behind(), now=seconds(60))
    after = plan(later)
    assert (after.actions, after.status.standby, after.status.driver.attempt) == ((), ONE, 1)
    assert after.wake is not None
    assert after.wake > later.now


@pytest.mark.parametrize(("one", "also"), [(ONE, ",sluice.dev/attempt=1"), (None, "")])
def test_the_selector_names_the_driver_only_while_there_is_a_standby(one: StandbyStatus | None, also: str) -> None:
    """An autoscaler reads it."""
    theirs = (executor(1), executor(2), executor(3, attempt=2, owner="driver-2"))
    found = behind(one, driver(), *([second()] if one else []))
    status = plan(replace(found, observed=replace(found.observed, executors=theirs[: 3 if one else 2]))).status
    assert status.selector == f"sluice.dev/consumer=orders,sluice.dev/role=executor{also}"


def test_a_driver_that_ended_is_followed_at_once_whatever_its_exit() -> None:
    failed = behind(ONE, second(), driver=gone(), restarts=RestartStatus(count=1, reason="Failed", next_at=seconds(10)))
    made = plan(replace(failed, observed=replace(failed.observed, executors=())))
    assert (made.status.driver.attempt, made.status.driver.uid, made.status.standby) == (2, "driver-2", None)
    assert not [each for each in made.actions if isinstance(each, (CreateDriver, DeletePod))]


def test_one_that_has_the_lease_is_the_driver_though_the_former_pod_stands_on_a_lost_node() -> None:
    silent = driver(reported_at=seconds(-60))
    made = plan(behind(ONE, silent, second(report=WORKS)))
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)
    assert made.status.driver.leaving is not None
    assert (made.status.driver.attempt, made.status.driver.leaving.why) == (2, "StandbyFollows")
    hangs = replace(behind(None, driver(gone_by=seconds(30)), second(report=WORKS)), now=seconds(5))
    after = plan(replace(hangs, status=replace(hangs.status, driver=made.status.driver)))
    assert after.status.condition("Ready") is not None
    assert told(after) == ("False", "StandbyAwaited")  # the next one is made when the former pod is gone, and a node may be lost for days
    assert CreateStandby() not in after.actions


def test_a_driver_that_somebody_deletes_is_followed_at_once() -> None:
    made = plan(behind(ONE, driver(gone_by=seconds(30)), second()))
    assert made.status.driver.attempt == 2
    assert made.status.standby is None


def test_one_that_was_ready_and_is_silent_does_not_count_and_may_come_back() -> None:
    lost = plan(behind(ONE, driver(reported_at=seconds(95)), second(reported_at=seconds(-95))))
    assert (lost.actions, state(lost), told(lost)) == ((), StandbyState.SILENT, ("False", "StandbySilent"))
    mute = plan(behind(ONE, driver(), second(report=Report(number=4, phase="Starting"))))
    assert state(mute) is StandbyState.SILENT
    assert mute.status.standby is not None
    assert state(plan(behind(mute.status.standby))) is StandbyState.READY


def test_one_that_stays_silent_is_replaced_after_a_pause() -> None:
    """Its credentials may have expired, and the next one has newer ones."""
    mute = replace(ONE, state=StandbyState.SILENT, since=seconds(-300), message="orders-driver-2 reports no longer that it is ready")
    made = plan(behind(mute, driver(), second(report=Report(number=4, phase="Starting"))))
    assert (made.actions, state(made)) == ((END,), StandbyState.BACKING_OFF)
    assert made.status.standby is not None
    without = replace(behind(made.status.standby, driver()), now=seconds(10))
    again = plan(replace(without, observed=replace(without.observed, drivers=(driver(reported_at=seconds(10)),))))
    assert again.actions == (CreateStandby(),)
    assert again.status.standby is not None
    assert (again.status.standby.attempt, again.status.standby.tries) == (3, 2)


def test_a_driver_that_is_killed_is_not_followed_by_one_that_is_silent() -> None:
    """It would wait for a table that does not answer it. It is ended, and a new driver is made: as slow as without it, and never stuck."""
    mute = replace(ONE, state=StandbyState.SILENT)
    found = behind(mute, second(report=Report(number=4, phase="Starting")), driver=gone())
    made = plan(replace(found, observed=replace(found.observed, executors=())))
    assert (made.actions, made.status.driver.pod) == ((END,), None)
    after = plan(replace(found, status=made.status, observed=Observed()))
    assert CreateDriver() in after.actions
    assert after.status.driver.attempt == 3


def test_without_room_it_waits_and_ends_nothing() -> None:
    old = replace(ONE, state=StandbyState.STARTING, since=seconds(-300))
    made = plan(behind(old, driver(), second(report=None, reported_at=None, trouble=Trouble("Unschedulable", "0/3 nodes are available"))))
    assert (made.actions, state(made), told(made)[1]) == ((), StandbyState.STARTING, "Unschedulable")
    assert made.status.standby is not None
    assert made.status.standby.since == NOW
    assert made.status.condition("Stalled") is None


def test_one_that_never_gets_ready_is_replaced_after_a_pause() -> None:
    old = replace(ONE, state=StandbyState.STARTING, since=seconds(-300))
    made = plan(behind(old, driver(), second(report=Report(number=1, phase="Starting"))))
    assert (made.actions, state(made), told(made)[1]) == ((END,), StandbyState.BACKING_OFF, "StandbyNotReady")


def test_one_that_fails_ends_no_driver_and_its_pauses_grow_until_one_was_ready_for_long() -> None:
    died = second(exit=Exit(code=137, reason="OOMKilled", at=NOW))
    soon = plan(behind(replace(ONE, tries=3), driver(), died)).status.standby
    late = plan(behind(replace(ONE, tries=3, since=seconds(-600)), driver(), died)).status.standby
    assert soon is not None
    assert late is not None
    assert (soon.tries, soon.next_at, late.tries, late.next_at) == (3, seconds(40), 1, seconds(10))


def test_one_that_is_taken_away_with_its_node_after_months_begins_a_new_series() -> None:
    leaves = second(gone_by=seconds(30))
    made = plan(behind(replace(ONE, tries=5, since=seconds(-600)), driver(), leaves))
    assert made.status.standby is not None
    assert (state(made), made.status.standby.tries) == (StandbyState.SILENT, 1)


def test_after_a_second_failure_a_driver_gets_its_next_standby_after_a_stable_run() -> None:
    """Else a version that fails would be restarted without its pauses: each standby would be the next driver."""
    assert plan(alone(restarts=RestartStatus(count=1))).actions == (CreateStandby(),)
    made = plan(alone(restarts=RestartStatus(count=2)))
    assert (made.actions, told(made)) == ((), ("False", "StandbyAwaited"))
    killed = plan(alone(restarts=RestartStatus(interruptions=3)))
    assert killed.actions == (CreateStandby(),)


def test_a_standby_that_stood_for_months_has_not_worked_for_months() -> None:
    """`resetAfterSeconds` counts from the time at which it followed."""
    old = second(started_at=seconds(-3600 * 24 * 60), report=replace(WORKS, number=4))
    failed = behind(ONE, old, driver=gone(), restarts=RestartStatus(count=2))
    followed = plan(replace(failed, observed=Observed(drivers=(old,)))).status
    after = plan(replace(failed, status=followed, observed=Observed(drivers=(old,)), now=seconds(5)))
    assert (after.status.driver.started_at, after.status.restarts.count, after.status.standby) == (NOW, 2, None)


def test_executors_of_an_earlier_driver_are_waited_for() -> None:
    found = alone()
    made = plan(replace(found, observed=replace(found.observed, executors=(*EXECUTORS, executor(3, owner="driver-0")))))
    assert (made.actions, told(made)) == ((), ("False", "StandbyAwaited"))


def test_a_driver_that_does_not_work_gets_none() -> None:
    assert plan(behind(None, driver(report=replace(REPORT, held_shards=2)))).actions == ()


TRIED = wanted(rollout={**ALWAYS["rollout"], "trial": {}}, batch={"intervalSeconds": 9})


@pytest.mark.parametrize(
    ("is_in", "passed", "gets"),
    [
        (TrialState.RUNNING, False, False),
        (TrialState.ROLLED_BACK, False, False),
        (TrialState.ROLLED_BACK, True, True),
        (TrialState.FORWARD, False, True),
    ],
)
def test_a_version_on_trial_has_none_before_it_is_proven(is_in: TrialState, passed: bool, gets: bool) -> None:  # noqa: FBT001 - pytest passes names
    """It would take the lease of a driver that fails, before the rollback does."""
    former = wanted(rollout={**ALWAYS["rollout"], "trial": {}})
    runs = former if is_in is TrialState.ROLLED_BACK else TRIED
    one = TrialStatus(hash=TRIED.driver_hash, state=is_in, since=NOW, passed=passed, after=1)
    found = alone(driver=attempt(1, spec_hash=runs.driver_hash), trial=one, proven=ProvenStatus(hash=former.driver_hash, since=NOW))
    found = replace(found, asked=TRIED, former=former, status=replace(found.status, proven_spec=former.version))
    made = plan(found)
    assert made.status.trial is not None
    assert made.status.trial.state is is_in
    assert (CreateStandby() in made.actions) is gets


def test_a_rollout_ends_the_standby_of_the_former_version_first() -> None:
    """Three drivers would exist; and the former version would take the lease that the driver releases for the next one."""
    made = plan(behind(spec=wanted(**ALWAYS, batch={"intervalSeconds": 9})))
    assert (made.actions, made.status.driver.attempt) == ((END,), 1)


def test_a_restart_is_not_served_by_a_standby_that_was_made_before_it_was_asked_for() -> None:
    """It has the Secrets and the image of that time."""
    asked = replace(behind(), resource=replace(RESOURCE, restart="monday"))
    assert plan(asked).actions == (END,)


def test_one_of_another_version_that_took_the_lease_is_drained_and_never_the_named_driver() -> None:
    found = behind(ONE, second(report=WORKS), driver=gone(), spec=wanted(**ALWAYS, batch={"intervalSeconds": 9}))
    made = plan(replace(found, observed=replace(found.observed, executors=())))
    assert (made.actions, made.status.driver.pod) == ((END,), None)


STOPS: dict[str, dict[str, Any]] = {
    "suspend": {"suspend": True},
    "scale": {"replicas": 0},
    "position": {"position": {"id": "one", "to": {"trimHorizon": True}}},
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_or_a_move_ends_both(stop: str) -> None:
    """A standby would take the lease that the driver releases."""
    made = plan(behind(spec=wanted(**ALWAYS, **STOPS[stop])))
    assert {END, DeletePod("orders-driver-1", "driver-1")} == set(made.actions)
    assert not [each for each in made.actions if isinstance(each, CreateResetJob)]


def test_a_deletion_ends_both() -> None:
    made = plan(replace(behind(), resource=replace(RESOURCE, deleting=True)))
    assert set(made.actions) == {END, DeletePod("orders-driver-1", "driver-1")}


def test_without_always_the_standby_is_deleted_and_forgotten() -> None:
    now = wanted(rollout={"strategy": "Standby"})
    made = plan(behind(spec=now))
    assert (made.actions, made.status.driver.attempt) == ((END,), 1)
    after = plan(behind(ONE, driver(), spec=now))
    assert (after.actions, after.status.standby, after.status.condition("StandbyReady")) == ((), None, None)


def test_one_that_was_given_up_in_a_rollout_is_tried_again_after_it() -> None:
    memory = replace(ONE, state=StandbyState.GIVEN_UP, uid=None, reason="StandbyWithoutRoom")
    made = plan(behind(memory, driver()))
    assert (made.actions, state(made)) == ((CreateStandby(),), StandbyState.STARTING)


def test_driver_and_standby_get_the_same_number_of_executors() -> None:
    made = plan(behind(spec=wanted(**ALWAYS, replicas=4)))
    expected: list[Action] = [Retarget("orders-driver-1", "driver-1", 4), Retarget("orders-driver-2", "driver-2", 4)]
    assert list(made.actions) == expected


def test_while_the_resource_is_paused_nothing_is_made() -> None:
    made = plan(replace(alone(), resource=replace(RESOURCE, paused=True)))
    assert made.actions == ()


def test_a_driver_of_another_table_gets_none() -> None:
    """It would find a lease of its own there, and both would work."""
    assert plan(behind(None, driver(table_hash=None))).actions == ()


def test_a_driver_that_has_just_ended_is_not_passed_over() -> None:
    made = plan(behind(ONE, ended(137, "Killed"), second()))
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)
    assert (made.status.driver.attempt, made.status.driver.exit is not None) == (1, True)


def test_the_time_of_a_look_that_is_due_is_asked_for() -> None:
    made = plan(behind())
    assert made.wake is not None
    assert made.wake - NOW <= timedelta(seconds=90)


def test_a_standby_that_follows_a_driver_on_a_lost_node_is_not_called_a_standby_that_is_ready() -> None:
    """It works, and nobody stands behind it: the alert has to fire. In a rollout, and until it works, it is the standby that is ready."""
    left = Leaving(attempt=1, pod="orders-driver-1", uid="driver-1", why="StandbyFollows")
    hangs, takes = driver(gone_by=seconds(30)), second(report=STANDS)
    for pod, spec, expected in (
        (second(report=WORKS), SPEC, ("False", "StandbyAwaited")),
        (takes, SPEC, ("True", "Ready")),
        (second(report=WORKS), wanted(rollout={"strategy": "Standby"}), ("True", "Ready")),
    ):
        found = behind(None, hangs, pod, spec=spec, driver=attempt(2, spec_hash=spec.driver_hash, leaving=left))
        assert told(plan(found)) == expected


def test_a_standby_that_the_api_server_refuses_delays_nothing_else() -> None:
    """A quota without room for two may refuse it for good. A driver that failed is replaced as without a standby, and nothing is stalled."""
    starts = replace(ONE, state=StandbyState.STARTING, uid=None)
    full = Observed(refusal=Trouble("ApiRefused", "exceeded quota: pods"), refused_until=seconds(30), standby_refused=True)
    made = plan(replace(behind(starts), observed=replace(full, drivers=(ended(1),))))
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)
    assert made.status.condition("Stalled") is None
    after = plan(replace(behind(starts, driver=gone()), observed=full))
    assert (after.actions, after.status.condition("Stalled")) == ((CreateDriver(),), None)
    waits = plan(replace(behind(starts), observed=replace(full, drivers=(driver(),), executors=EXECUTORS)))
    assert (waits.actions, told(waits)) == ((), ("False", "ApiRefused"))


def test_what_is_refused_beside_a_standby_is_not_repeated_before_its_time() -> None:
    """A policy that denies patches of pods: the number of executors would be sent each second, for as long as no standby is there."""
    starts = replace(ONE, state=StandbyState.STARTING, uid=None)
    denied = Observed(refusal=Trouble("ApiRefused", "denied"), refused_until=seconds(30), drivers=(driver(target="1"),), executors=EXECUTORS)
    made = plan(replace(behind(starts), observed=denied))
    assert made.actions == ()
    assert made.status.condition("Stalled") is not None


def denied(*pods: Pod, one: StandbyStatus = ONE, spec: Any = SPEC) -> View:
    answer = {"refusal": Trouble("ApiRefused", "denied by theirs"), "refused_until": seconds(30), "standby_refused": True}
    return replace(behind(one, spec=spec), observed=Observed(drivers=pods, executors=EXECUTORS, **answer))  # type: ignore[arg-type]  # a dict of both


def test_a_standby_that_may_not_be_changed_stalls_nothing_and_says_so() -> None:
    """It is a spare. Its number of executors is not what the consumer waits for, and the driver is given its own meanwhile."""
    four = wanted(**ALWAYS, replicas=4)
    for driver_has, does in (("4", ()), ("2", (Retarget("orders-driver-1", "driver-1", 4),))):
        made = plan(denied(driver(target=driver_has), second(), spec=four))
        assert (made.actions, made.status.condition("Stalled")) == (does, None)
        ready = made.status.condition("StandbyReady")
        assert ready is not None
        assert (ready.status, "a change of it was refused: denied by theirs. Grant the permission" in ready.message) == ("True", True)
        assert [event.message for event in made.events if event.reason == "ApiRefused"] == [ready.message]
        assert not [
            event for event in plan(replace(denied(driver(), second(), spec=four), status=made.status)).events if event.reason == "ApiRefused"
        ]
    assert Retarget("orders-driver-2", "driver-2", 4) in plan(replace(denied(driver(), second(), spec=four), now=seconds(30))).actions
    done = plan(denied(driver(), second())).status.condition("StandbyReady")
    assert done is not None
    assert "refused" not in done.message


def test_a_standby_that_may_not_be_replaced_stalls_nothing_unless_another_driver_waits_for_its_end() -> None:
    """A stop or a rollout does not come to its end without it; the driver that works does not need it."""
    slow = replace(ONE, state=StandbyState.BACKING_OFF, reason="StandbyNotReady", message="was not ready")
    made = plan(denied(driver(), second(), one=slow))
    assert (made.actions, made.status.condition("Stalled"), told(made)) == ((), None, ("False", "StandbyNotReady"))
    ready = made.status.condition("StandbyReady")
    assert ready is not None
    assert "denied by theirs" in ready.message
    for spec in (wanted(**ALWAYS, batch={"intervalSeconds": 9}), wanted(**ALWAYS, suspend=True)):
        waits = replace(denied(driver(), second(), spec=spec), observed=replace(denied(driver(), second()).observed, standby_refused=False))
        assert plan(waits).status.condition("Stalled") is not None


@pytest.mark.parametrize(
    ("action", "spec", "spare"),
    [
        (CreateStandby(), SPEC, True),
        (Retarget("orders-driver-2", "driver-2", 4), SPEC, True),
        (Retarget("orders-driver-1", "driver-1", 4), SPEC, False),
        (END, SPEC, True),
        (END, wanted(**ALWAYS, batch={"intervalSeconds": 9}), False),
        (END, wanted(**ALWAYS, suspend=True), False),
        (END, wanted(**ALWAYS, position={"id": "one", "to": {"trimHorizon": True}}), False),
        (DeletePod("orders-driver-1", "driver-1"), SPEC, False),
        (CreateDriver(), SPEC, False),
    ],
)
def test_what_concerns_only_a_spare(action: Action, spec: Any, spare: bool) -> None:  # noqa: FBT001 - pytest passes names
    assert is_spare(behind(spec=spec), action) is spare


def test_a_standby_that_was_never_created_is_forgotten_with_its_driver() -> None:
    """The next driver has a later number. A standby of an earlier one would give numbers out for a second time when it follows."""
    starts = replace(ONE, state=StandbyState.STARTING, uid=None)
    third = driver(name="orders-driver-3", uid="driver-3", attempt=3)
    found = behind(starts, third, driver=attempt(3, spec_hash=SPEC.driver_hash))
    made = plan(replace(found, observed=Observed(drivers=(third,))))
    assert made.status.standby is not None
    assert (made.status.standby.attempt, made.actions) == (4, (CreateStandby(),))


def test_one_that_does_not_go_away_is_not_said_to_have_ended_and_no_next_one_is_promised_for_a_time_that_is_over() -> None:
    stays = replace(ONE, state=StandbyState.BACKING_OFF, reason="StandbySilent", message="orders-driver-2 reports no longer", next_at=seconds(10))
    hangs = (driver(reported_at=seconds(20)), second(gone_by=seconds(30)))
    early, late = behind(stays, *hangs), replace(behind(stays, *hangs), now=seconds(20))
    said = [made.message for view_ in (early, late) if (made := plan(view_).status.condition("StandbyReady")) is not None]
    assert [each.startswith("orders-driver-2 ends, and the driver continues") for each in said] == [True, True]
    assert ["the next one starts at" in each for each in said] == [True, False]


@pytest.mark.parametrize("rollout", [{"strategy": "Standby"}, {}])
def test_one_that_works_is_the_driver_though_none_is_asked_for_any_more(rollout: dict[str, str]) -> None:
    """The driver's node is lost. Without Always the standby is deleted; but this one is the only one that works, with what the spec asks for."""
    found = behind(ONE, driver(reported_at=seconds(-60)), second(report=WORKS), spec=wanted(rollout=rollout))
    made = plan(found)
    assert (made.status.driver.attempt, made.status.standby) == (2, None)
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)
    silent = plan(replace(found, observed=replace(found.observed, drivers=(driver(), second(report=WORKS, reported_at=seconds(-95))))))
    assert (silent.status.driver.attempt, silent.actions) == (1, (END,))
    other = plan(behind(replace(ONE, spec_hash="another"), driver(), second(report=WORKS), spec=wanted(rollout=rollout)))
    assert (other.status.driver.attempt, other.actions) == (1, (END,))
