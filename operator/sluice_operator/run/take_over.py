"""Add the finalizer to a new resource: the one action that is taken before there is a status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.apply.execute import ActionContext, add_finalizer
from sluice_operator.cluster.port import Rejected
from sluice_operator.run.refusals import action_refused
from sluice_operator.run.shared import key_of
from sluice_operator.run.status_write import send_events
from sluice_operator.state.actions import AddFinalizer

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Json
    from sluice_operator.run.shared import ReconcileContext
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.view import View


def take_over(context: ReconcileContext, view: View, intent: Plan) -> Json | None:
    """Add the finalizer, if that is the plan and the resource is still as it was seen.

    Returns:
        The resource as it is then: the answer to the write saves a read. None if no finalizer was added.

    Raises:
        Conflict: the resource has changed since.
    """
    if intent.actions != (AddFinalizer(),):
        return None
    try:
        body = add_finalizer(ActionContext(context.cluster, view, context.settings))
    except Rejected as error:
        action_refused(context, view, AddFinalizer(), error)
        return None
    context.refusals.pop(key_of(view), None)
    send_events(context, view, intent)
    return body
