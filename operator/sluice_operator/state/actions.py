"""What the operator may do, as frozen values; `apply` has one function for each.

A plan is printable and comparable: that is what a dry run shows and a test expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import Status


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Take responsibility for the resource before anything is made for it."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the resource go; nothing of it runs any more."""


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Make the driver pod that `status.driver` names."""


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Make the Job that `status.migration` names."""


@dataclass(frozen=True, slots=True)
class DeletePod:
    """`grace` None is the pod's own period: a drain. 0 is for pods on lost nodes, when the user forced it."""

    name: str
    uid: str
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete the Job and, through the garbage collector, its pod."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Retarget:
    """Tell a running driver how many executors are wanted."""

    pod: str
    uid: str
    executors: int


Action = AddFinalizer | RemoveFinalizer | CreateDriver | CreateJob | DeletePod | DeleteJob | Retarget


@dataclass(frozen=True, slots=True)
class EventToSend:
    """What `kubectl describe` shows; `warning` decides the type. One of a `after_action` is told when that is done."""

    reason: str
    message: str
    warning: bool = False
    after_action: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Write `status`, then do `actions` in order, tell `events`, and look again at `wake` at the latest.

    A report puts `wake` off where only silence would be news, but never beyond `look_by`.
    """

    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[EventToSend, ...] = ()
    wake: datetime | None = None
    look_by: datetime | None = None
