"""The state of a driver on which no action is needed, from its pod and its report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import SILENT_SECONDS, clock, counted
from sluice_operator.state.objects import Trouble
from sluice_operator.state.status import Phase
from sluice_operator.state.view import Step, progress

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.objects import Pod, Report
    from sluice_operator.state.view import View

STALE = timedelta(seconds=SILENT_SECONDS)
SLACK = timedelta(seconds=30)  # from the end of a drain until its report is seen
UNHEARD = "{} has not reported yet"  # from its creation to its first report, unless its pod has trouble
PHASES = {"Running": Phase.RUNNING, "Idle": Phase.IDLE, "Draining": Phase.DRAINING}


def running(view: View) -> Step:
    """No driver, ended, trouble, starting, silent, or what its report says: the first that applies."""
    pod = view.driver_pod
    if pod is None:
        return _nobody(view)
    if pod.exit:  # its pod is not deleted while the resource is paused
        return progress(Phase.PENDING, pod.exit.reason, f"{pod.name} ended: {pod.exit.message}")
    if pod.trouble:
        return progress(Phase.STARTING, pod.trouble.reason, f"{pod.name}: {pod.trouble.message}")
    if pod.report is None:
        return progress(Phase.STARTING, "DriverStarting", UNHEARD.format(pod.name))
    heard = view.last_report_at
    if view.now - heard >= STALE:
        text = f"no report from {pod.name} since {clock(heard, view.now)}"
        return progress(PHASES.get(pod.report.phase, Phase.STARTING), "ReportStale", text)
    step = _reported(view, pod, pod.report)
    if pod.beside is not None:
        step = replace(step, message=f"{step.message}; another container of the pod is in {pod.beside.reason}: {pod.beside.message}")
    return replace(step, wake=heard + STALE, look_by=_look_by(view, pod.report))


def _look_by(view: View, report: Report) -> datetime | None:
    since = view.status.stream.batch_at if view.status.stream else None
    return since + view.deadline if since and report.open_batch is not None and view.now < since + view.deadline else None


def _nobody(view: View) -> Step:
    left = view.driver.leaving
    if left is not None and view.leaving_pod is not None:
        return progress(Phase.DRAINING, left.why, f"{left.pod} finishes its work")
    return progress(Phase.PENDING, "NoDriver", "no driver runs")


def _reported(view: View, pod: Pod, report: Report) -> Step:
    if report.phase == "WaitingOutLease":
        until = f" until {report.deadline:%Y-%m-%dT%H:%M:%SZ}" if report.deadline else ""
        text = f"{pod.name} waits{until}: the previous driver did not release its lease"
        return replace(progress(Phase.STARTING, "WaitingOutLease", text), due=report.deadline and report.deadline + SLACK)
    if report.stands_by:
        return progress(Phase.STARTING, "TakingOver", f"{pod.name} is ready, and waits until the lease is free")
    if report.phase == "Starting":
        return progress(Phase.STARTING, "DriverStarting", f"{pod.name} starts Spark")
    if not report.holds_all:
        text = f"{pod.name} is {report.phase}, {report.held_shards} of {report.open_shards + report.ended_shards} shards held"
        return progress(PHASES.get(report.phase, Phase.STARTING), "TakingOver", text)
    return _without_executors(view, report) or _with_one_batch(view, pod, report) or _consuming(view, report)


def _target(view: View, report: Report) -> int:
    return view.executors if view.wanted else report.executors


def trouble_of_executors(view: View) -> Trouble | None:
    """Why an executor's pod does not start; None: no pod says so."""
    return next((pod.trouble for pod in view.own_executors if pod.trouble), None)


def _without_executors(view: View, report: Report) -> Step | None:
    """The driver holds every shard, and no executor has registered: no record is read."""
    target = _target(view, report)
    if report.executors or not target:
        return None
    there = counted(len(view.own_executors), "executor pod")
    trouble = trouble_of_executors(view) or Trouble("ExecutorsPending", f"{there}, none of which has registered with Spark yet")
    return progress(Phase.STARTING, trouble.reason, f"no executor of {target} is ready: {trouble.message}")


def _with_one_batch(view: View, pod: Pod, report: Report) -> Step | None:
    """One batch for longer than the progress deadline: `process` hangs, or the deadline is too short for such batches."""
    since = view.status.stream.batch_at if view.status.stream else None
    if since is None or report.open_batch is None or view.now - since < view.deadline:
        return None
    text = f"{pod.name} has been working on batch {report.open_batch} since {since:%Y-%m-%dT%H:%M:%S}Z"
    return Step(phase=PHASES[report.phase], reason="BatchOverdue", message=text, stalled=True)


def _consuming(view: View, report: Report) -> Step:
    target = _target(view, report)
    phase = PHASES[report.phase]
    step = Step(phase=phase, reason="CaughtUp" if phase is Phase.IDLE else "Consuming", ready=True)
    if view.status.draining:
        names = ", ".join(drain.pod for drain in view.status.draining)
        due = max((drain.deadline + SLACK for drain in view.status.draining if drain.deadline), default=None)
        return replace(step, message=f"{names} finishes its tasks", progressing=True, due=due)
    have, trouble = report.executors, trouble_of_executors(view)
    if have != target or view.status.replicas > target:  # fewer pods than have registered: labels were changed, and the driver knows better
        return replace(step, message=short(have, target, trouble), reason=trouble.reason if trouble else step.reason, progressing=True)
    tasks = "tasks in the driver" if view.in_driver else counted(have, "executor")
    return replace(step, message=f"{counted(report.open_shards, 'open shard')}, {tasks}")


def short(have: int, target: int, trouble: Trouble | None) -> str:
    """Fewer executors than wanted, or more, in words."""
    return f"{counted(have, 'executor')} ready, {target} wanted" + (f": {trouble.message}" if trouble else "")
