"""The plan of any view: of a consumer with a driver of its own, of one in a pool, or of a pool. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.plan import rules
from sluice_operator.plan.pools import plan_pool
from sluice_operator.plan.seats import plan_member
from sluice_operator.state.seats import ALONE

if TYPE_CHECKING:
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.view import View


def plan(view: View) -> Plan:
    """The new status, actions and events for one view."""
    if view.members is not None:
        return plan_pool(view)
    return rules.plan(view) if view.seating == ALONE and view.driver.host is None else plan_member(view)
