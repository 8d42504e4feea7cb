"""What a driver pod that nobody has to do anything about says about itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.model import Phase, counted
from sluice_operator.view import Step, progress

if TYPE_CHECKING:
    from sluice_operator.model import Pod, Report
    from sluice_operator.view import View

STALE = timedelta(seconds=90)  # drivers report at least every 30 s
UNHEARD = "{} has not reported yet"  # from before it is made until it reports: steps in between have words of their own if one does not go well
PHASES = {"Running": Phase.RUNNING, "Idle": Phase.IDLE, "Draining": Phase.DRAINING}


def running(view: View) -> Step:
    """Pending, starting, waiting out a lease, consuming, silent: in that order of a driver's life."""
    pod = view.driver_pod
    if pod is None:
        return _nobody(view)
    if pod.exit:  # nobody may bury it while the resource is paused
        return progress(Phase.PENDING, pod.exit.reason, f"{pod.name} ended: {pod.exit.message}")
    if pod.trouble:
        return progress(Phase.STARTING, pod.trouble.reason, f"{pod.name}: {pod.trouble.message}")
    if pod.report is None:
        return progress(Phase.STARTING, "DriverStarting", UNHEARD.format(pod.name))
    heard = view.heard
    if view.now - heard >= STALE:
        text = f"no report from {pod.name} since {heard:%H:%M:%S}Z"
        return Step(phase=PHASES.get(pod.report.phase, Phase.STARTING), reason="ReportStale", message=text)
    return replace(_reported(view, pod, pod.report), wake=heard + STALE)


def _nobody(view: View) -> Step:
    left = view.driver.leaving
    if left is not None and view.leaving_pod is not None:
        return progress(Phase.DRAINING, left.why, f"{left.pod} ends its work")
    return progress(Phase.PENDING, "NoDriver", "no driver runs")


def _reported(view: View, pod: Pod, report: Report) -> Step:
    if report.phase == "WaitingOutLease":
        until = f" until {report.deadline}" if report.deadline else ""
        text = f"{pod.name} waits{until}: the driver before it did not release its lease"
        return progress(Phase.STARTING, "WaitingOutLease", text)
    if report.phase == "Starting":
        return progress(Phase.STARTING, "DriverStarting", f"{pod.name} starts Spark")
    if not report.holds_all:
        text = f"{pod.name} is {report.phase}, {report.held_shards} of {report.open_shards + report.ended_shards} shards held"
        return progress(PHASES.get(report.phase, Phase.STARTING), "TakingOver", text)
    return _consuming(view, report)


def _consuming(view: View, report: Report) -> Step:
    target = view.wanted.spec.replicas if view.wanted else report.executors
    phase = PHASES[report.phase]
    step = Step(phase=phase, reason="CaughtUp" if phase is Phase.IDLE else "Consuming", ready=True)
    if view.status.draining:
        names = ", ".join(drain.pod for drain in view.status.draining)
        return replace(step, message=f"{names} ends its tasks", progressing=True)
    have = view.status.replicas
    if have != target:
        trouble = next((pod.trouble.message for pod in view.observed.executors if pod.trouble), "")
        return replace(step, message=f"{counted(have, 'executor')}, {target} wanted. {trouble}".strip(), progressing=True)
    return replace(step, message=f"{counted(report.open_shards, 'open shard')}, {counted(have, 'executor')}")
