"""The progress deadline: what is under way for too long is Stalled, as a Deployment's ProgressDeadlineExceeded. Pure.

Only the conditions change; the actions continue. Time counts from the latest of three moments: the resource was last as its spec asks, the spec was
changed, or the migration or a move of positions ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.state.status import MigrationState, PositionState
from sluice_operator.state.view import NEVER

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import Status
    from sluice_operator.state.view import Step, View


def limited(before: Status, view: View, step: Step) -> Step:
    """The step, stalled if its time is over.

    Args:
        before: the status as it is stored.
        view: its status has what was observed.
        step: what was decided.
    """
    if not step.progressing or step.due == NEVER:
        return step
    since = _since(before, view)
    due = max(since + view.deadline, step.due or since)
    if view.now < due:
        return replace(step, since=since, wake=min(step.wake or due, due))
    text = f"{step.message}; not done within {view.deadline.total_seconds():.0f} s (spec.progressDeadlineSeconds)"
    return replace(step, since=since, progressing=False, stalled=True, message=text)


def is_over(view: View) -> bool:
    """Whether what is under way has been so for longer than the deadline, by the stored status. A new spec has the whole deadline."""
    since, seen = view.status.progressing_since, view.status.observed_generation == view.resource.generation
    return since is not None and seen and view.now >= since + view.deadline


def _since(before: Status, view: View) -> datetime:
    edited = before.observed_generation != view.resource.generation
    migrated = view.migrated and (before.migration is None or before.migration.state is not MigrationState.COMPLETE)
    moved = _is_moved(view.status) and not _is_moved(before)
    return view.now if before.progressing_since is None or edited or migrated or moved else min(before.progressing_since, view.now)


def _is_moved(status: Status) -> bool:
    return status.position is not None and status.position.state in {PositionState.COMPLETE, PositionState.REFUSED}
