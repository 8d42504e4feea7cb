"""Times that were written by another clock, which may have been ahead. Pure.

A time until which the operator waits is cut to the longest wait from now, and written down so, that it comes. What began in the future has begun now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import MigrationStatus, PositionStatus, StandbyStatus, Status, StreamStatus, TrialStatus
    from sluice_operator.state.view import View


def earlier(time: datetime | None, latest: datetime) -> datetime | None:
    """The time, or the latest that it may be."""
    return None if time is None else min(time, latest)


def note_clock(view: View) -> Status:
    """The status without times that no clock like this one would have written."""
    status, latest = view.status, view.now + view.patience.longest
    return replace(
        status,
        restarts=replace(status.restarts, next_at=earlier(status.restarts.next_at, latest)),
        migration=_try(status.migration, view.now, latest),
        position=_move(status.position, view.now, latest),
        standby=_standby(status.standby, view.now, latest),
        trial=_trial(status.trial, view.now),
        driver=replace(status.driver, started_at=earlier(status.driver.started_at, view.now)),
        stream=_stream(status.stream, view.now),
    )


Try = TypeVar("Try", "MigrationStatus", "PositionStatus")


def _try(attempt: Try | None, now: datetime, latest: datetime) -> Try | None:
    if attempt is None:
        return None
    return replace(attempt, next_at=earlier(attempt.next_at, latest), podless_since=earlier(attempt.podless_since, now))


def _move(move: PositionStatus | None, now: datetime, latest: datetime) -> PositionStatus | None:
    tried = _try(move, now, latest)
    return None if tried is None else replace(tried, since=earlier(tried.since, now))


def _standby(standby: StandbyStatus | None, now: datetime, latest: datetime) -> StandbyStatus | None:
    return None if standby is None else replace(standby, since=min(standby.since, now), next_at=earlier(standby.next_at, latest))


def _trial(trial: TrialStatus | None, now: datetime) -> TrialStatus | None:
    return None if trial is None else replace(trial, since=min(trial.since, now), working_since=earlier(trial.working_since, now))


def _stream(stream: StreamStatus | None, now: datetime) -> StreamStatus | None:
    return None if stream is None else replace(stream, batch_at=earlier(stream.batch_at, now), reported_at=min(stream.reported_at, now))
