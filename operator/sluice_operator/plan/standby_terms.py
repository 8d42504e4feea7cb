"""Which standby may follow the driver, and why the operator stops or replaces one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.plan import position
from sluice_operator.state.actions import Action, CreateStandby, DeletePod, Retarget
from sluice_operator.state.status import StandbyState

if TYPE_CHECKING:
    from sluice_operator.state.status import StandbyStatus
    from sluice_operator.state.view import View

STAND = {StandbyState.STARTING, StandbyState.READY, StandbyState.SILENT}
SILENT, TOO_SLOW = "StandbySilent", "StandbyNotReady"  # why the operator replaces one that has not ended


def may_follow(view: View, standby: StandbyStatus) -> bool:
    """Whether it is the next driver: it is what the spec asks for, has not ended, and no move of positions comes first."""
    return view.is_meant(standby) and standby.state in STAND and position.asked(view) is None


def why_stopped(view: View, standby: StandbyStatus) -> str:
    """Why one that has not failed may not follow any more, in words of the spec."""
    cases = (  # the first that holds, and its words
        (view.stopped, "nothing of the consumer shall run"),
        (position.asked(view) is not None, "spec.position moves the positions first"),
        (view.wanted is None, "the spec is not valid, and nobody knows whether it may follow"),
        (view.wanted is not None and not view.wanted.is_hash(standby.spec_hash), "another version is wanted"),
        (standby.restart != view.restart, "a restart was requested after its start"),
    )
    return next((words for holds, words in cases if holds), "no standby is wanted now")


def is_spare(view: View, action: Action) -> bool:
    """Whether the action is about a standby, and nothing that the spec asks of the consumer waits for it.

    Its creation and its number of executors never are waited for. Its deletion is, once another driver, a move or a stop comes after it.
    """
    standby = view.status.standby
    if standby is None:
        return False
    if isinstance(action, CreateStandby):
        return True
    if isinstance(action, Retarget):
        return action.pod == standby.pod
    waits = view.outdated is not None or view.stopped or position.asked(view) is not None or view.driver_pod is None
    return isinstance(action, DeletePod) and action.name == standby.pod and not waits
