"""How long the answer of the API server to an action is remembered: until the same is accepted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from plan.test_failover import END, ONE, behind
from plan.views import driver, seconds

from sluice_operator.run.refusals import action_accepted
from sluice_operator.run.shared import ReconcileContext, Refusal, key_of
from sluice_operator.state.actions import Action, CreateStandby, Retarget
from sluice_operator.state.objects import Trouble
from sluice_operator.state.view import View

OF_DRIVER, OF_STANDBY = Retarget("orders-driver-1", "driver-1", 3), Retarget("orders-driver-2", "driver-2", 3)


def is_kept(view: View, *actions: Action, standby: bool = True) -> bool:
    known = {key_of(view): Refusal(Trouble("ApiRefused", "denied"), 1, seconds(30), standby)}
    action_accepted(cast("ReconcileContext", SimpleNamespace(refusals=known)), view, actions)
    return bool(known)


def test_what_the_driver_is_given_says_nothing_of_its_standby() -> None:
    """`spec.autoscale` scales the driver every minute. The standby's number is asked for every 30 s, and its refusal is told once."""
    assert is_kept(behind(), OF_DRIVER)


@pytest.mark.parametrize("action", [OF_STANDBY, END, CreateStandby()])
def test_a_refusal_about_a_standby_is_over_when_something_of_it_is_accepted(action: Action) -> None:
    assert not is_kept(behind(), OF_DRIVER, action)


def test_any_other_refusal_is_over_with_the_next_action_that_is_accepted() -> None:
    assert not is_kept(behind(), OF_DRIVER, standby=False)
    assert not is_kept(behind(None, driver()), OF_DRIVER)
    assert ONE.uid == OF_STANDBY.uid
