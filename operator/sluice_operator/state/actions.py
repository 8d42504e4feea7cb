"""What the operator may do, as frozen values; `apply` has one function for each.

A plan is printable and comparable: that is what a dry run shows and a test expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.state.seats import ClearSeat, EndSeat, PutSeat

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import Status


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Before anything is created for the resource."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Nothing of the resource runs any more."""


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Create the driver pod that `status.driver` names."""


@dataclass(frozen=True, slots=True)
class CreateStandby:
    """Create the driver pod that `status.standby` names."""


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Create the Job that `status.migration` names."""


@dataclass(frozen=True, slots=True)
class CreateResetJob:
    """Create the Job that `status.position` names."""


@dataclass(frozen=True, slots=True)
class DeletePod:
    """`grace` in seconds. None: the pod's own grace period, a drain. 0: a pod on a lost node that the user gave up."""

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
    """Write the wanted number of executors to the running driver's pod."""

    pod: str
    uid: str
    executors: int


OfSeat = PutSeat | EndSeat | ClearSeat
Action = AddFinalizer | RemoveFinalizer | CreateDriver | CreateStandby | CreateJob | CreateResetJob | DeletePod | DeleteJob | Retarget | OfSeat


@dataclass(frozen=True, slots=True)
class EventToSend:
    """What `kubectl describe` shows; `warning` decides the type. With `after` it is sent as soon as that action has succeeded, and not before.

    `ended`: a driver ended unasked, for this reason, and is to be counted.
    """

    reason: str
    message: str
    warning: bool = False
    after: Action | None = None
    ended: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Write `status`, take `actions` in order, send `events`, and reconcile again at `wake` at the latest.

    If the plan only waits for the driver's silence, a report puts `wake` off, but never beyond `look_by`.
    """

    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[EventToSend, ...] = ()
    wake: datetime | None = None
    look_by: datetime | None = None
