"""One row of the planner's table, and what of a plan it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.plan.rules import plan

if TYPE_CHECKING:
    from sluice_operator.state.actions import Action
    from sluice_operator.state.status import Phase
    from sluice_operator.state.view import View

Health = tuple[str | None, str | None]  # the status of the conditions Reconciling and Stalled; None: the condition is absent
GOING, SETTLED, STUCK = ("True", None), (None, None), (None, "True")


@dataclass(frozen=True)
class PlanShown:
    """What users and the API server see of a plan; `reason`, `message` and `ready` are those of the condition Ready."""

    phase: Phase
    reason: str
    message: str
    actions: tuple[Action, ...]
    ready: str
    health: Health


@dataclass(frozen=True)
class Row:
    rule: str
    sentence: str
    view: View
    plan: PlanShown

    def __str__(self) -> str:
        return f"{self.rule}: {self.sentence}"


def add(
    rows: list[Row],
    rule: str,
    sentence: str,
    view: View,
    says: tuple[Phase, str, str],
    *actions: Action,
    ready: str = "False",
    health: Health = GOING,
) -> None:
    """Add a row to a table. `says` is phase, reason and message."""
    rows.append(Row(rule, sentence, view, PlanShown(*says, actions, ready, health)))


def shown(view: View) -> PlanShown:
    planned = plan(view)
    ready, reconciling, stalled = (planned.status.condition(kind) for kind in ("Ready", "Reconciling", "Stalled"))
    assert ready is not None
    health = (reconciling.status if reconciling else None, stalled.status if stalled else None)
    return PlanShown(planned.status.phase, ready.reason, ready.message, planned.actions, ready.status, health)
