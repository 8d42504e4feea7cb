"""When a new status is written: now, or later with what comes, or not at all. Pure.

What people and machines wait for is written at once, and so is what an action depends on. The rest is figures, messages and facts that
any live read finds again. Each write costs the API server, so these are written together, less often the more resources there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from sluice_operator.state.status import Phase

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import Condition, Status

BATCHED_EVERY = timedelta(seconds=10)  # what is not urgent is written together, this often at most
FOUND_AGAIN_EVERY = timedelta(seconds=120)  # a start, even one that pulls an image, has an urgent change sooner
MOST_AT_ONCE, AT_ONCE_WITHIN = 10, timedelta(seconds=60)  # of one resource: phases and conditions that come and go are no news
FIGURES_RATE = 3  # writes a second, of all resources together: from 31 resources on, each writes its figures less often than every 10 s
STARTS = "DriverStarting"
WITH_FIGURES = {"ScalingLimited"}
RESTART_CONDITIONS = {"Ready", "Reconciling", "Draining"}


class WriteTime(Enum):
    """When a status is written."""

    NOW = auto()
    LATER = auto()
    """With the next urgent change, or when its interval has passed since the last write."""
    NEVER = auto()
    """The stored status says the same already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """What the decision depends on besides the two statuses.

    Attributes:
        now: the time of this reconcile.
        written: when the status was written last.
        resources: how many resources this operator reconciles.
        acting: whether actions follow.
        wake: when the plan asks for the next reconcile; None: only after an event.
        at_once: how many changes of mere phase and conditions were written at once within the last `AT_ONCE_WITHIN`.
    """

    now: datetime
    written: datetime
    resources: int
    acting: bool = False
    wake: datetime | None = None
    at_once: int = 0


def write_time(old: Status, new: Status, context: WriteContext) -> WriteTime:
    """When `new` is written instead of `old`.

    An action depends on the status, so the status is written first. It does not depend on facts that a live read finds again. A plan that is followed
    by another pass at once is based on its own status, so that is written at once as well. One of many changes of mere phase and conditions waits as
    words do.
    """
    if new == old:
        return WriteTime.NEVER
    if context.acting:
        return WriteTime.LATER if found_again(old, new) else WriteTime.NOW
    goes_on = context.wake is not None and context.wake <= context.now
    news = urgent(old, new) and not (context.at_once >= MOST_AT_ONCE and only_told(old, new))
    due = context.written + _interval(old, new, context.resources)
    return WriteTime.NOW if goes_on or news or context.now >= due else WriteTime.LATER


def figures_interval(resources: int) -> timedelta:
    """The time between two writes of one resource's figures."""
    return max(BATCHED_EVERY, timedelta(seconds=resources / FIGURES_RATE))


def _interval(old: Status, new: Status, resources: int) -> timedelta:
    if replace(new, stream=old.stream, versions=old.versions, autoscale=old.autoscale, conditions=_told_before(old, new)) == old:
        return figures_interval(resources)
    return FOUND_AGAIN_EVERY if found_again(old, new) else BATCHED_EVERY


def _told_before(old: Status, new: Status) -> tuple[Condition, ...]:
    """The conditions, with the former message of one that has figures in it: it is another one each minute."""
    before = {(item.type, item.status, item.reason): item for item in old.conditions if item.type in WITH_FIGURES}
    return tuple(before.get((item.type, item.status, item.reason), item) for item in new.conditions)


def urgent(old: Status, new: Status) -> bool:
    """Whether something differs that a person or a program may wait for."""
    return _waited_for(old) != _waited_for(_as_announced(old, new))


def only_told(old: Status, new: Status) -> bool:
    """Whether of all that is waited for only phase and conditions differ: what a report or a pod shows may go to and fro."""
    return _done(old) == _done(_as_announced(old, new))


def found_again(old: Status, new: Status) -> bool:
    """Whether only figures differ, and facts that any live read finds again.

    These are the driver's uid and start, its first executors, and the progress of a restart that goes as announced.
    """
    new = _as_announced(old, new)
    driver = replace(new.driver, uid=old.driver.uid, started_at=old.driver.started_at)
    replicas = old.replicas if new.phase is Phase.STARTING else new.replicas
    return replace(new, stream=old.stream, versions=old.versions, driver=driver, replicas=replicas) == old


def _as_announced(old: Status, new: Status) -> Status:
    """Of a restart that goes as announced: the conditions that announced it. Anything else: the new status as it is."""
    ready = new.condition("Ready")
    goes_on = old.driver.leaving is not None and old.driver.attempt == new.driver.attempt
    if not goes_on or ready is None or ready.reason != STARTS:
        return new
    conditions = tuple(old.condition(item.type) or item if item.type in RESTART_CONDITIONS else item for item in new.conditions)
    return replace(new, conditions=conditions, driver=replace(new.driver, leaving=old.driver.leaving))


def _waited_for(status: Status) -> tuple[Any, ...]:
    """Phase, status of each condition, members of a pool, and what was done."""
    members = status.members, status.ready_members
    return status.phase, {item.type: item.status for item in status.conditions}, members, _done(status)


def _done(status: Status) -> tuple[Any, ...]:
    """Generation, last good spec, restarts, deaths, attempt, executors, trial, and migration and move without what a live read finds again."""
    migration = replace(status.migration, uid=None, podless_since=None) if status.migration else None
    position = replace(status.position, uid=None, podless_since=None) if status.position else None
    driver = (status.driver.attempt, status.driver.stopping if status.driver.pod else None)
    tried = (status.trial.hash, status.trial.state, status.trial.passed) if status.trial else None
    asked = status.observed_generation, status.last_good_spec
    return *asked, status.restarts, status.deaths, driver, migration, position, number(status), tried, status.proven


def number(status: Status) -> int | None:
    """The number of executors that `spec.autoscale` has come to. The rest of its memory is figures: without them the next decision comes later."""
    return status.autoscale.replicas if status.autoscale else None
