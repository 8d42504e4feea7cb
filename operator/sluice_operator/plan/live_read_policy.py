"""Which plans need a live read of the cluster, and how old a live read may get. Pure.

The cache may be minutes old, and a watch that was interrupted does not show deletions. So actions are planned from a live read.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan.write_policy import number, urgent
from sluice_operator.state.status import Phase

if TYPE_CHECKING:
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.status import Status
    from sluice_operator.state.view import View

SILENT = "ReportStale"
UNSETTLED = timedelta(seconds=30)  # while something is under way: a watch may have missed its end
RESYNC = timedelta(minutes=5)
RESYNC_RATE = 1  # live reads a second, of all settled resources together: from 301 on, each is read less often than every 5 min
LOOKS_RATE = 4  # live reads a second, of all unsettled resources together: from 121 on, each is read less often than every 30 s
SETTLED = {Phase.RUNNING, Phase.IDLE, Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED}


def max_age(phase: Phase, resources: int) -> timedelta:
    """How old the last live read of a resource in this phase may get, whatever the watches show."""
    if phase in SETTLED:
        return max(RESYNC, timedelta(seconds=resources / RESYNC_RATE))
    return min(RESYNC, max(UNSETTLED, timedelta(seconds=resources / LOOKS_RATE)))


def needs_live_read(view: View, intent: Plan) -> bool:
    """Whether a plan that was made from the cache has to be made again from a live read."""
    if any(pod.unlisted for pod in view.observed.drivers) or _may_have_left(view):  # no watch says when it is gone
        return True
    return _falls_silent(view.status, intent.status) or not (_only_figures(view.status, intent) or _only_driver_progress(view, intent))


def _may_have_left(view: View) -> bool:
    """Whether executors that no watch shows are more than work, as the driver reports."""
    pod, there = view.driver_pod, view.own_executors
    return pod is not None and pod.report is not None and pod.report.executors < len(there) and any(pod_there.unlisted for pod_there in there)


def _falls_silent(old: Status, new: Status) -> bool:
    """Whether a driver counts as silent from now on. The watches may not show its pod any more: somebody took its label off."""
    before, after = (status.condition("DriverHealthy") for status in (old, new))
    return after is not None and after.reason == SILENT and (before is None or before.reason != SILENT)


def _only_figures(old: Status, intent: Plan) -> bool:
    return not intent.actions and _without_figures(old, intent.status) == old and not urgent(old, intent.status)


def _without_figures(old: Status, new: Status) -> Status:
    """The new status, with the old values of all that a report moves."""
    since = old.progressing_since
    new = replace(new, stream=old.stream, versions=old.versions, conditions=old.conditions, draining=old.draining, replicas=old.replicas)
    new = replace(new, progressing_since=since)
    return replace(new, autoscale=old.autoscale) if number(old) == number(new) else new


def _only_driver_progress(view: View, intent: Plan) -> bool:
    """Whether the difference is only the progress of a driver whose pod the watches show alive.

    No action follows, and nothing is concluded from what the watches do not show. The write fails if the resource has changed since.
    """
    pod, old, new = view.driver_pod, view.status, intent.status
    same = replace(
        _without_figures(old, new),
        phase=old.phase,
        observed_generation=old.observed_generation,
        driver=replace(new.driver, uid=old.driver.uid, started_at=old.driver.started_at, generation=old.driver.generation),
    )
    alive = pod is not None and not pod.deleting and pod.exit is None and not pod.finished
    return alive and not intent.actions and same == old
