"""`spec.autoscale` of one view: when a report may be judged, and what is remembered until then. `scaling` has the judgement. Pure.

A driver that is silent, starts, searches for a record, or waits for executors gives no figures to decide by. Then nothing is changed, and the reason
says so. Executors that do not come are waited for until the progress deadline. After it, no more are asked for, and the number may go down to those
that run. Reports are a tenant's: whatever they say, the number stays within the bounds that the spec has.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import clock
from sluice_operator.plan import deadline, scaling
from sluice_operator.plan.clocks import earlier
from sluice_operator.plan.running import STALE, short, trouble_of_executors
from sluice_operator.plan.scaling import ScaleBounds, ScaleFigures
from sluice_operator.state.status import AutoscaleStatus, ScaleSample, Status

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.objects import Pod, Report
    from sluice_operator.state.view import View

STEP = timedelta(seconds=60)  # from one decision to the next, at least: the window of a driver's `busy`
INTERVALS = 3  # of batches, if they are longer: that window too


def bounds_of(view: View) -> ScaleBounds | None:
    """`spec.autoscale`, if it is set."""
    asked = view.wanted.spec.autoscale if view.wanted else None
    if asked is None:
        return None
    return ScaleBounds(
        min=asked.min,
        max=asked.max,
        target_lag_seconds=asked.target_lag_seconds,
        cool_down_seconds=asked.cool_down_seconds,
        by_shards=asked.cap == "ActiveShards",
    )


def note(view: View) -> Status:
    """The memory of `spec.autoscale`, within its bounds, with no time that no clock would have written. It begins with the number that there is."""
    bounds, before = bounds_of(view), view.status.autoscale
    if bounds is None:
        return view.status if before is None else replace(view.status, autoscale=None)
    before = before or AutoscaleStatus(replicas=_present(view, bounds))
    until = earlier(before.ceiling_until, view.now + scaling.held_for(bounds))
    changed, quiet = earlier(before.changed_at, view.now), earlier(before.quiet_since, view.now)
    sample = before.sample and replace(before.sample, at=min(before.sample.at, view.now))
    return replace(
        view.status,
        autoscale=replace(before, replicas=bounds.within(before.replicas), changed_at=changed, quiet_since=quiet, ceiling_until=until, sample=sample),
    )


def _present(view: View, bounds: ScaleBounds) -> int:
    """The number that the driver has been given, so that setting the field changes nothing."""
    target = view.driver_pod.target if view.driver_pod else None
    return int(target) if target and target.isascii() and target.isdecimal() and len(target) < len(str(10**9)) else bounds.min


def step_time(view: View) -> timedelta:
    """The time from one decision to the next, at least."""
    return max(STEP, timedelta(seconds=INTERVALS * view.wanted.spec.batch.interval_seconds)) if view.wanted else STEP


def next_look(view: View, after: AutoscaleStatus) -> datetime:
    """When the figures are judged next. If that is overdue, an open batch or a report is waited for."""
    due = after.sample.at + step_time(view) if after.sample else view.now + STEP
    return due if due > view.now else view.now + STEP


def decide_scale(view: View) -> AutoscaleStatus | None:
    """The next memory; None without `spec.autoscale`, or without a driver. Nothing but its texts differs as long as nothing can be decided."""
    bounds, before, pod = bounds_of(view), view.status.autoscale, view.driver_pod
    if bounds is None or before is None or pod is None:
        return None
    if (why := _undecidable(view, pod, before)) is not None:
        return replace(before, reason=why[0], message=why[1], sample=None, quiet_since=None)
    assert pod.report is not None  # noqa: S101 - `_undecidable`
    here, late = _sample(view, pod.report), _overdue(view, pod.report, before)
    last = before.sample
    if last is None or (last.attempt, last.executors) != (here.attempt, here.executors):
        return replace(_begun(before, late), sample=here)
    if view.now < last.at + step_time(view) or not _has_news(pod.report, last):
        return before
    figures = _figures(view, pod.report, last)
    after = scaling.decide(before, last, figures, bounds) if late is None else scaling.decide_short(before, here.executors, late, figures, bounds)
    return after if after.replicas != before.replicas else replace(after, sample=here)


def _begun(before: AutoscaleStatus, late: str | None) -> AutoscaleStatus:
    """The memory when a minute begins. What was said of a decision stays until the next; that executors are overdue holds from now on, or no more."""
    if late is not None:
        return replace(before, reason=scaling.OVERDUE, message=late, quiet_since=None)
    goes_on = before.changed_at is not None and before.reason in {"ScaledUp", "ScaledDown", *scaling.LIMITS} - {scaling.OVERDUE}
    return before if goes_on else replace(before, reason="Measuring", message="")


def _overdue(view: View, report: Report, before: AutoscaleStatus) -> str | None:
    """Which executors have not come within the progress deadline, in words; None: none is overdue. Those that leave come first."""
    asked = max(filter(None, (before.changed_at, view.driver.started_at)), default=None)  # a driver asks for all of its own
    lately = asked is not None and view.now < asked + view.deadline
    if view.status.draining or report.executors >= before.replicas or lately or not deadline.is_over(view):
        return None
    text = short(report.executors, before.replicas, trouble_of_executors(view))
    return f"{text}; not here within {view.deadline.total_seconds():.0f} s (spec.progressDeadlineSeconds)"


def _has_news(report: Report, last: ScaleSample) -> bool:
    """Whether a batch was committed since, or there is nothing to read. A batch that is open says nothing yet of its lag."""
    return report.phase == "Idle" or report.batch != last.batch


def _undecidable(view: View, pod: Pod, before: AutoscaleStatus) -> tuple[str, str] | None:
    """Why nothing can be decided now; the first reason that holds. None: the report can be judged."""
    report, heard = pod.report, view.last_report_at
    if report is None or pod.trouble is not None or not report.holds_all:
        return "DriverStarting", f"{pod.name} does not read yet"
    late, differs = _overdue(view, report, before), bool(view.status.draining) or report.executors != before.replicas
    searches = any(text.startswith("Isolating") for text in report.warnings)
    causes = (
        (view.now - heard >= STALE, "ReportStale", f"no report from {pod.name} since {clock(heard, view.now)}, so nothing is changed"),
        (differs and late is None, "ExecutorsPending", short(report.executors, before.replicas, trouble_of_executors(view))),
        (differs and not report.executors, scaling.OVERDUE, late or ""),
        (searches, "Isolating", f"{pod.name} searches for a record, in small batches"),
        (report.busy is None or report.millis_behind_latest is None, "Measuring", f"{pod.name} has not read a record yet"),
    )
    return next(((reason, text) for holds, reason, text in causes if holds), None)


def _sample(view: View, report: Report) -> ScaleSample:
    return ScaleSample(
        at=view.now,
        attempt=view.driver.attempt,
        executors=report.executors,
        batch=report.batch,
        records=report.records,
        millis_behind_latest=report.millis_behind_latest,
    )


def _figures(view: View, report: Report, last: ScaleSample) -> ScaleFigures:
    return ScaleFigures(
        now=view.now,
        busy=report.busy or 0.0,
        behind=max(report.millis_behind_latest or 0, 0),
        records=report.records,
        shards=report.open_shards,
        active_shards=None if report.active_shards is None else max(report.active_shards, 0),
        farthest=report.farthest_shard,
        others_behind=report.millis_behind_others,
        cores=view.wanted.spec.executor.cores if view.wanted else 1,
        batch=_batch_millis(view, report, last),
    )


def _batch_millis(view: View, report: Report, last: ScaleSample) -> int:
    """What a batch took since then, on average, if there was hardly a pause between them.

    A batch that reads up to the tip is not behind when it reads, however long it takes.
    """
    busy, count = report.busy or 0.0, 0 if report.batch is None or last.batch is None else report.batch - last.batch
    return round((view.now - last.at).total_seconds() * 1000 * busy / count) if busy > scaling.AIM and count > 0 else 0
