"""Times that were written by another clock, which may have been ahead. Pure.

A time until which the operator waits is cut to the longest wait from now, and written down so, that it comes. What began in the future has begun now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import MigrationStatus, Status, StreamStatus
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
        migration=_migration(status.migration, view.now, latest),
        driver=replace(status.driver, started_at=earlier(status.driver.started_at, view.now)),
        stream=_stream(status.stream, view.now),
    )


def _migration(migration: MigrationStatus | None, now: datetime, latest: datetime) -> MigrationStatus | None:
    if migration is None:
        return None
    return replace(migration, next_at=earlier(migration.next_at, latest), podless_since=earlier(migration.podless_since, now))


def _stream(stream: StreamStatus | None, now: datetime) -> StreamStatus | None:
    return None if stream is None else replace(stream, batch_at=earlier(stream.batch_at, now), reported_at=min(stream.reported_at, now))
