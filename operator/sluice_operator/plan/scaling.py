"""How many executors a consumer needs: one decision, from two reports of its driver. Pure.

Executors are added when the consumer is behind and busy, and removed when it is neither. How busy it is says how many; how far behind says only
whether. The lag is a sum over time: a number computed from it would grow for as long as a backlog lasts.

If capacity grows with the number of executors, and never faster than it, then the busy share after a removal is at most `busy * n / (n - 1)`. That
share is below `AIM` before one is removed, so a constant load is never followed by a removal and an addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sluice_operator.names import counted, lasting
from sluice_operator.state.status import AutoscaleStatus, ScaleSample, ScaleTrial

AIM = 0.6  # the busy share to which a number of executors is chosen
BACK_SECONDS = 300  # a consumer that will be back in this time gets no more executors
CLOSE = 0.25  # part of the target below which a consumer counts as not behind
STEPS = 2  # additions that may be in vain
GAIN = 0.9  # a record has to take at most this part of the time that it took before
HOLD = timedelta(hours=1)  # until more executors are tried again
OVERDUE = "ExecutorsOverdue"  # executors that were asked for do not come
LIMITS = ("HotShard", "NoGain", "NotBusy", "AtMaximum", "AtActiveShards", OVERDUE)
"""Reasons for which a consumer that needs more executors gets none. Each has an advice, and a condition while it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleBounds:
    """`spec.autoscale`. `by_shards`: only as many executors as have a core for each active shard."""

    min: int
    max: int
    target_lag_seconds: int
    cool_down_seconds: int
    by_shards: bool = True

    def within(self, number: int) -> int:
        """The number, or the bound that is nearest."""
        return min(max(number, self.min), self.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFigures:
    """What a driver reported that works with all its executors, and `cores` of each of these. `now` is the operator's time.

    `behind`: milliseconds when the driver read. `others_behind`: the same of the farthest open shard but `farthest`.
    `batch`: milliseconds from then to the commit, if batches follow each other.
    """

    now: datetime
    busy: float
    behind: int
    records: int | None
    shards: int
    active_shards: int | None
    farthest: str | None
    others_behind: int | None
    cores: int
    batch: int = 0

    @property
    def lag(self) -> int:
        """Milliseconds behind at the commit: what is not committed falls further behind."""
        return self.behind + self.batch

    @property
    def words(self) -> str:
        """In a message."""
        return f"{lasting(self.lag)} behind, busy {self.busy:.0%}"


def decide(before: AutoscaleStatus, earlier: ScaleSample, figures: ScaleFigures, bounds: ScaleBounds) -> AutoscaleStatus:
    """The next memory, with at most one change of `replicas`. `before` is within the bounds.

    Args:
        before: the memory.
        earlier: its sample, of the same driver with the same executors.
        figures: the present figures.
        bounds: `spec.autoscale`.
    """
    judged = replace(before, trial=_undecided(before, earlier, figures, bounds))
    if figures.lag > bounds.target_lag_seconds * 1000:
        judged = replace(judged, quiet_since=None)
        if _comes_back(earlier, figures, bounds):
            return _with_reason(judged, "CatchingUp", figures.words)
        return _more(judged, earlier, figures, bounds)
    return _fewer(judged, figures, bounds)


def decide_short(before: AutoscaleStatus, there: int, why: str, figures: ScaleFigures, bounds: ScaleBounds) -> AutoscaleStatus:
    """The next memory while executors do not come that were asked for: never more of them.

    Those that run may be enough, and as many as the bounds ask for. Then the others are given up.

    Args:
        before: the memory.
        there: number of executors that run, fewer than `before.replicas`.
        why: the message while nothing is changed.
        figures: the present figures, of those that run.
        bounds: `spec.autoscale`.
    """
    if not _is_close(figures, bounds) or figures.busy >= AIM or there < bounds.min:
        return _with_reason(replace(before, quiet_since=None), OVERDUE, why)
    since = before.quiet_since or figures.now
    if not _rested(before, since, figures, bounds):
        return _with_reason(replace(before, quiet_since=since), OVERDUE, why)
    text = f"{figures.words} with {counted(there, 'executor')}; no more came"
    return replace(_changed(replace(before, trial=None), there, "ScaledDown", figures), message=text)


def _undecided(before: AutoscaleStatus, earlier: ScaleSample, figures: ScaleFigures, bounds: ScaleBounds) -> ScaleTrial | None:
    """The trial, unless it has helped: a record takes less time, or the consumer is not behind any more."""
    trial, cost = before.trial, _seconds_per_record(earlier, figures)
    if trial is None or figures.lag <= bounds.target_lag_seconds * 1000:
        return None
    return None if cost is not None and cost <= trial.seconds_per_record * GAIN else trial


def _seconds_per_record(earlier: ScaleSample, figures: ScaleFigures) -> float | None:
    if earlier.records is None or figures.records is None or figures.records <= earlier.records:
        return None
    return figures.busy * (figures.now - earlier.at).total_seconds() / (figures.records - earlier.records)


def _comes_back(earlier: ScaleSample, figures: ScaleFigures, bounds: ScaleBounds) -> bool:
    """Whether the consumer gains on the stream fast enough to be back in five minutes."""
    if earlier.millis_behind_latest is None:
        return False
    gained, left = earlier.millis_behind_latest - figures.behind, figures.lag - bounds.target_lag_seconds * 1000
    return gained > 0 and left * (figures.now - earlier.at).total_seconds() <= gained * BACK_SECONDS


def _more(before: AutoscaleStatus, earlier: ScaleSample, figures: ScaleFigures, bounds: ScaleBounds) -> AutoscaleStatus:
    """The consumer is behind and stays so: more executors, or why not."""
    if _in_vain(before, figures, bounds):
        return _give_up(before, figures, bounds)
    if (why := _limit(before, figures, bounds)) is not None:
        return _with_reason(before, *why)
    number = min(math.ceil(before.replicas * figures.busy / AIM), 2 * before.replicas, bounds.max, cap(figures, bounds))
    cost, trial = _seconds_per_record(earlier, figures), before.trial
    if trial is not None:
        trial = replace(trial, steps=min(trial.steps + 1, STEPS))
    elif cost is not None:
        trial = ScaleTrial(executors=before.replicas, seconds_per_record=cost)
    return _changed(replace(before, trial=trial), number, "ScaledUp", figures)


def _in_vain(before: AutoscaleStatus, figures: ScaleFigures, bounds: ScaleBounds) -> bool:
    """Whether executors were added as often as may be, and no record takes less time."""
    trial, most = before.trial, min(bounds.max, cap(figures, bounds))
    return trial is not None and before.replicas > trial.executors and (trial.steps >= STEPS or before.replicas >= most)


def held_for(bounds: ScaleBounds) -> timedelta:
    """Time until more executors are tried again. An addition comes after a removal by the cool-down at least."""
    return max(HOLD, timedelta(seconds=bounds.cool_down_seconds))


def _give_up(before: AutoscaleStatus, figures: ScaleFigures, bounds: ScaleBounds) -> AutoscaleStatus:
    """Back to the former number, but not within the cool-down after the last addition."""
    assert before.trial is not None  # noqa: S101 - `_in_vain`
    former = max(before.trial.executors, bounds.min)
    text = f"{figures.words}; a record takes as long with {counted(before.replicas, 'executor')} as with {former}"
    if not _cooled(before, figures, bounds):
        return _with_reason(before, "NoGain", text)
    held = replace(before, trial=None, ceiling=former, ceiling_until=figures.now + held_for(bounds))
    return replace(_changed(held, former, "NoGain", figures), message=text)


def _limit(before: AutoscaleStatus, figures: ScaleFigures, bounds: ScaleBounds) -> tuple[str, str] | None:
    """Why more executors would not help, or may not be; the first reason that holds."""
    number, target = before.replicas, bounds.target_lag_seconds * 1000
    held = before.ceiling is not None and before.ceiling_until is not None and figures.now < before.ceiling_until and number >= before.ceiling
    far = bounds.by_shards and figures.shards > 1 and figures.behind > target
    lone = far and figures.others_behind is not None and figures.others_behind <= target * CLOSE
    active = counted(figures.active_shards or 0, "shard")
    limits = (
        (held, "NoGain", f"more than {counted(before.ceiling or 0, 'executor')} made no record faster"),
        (lone and number * figures.cores > 1, "HotShard", f"only {figures.farthest or 'one shard'} is far behind, and one task reads a shard"),
        (math.ceil(number * figures.busy / AIM) <= number, "NotBusy", "the executors have time left"),
        (number >= bounds.max, "AtMaximum", f"spec.autoscale.max is {bounds.max}"),
        (number >= cap(figures, bounds), "AtActiveShards", f"{active} gave records, and one task reads a shard"),
    )
    return next(((reason, f"{figures.words}; {text}") for holds, reason, text in limits if holds), None)


def cap(figures: ScaleFigures, bounds: ScaleBounds) -> int:
    """As many executors as have a core for each active shard, within the bounds."""
    if not bounds.by_shards or figures.active_shards is None:
        return bounds.max
    return bounds.within(math.ceil(figures.active_shards / figures.cores))


def _fewer(before: AutoscaleStatus, figures: ScaleFigures, bounds: ScaleBounds) -> AutoscaleStatus:
    """The consumer is not behind: one executor less, if that has been enough for the whole cool-down."""
    number = before.replicas
    enough = number > cap(figures, bounds) or (number > 1 and figures.busy * number / (number - 1) < AIM)
    if not _is_close(figures, bounds) or number <= bounds.min or not enough:
        return _with_reason(replace(before, quiet_since=None), "Steady", figures.words)
    since = before.quiet_since or figures.now
    if not _rested(before, since, figures, bounds):
        return _with_reason(replace(before, quiet_since=since), "CoolingDown", figures.words)
    return _changed(before, number - 1, "ScaledDown", figures)


def _is_close(figures: ScaleFigures, bounds: ScaleBounds) -> bool:
    return figures.lag <= bounds.target_lag_seconds * 1000 * CLOSE


def _rested(before: AutoscaleStatus, since: datetime, figures: ScaleFigures, bounds: ScaleBounds) -> bool:
    """Whether the load has been small since then for the whole cool-down, and the last change is as long ago."""
    return figures.now - since >= timedelta(seconds=bounds.cool_down_seconds) and _cooled(before, figures, bounds)


def _cooled(before: AutoscaleStatus, figures: ScaleFigures, bounds: ScaleBounds) -> bool:
    return before.changed_at is None or figures.now - before.changed_at >= timedelta(seconds=bounds.cool_down_seconds)


def _with_reason(before: AutoscaleStatus, reason: str, message: str) -> AutoscaleStatus:
    return replace(before, reason=reason, message=message)


def _changed(before: AutoscaleStatus, number: int, reason: str, figures: ScaleFigures) -> AutoscaleStatus:
    text = f"{figures.words} with {counted(before.replicas, 'executor')}"
    return replace(before, replicas=number, reason=reason, message=text, changed_at=figures.now, quiet_since=None, sample=None)
