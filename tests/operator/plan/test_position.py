"""Moves of positions by one view: when one counts as overdue, and when it is tried again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from plan.views import MOVING, NOW, RESOURCE, gone, job, position, seconds, view, wanted

from sluice_operator.plan.events import Reason
from sluice_operator.plan.rules import plan
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.state.actions import CreateResetJob, DeleteJob, Plan
from sluice_operator.state.objects import Observed, Resource
from sluice_operator.state.status import PositionState, PositionStatus, Status

HOURS = timedelta(hours=2)
PAUSED = replace(RESOURCE, paused=True)


def planned(move: PositionStatus, later: timedelta = timedelta(), spec: DesiredSpec = MOVING, resource: Resource = RESOURCE) -> Plan:
    status = Status(observed_generation=1, driver=gone(), position=move)
    return plan(replace(view(spec=spec, status=status, observed=Observed(), resource=resource), now=NOW + later))


def resting(**fields: Any) -> DesiredSpec:
    return wanted(**{"position": MOVING.raw["position"], **fields})


@pytest.mark.parametrize("state", [PositionState.RUNNING, PositionState.LOST, PositionState.FAILING], ids=str)
@pytest.mark.parametrize(
    ("spec", "resource"),
    [(resting(suspend=True), RESOURCE), (MOVING, PAUSED)],
    ids=["suspended", "paused"],
)
def test_the_time_in_which_no_driver_is_wanted_does_not_count(state: PositionState, spec: DesiredSpec, resource: Resource) -> None:
    """After two hours in which a person repaired what was wrong, the move is tried again: else a driver would read from where it was."""
    move = position(state=state, since=seconds(-60), next_at=seconds(10), message="boom")
    rested = planned(move, spec=spec, resource=resource).status.position
    assert rested is not None
    assert planned(rested, HOURS / 2, spec, resource).status.position == rested
    resumed = planned(rested, HOURS)
    assert resumed.actions == (CreateResetJob(),)
    assert resumed.status.position is not None
    assert (resumed.status.position.state, resumed.status.position.since) == (PositionState.RUNNING, NOW + HOURS)


def test_without_replicas_a_move_is_tried_for_as_long_as_that_lasts() -> None:
    move = position(state=PositionState.LOST, since=seconds(-60), next_at=seconds(10), message="boom")
    for late in (timedelta(minutes=1), HOURS):
        tried = planned(move, late, resting(replicas=0))
        assert tried.actions == (CreateResetJob(),)
        assert tried.status.position is not None
        move = replace(tried.status.position, state=PositionState.LOST, next_at=seconds(70))


def test_a_move_of_an_operator_that_kept_no_time_is_given_up_as_well() -> None:
    first = planned(position(since=None)).status.position
    assert first is not None
    assert first.since == NOW
    late = planned(first, timedelta(seconds=600)).status.position
    assert late is not None
    assert late.state is PositionState.REFUSED


def test_a_move_that_another_one_replaces_is_stopped_before_that_begins() -> None:
    """Its Job was deleted by the operator, which tries it no more: "delayed" would announce another try."""
    first = planned(position(hash="of another"))
    assert first.status.position is not None
    assert (first.status.position.state, [event.reason for event in first.events]) == (PositionState.STOPPED, [Reason.RESET_STOPPED])
    following = planned(first.status.position)
    assert following.actions == (CreateResetJob(),)
    assert following.status.position is not None
    assert (following.status.position.state, following.status.position.hash) == (PositionState.RUNNING, position().hash)


def test_a_move_whose_job_would_run_something_else_by_now_is_tried_anew_at_once() -> None:
    """Its image was corrected, say."""
    stale = Status(observed_generation=1, driver=gone(), position=position(spec_hash="of another image"))
    runs = job(name=position().job, active=True)
    assert plan(view(spec=MOVING, status=stale, observed=Observed(jobs=(runs,)))).actions == (DeleteJob(runs.name, runs.uid),)


def test_all_tries_of_a_move_have_one_deadline() -> None:
    tried = planned(position(state=PositionState.LOST, since=seconds(-500), next_at=NOW)).status.position
    assert tried is not None
    assert (tried.tries, tried.since) == (2, seconds(-500))
