"""What a version on trial is blamed for, and what it is not: faults of others, of AWS, and of the version before."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from plan.test_trial import BACK, BAD, GOOD, LEADS, RUNS_GOOD, TRYING, scene, second, spec, told, working
from plan.views import NOW, RESOURCE, attempt, driver, ended, seconds

from sluice_operator.plan.rules import plan
from sluice_operator.plan.trial_evidence import speed_of
from sluice_operator.state.actions import CreateStandby, DeletePod
from sluice_operator.state.objects import Trouble
from sluice_operator.state.serialization import dump_status
from sluice_operator.state.status import Exit, RestartStatus, StandbyStatus, TrialState

OF_AWS = ["ServiceUnavailable", "LostRace", "LeaseLost"]


@pytest.mark.parametrize("reason", OF_AWS)
def test_an_outage_of_aws_is_no_fault_of_a_version(reason: str) -> None:
    assert told(scene(pod=replace(second(), exit=ended(1, reason).exit))).state is TrialState.RUNNING


def test_a_correction_that_follows_a_rollback_at_once_is_on_trial() -> None:
    restarts = RestartStatus(count=1, reason="Failed", message="sink is full", next_at=seconds(-5))
    starting = replace(second(report=None), name="orders-driver-3", uid="driver-3")
    one = told(scene(BACK, starting, spec("other"), running=attempt(3, spec_hash=GOOD.driver_hash), restarts=restarts))
    assert (one.hash, one.state) == (spec("other").driver_hash, TrialState.RUNNING)


def test_a_proven_version_that_searches_for_a_record_is_no_way_back() -> None:
    """The deploy is perhaps the repair. The next driver continues that search, so its report would be held against it."""
    searches = driver(report=replace(LEADS, warnings=("Isolating: batch 42, attempt 3",)))
    one = told(scene(None, searches, running=RUNS_GOOD))
    assert (one.state, one.reason) == (TrialState.FORWARD, "FormerFails")
    assert "batch 42" in one.message


@pytest.mark.parametrize(("rate", "busy"), [(1.7e308, 0.5), (1e300, 1e-300), (-5.0, 1.0)])
def test_figures_that_no_driver_measures_are_no_speed(rate: float, busy: float) -> None:
    """Anybody who may annotate the pod writes them. An infinite number in a status would be refused by the API server."""
    pod = driver(report=replace(LEADS, records_per_second=rate, busy=busy))
    assert speed_of(replace(LEADS, records_per_second=rate, busy=busy)) is None
    json.dumps(dump_status(plan(scene(None, pod, running=RUNS_GOOD)).status), allow_nan=False)


def test_a_version_that_no_pod_was_made_of_is_rolled_back_with_the_words_of_the_api_server() -> None:
    found = scene(replace(TRYING, base=None, worked=130), None, running=attempt(2, uid=None, spec_hash=BAD.driver_hash))
    refused = replace(found.observed, refusal=Trouble("Forbidden", "exceeded quota: drivers"), refused_until=seconds(60))
    one = told(replace(found, observed=refused))
    assert (one.state, one.reason) == (TrialState.ROLLED_BACK, "Forbidden")
    assert "exceeded quota" in one.message


def test_a_version_whose_executors_do_not_start_is_rolled_back_with_their_words() -> None:
    found = scene(replace(TRYING, worked=130), working(40, executors=0))
    stuck = tuple(replace(pod, phase="Pending", trouble=Trouble("Unschedulable", "0/3 nodes have 64 GiB")) for pod in found.observed.executors)
    one = told(replace(found, observed=replace(found.observed, executors=stuck)))
    assert (one.state, one.reason) == (TrialState.ROLLED_BACK, "Unschedulable")
    assert "64 GiB" in one.message


def test_a_proven_version_that_works_where_the_other_could_not_start_settles_the_blame() -> None:
    never = told(scene(replace(TRYING, base=None, worked=130), second(report=None, trouble=Trouble("ImagePullBackOff", "no such image"))))
    works = replace(working(41, phase="Idle"), name="orders-driver-3", uid="driver-3")
    running = attempt(3, spec_hash=GOOD.driver_hash)
    back = told(scene(never, works, running=running))
    assert (back.state, back.passed) == (TrialState.ROLLED_BACK, True)
    later = told(scene(back, replace(works, exit=ended(1).exit), running=running))
    assert later.state is TrialState.ROLLED_BACK


def test_a_proven_version_that_works_has_not_passed_while_the_other_failed_at_a_batch() -> None:
    """It gets that batch next, and may fail as well."""
    failed = told(scene(TRYING, replace(working(), exit=ended(1).exit)))
    works = replace(working(40), name="orders-driver-3", uid="driver-3")
    running = attempt(3, spec_hash=GOOD.driver_hash)
    back = told(scene(failed, works, running=running))
    assert (back.state, back.passed) == (TrialState.ROLLED_BACK, False)
    assert told(scene(back, replace(works, exit=ended(1).exit), running=running)).state is TrialState.FORWARD


def test_a_version_whose_failed_pod_is_gone_at_once_has_still_failed_at_a_batch() -> None:
    """Somebody deleted the pod, and only its exit was seen. The proven version has to get past that batch, and may fail as well."""
    found = scene(replace(TRYING, worked=30, led_from=20), None, running=attempt(2, spec_hash=BAD.driver_hash))
    exits = {"driver-2": Exit(code=1, reason="Failed", message="sink is full", at=NOW)}
    failed = told(replace(found, observed=replace(found.observed, exits=exits)))
    assert (failed.state, failed.led_from) == (TrialState.ROLLED_BACK, 20)
    works = replace(working(40), name="orders-driver-3", uid="driver-3")
    back = told(scene(failed, works, running=attempt(3, spec_hash=GOOD.driver_hash)))
    assert (back.state, back.passed) == (TrialState.ROLLED_BACK, False)


NO_SECRET = Trouble("CreateContainerConfigError", 'secret "orders-1" not found')


@pytest.mark.parametrize(("worked", "state"), [(59, TrialState.ROLLED_BACK), (60, TrialState.FORWARD)])
def test_a_proven_version_whose_secret_is_gone_is_not_waited_for(worked: int, state: TrialState) -> None:
    """Whoever renames Secrets with each deploy has deleted the former one. Nothing is read until the version of the spec runs again."""
    pod = replace(second(report=None, trouble=NO_SECRET), name="orders-driver-3", uid="driver-3")
    one = told(scene(replace(BACK, worked=worked), pod, running=attempt(3, spec_hash=GOOD.driver_hash)))
    assert one.state is state
    assert state is TrialState.ROLLED_BACK or (one.reason, 'secret "orders-1" not found' in one.message) == ("FormerFails", True)


def test_a_standby_of_a_proven_version_whose_secret_is_gone_is_not_waited_for() -> None:
    one = StandbyStatus(attempt=3, pod="orders-driver-3", uid="driver-3", spec_hash=GOOD.driver_hash, since=seconds(-60))
    asked, former = spec(strategy="Standby"), spec("good", strategy="Standby")
    slow = replace(BACK, reason="TooSlow", worked=60)
    found = scene(slow, working(), asked, former=former, running=attempt(2, spec_hash=BAD.driver_hash), standby=one)
    stuck = replace(second(report=None, trouble=NO_SECRET), name="orders-driver-3", uid="driver-3", attempt=3)
    made = plan(replace(found, observed=replace(found.observed, drivers=(*found.observed.drivers, stuck))))
    assert made.status.trial is not None
    assert (made.status.trial.state, made.status.driver.attempt) == (TrialState.FORWARD, 2)
    assert made.actions == (DeletePod("orders-driver-3", "driver-3"),)


def test_a_new_version_may_wait_for_its_secret_as_long_as_its_trial_lasts() -> None:
    """It was applied together with the deploy, and another controller makes it."""
    pod = second(report=None, trouble=NO_SECRET)
    assert [told(scene(replace(TRYING, base=None, worked=worked), pod)).state for worked in (129, 130)] == [
        TrialState.RUNNING,
        TrialState.ROLLED_BACK,
    ]


SLOW = {"batches": 3, "seconds": 120, "maxSlowdown": 2}


def test_a_start_is_no_measure_of_speed() -> None:
    """The first batches wait for executors and for Python. The figures are judged 90 s after the driver has every shard, whatever its start took."""

    def after(worked: int, rate: float) -> TrialState | None:
        one = replace(TRYING, speed=1000.0, executors=2, worked=worked, led_from=60)
        found = plan(scene(one, working(43, records_per_second=rate, busy=1.0), spec(trial=SLOW), former=spec("good", trial=SLOW))).status.trial
        return found.state if found else None

    assert after(149, 400.0) is TrialState.RUNNING  # its batches are there, so it is not too late
    assert after(150, 400.0) is TrialState.ROLLED_BACK
    assert after(150, 600.0) is None


def test_each_driver_of_a_version_has_to_warm_up() -> None:
    assert told(scene(replace(TRYING, worked=30), working())).led_from == 30
    assert told(scene(replace(TRYING, worked=70, led_from=30), working())).led_from == 30
    assert told(scene(replace(TRYING, worked=70, led_from=30), second(report=None))).led_from == 70
    assert told(scene(replace(TRYING, worked=70), second(report=None))).led_from is None


def test_pauses_between_batches_are_no_work() -> None:
    """With a batch every quarter of an hour, three of them take half an hour. The driver says Running all the while."""
    quarterly, former = spec(batch={"intervalSeconds": 900}), spec("good", batch={"intervalSeconds": 900})
    for worked, state in ((130 + 899, TrialState.RUNNING), (130 + 900, TrialState.ROLLED_BACK)):
        one = replace(TRYING, hash=quarterly.driver_hash, worked=worked)
        running = attempt(2, spec_hash=quarterly.driver_hash)
        assert told(scene(one, working(41), quarterly, former=former, running=running)).state is state


def test_a_version_that_searches_for_a_record_is_stopped_at_once() -> None:
    """Also with `Standby`: until the proven version is ready, it would put good records aside."""
    asked, former = spec(strategy="Standby"), spec("good", strategy="Standby")
    searching = working(41, warnings=("Isolating: batch 42, attempt 3",))
    made = plan(scene(pod=searching, asked=asked, former=former))
    assert made.status.trial is not None
    assert made.status.trial.state is TrialState.ROLLED_BACK
    assert made.actions == (DeletePod("orders-driver-2", "driver-2"),)
    again = plan(scene(made.status.trial, searching, asked, former=former, resource=replace(RESOURCE, restart="two")))
    assert again.actions == (CreateStandby(),)


@pytest.mark.parametrize("made", [True, False])
def test_a_standby_without_room_costs_a_version_no_time(made: bool) -> None:  # noqa: FBT001 - pytest passes names
    """Two drivers need more room than one. The rollout continues as `Recreate`, and the version is judged there."""
    one = StandbyStatus(attempt=2, pod="orders-driver-2", uid="driver-2" if made else None, spec_hash=BAD.driver_hash, since=seconds(-60))
    found = scene(TRYING, driver(report=LEADS), spec(strategy="Standby"), former=spec("good", strategy="Standby"), running=RUNS_GOOD, standby=one)
    full = Trouble("Unschedulable", "0/3 nodes are available") if made else Trouble("Forbidden", "exceeded quota: drivers")
    beside = (second(report=None, trouble=full),) if made else ()
    waiting = replace(found.observed, drivers=(*found.observed.drivers, *beside), refusal=None if made else full)
    assert told(replace(found, observed=waiting)).working_since is None
    alone = replace(found.observed, drivers=(*found.observed.drivers, second(report=None)))
    assert told(replace(found, observed=alone)).working_since is not None
