"""What a driver's report becomes in the status."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from plan.views import EXECUTORS, NOW, REPORT, attempt, driver, seconds, view

from sluice_operator.plan.record import note_report
from sluice_operator.state.objects import Observed, Report
from sluice_operator.state.status import Status, StreamStatus, VersionStatus

if TYPE_CHECKING:
    from datetime import datetime

STARTING = replace(REPORT, phase="Starting", held_shards=0)


def stream(report: Report, before: StreamStatus | None, **pod: Any) -> StreamStatus:
    status = Status(observed_generation=1, driver=attempt(), stream=before)
    found = note_report(view(status=status, observed=Observed(drivers=(driver(report=report, **pod),), executors=EXECUTORS))).stream
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("before", "report", "batch"),
    [
        (StreamStatus(batch=21, reported_at=NOW), STARTING, 21),
        (None, STARTING, None),
        (StreamStatus(batch=21, reported_at=NOW), replace(STARTING, batch=22), 22),
        (StreamStatus(batch=21, reported_at=NOW), replace(REPORT, batch=0), 0),
    ],
    ids=["as the driver before had it", "nobody has said", "it was read", "a table without a batch"],
)
def test_the_last_batch_stays_until_a_driver_that_starts_has_read_the_table(before: StreamStatus | None, report: Report, batch: int | None) -> None:
    """To an onlooker a 0 there is a lost place, at the moment at which the next driver shows that it is not."""
    assert stream(report, before).batch == batch


def test_how_far_a_driver_is_behind_is_unknown_until_it_says_so() -> None:
    found = stream(STARTING, StreamStatus(millis_behind_latest=5, lag="5ms", reported_at=NOW))
    assert (found.millis_behind_latest, found.lag) == (None, None)


@pytest.mark.parametrize(
    ("before", "batch", "since"),
    [
        (None, 8, seconds(-50)),
        (StreamStatus(open_batch=7, batch_at=seconds(-700), reported_at=NOW), 8, seconds(-50)),
        (StreamStatus(open_batch=8, batch_at=seconds(-700), reported_at=NOW), 8, seconds(-700)),
        (StreamStatus(open_batch=8, batch_at=seconds(-700), reported_at=NOW), None, None),
    ],
    ids=["no status", "a status of a batch before", "a status that an earlier operator wrote", "no batch is open"],
)
def test_a_batch_began_when_it_was_seen_first(before: StreamStatus | None, batch: int | None, since: datetime | None) -> None:
    assert stream(replace(REPORT, open_batch=batch), before, batch_at=seconds(-50)).batch_at == since


def test_versions_stay_until_a_driver_reports_others() -> None:
    former, newer = VersionStatus(first_batch=1), VersionStatus(first_batch=5)
    status = Status(observed_generation=1, driver=attempt(), versions=(former,))
    for reported, kept in (((), (former,)), ((newer, former), (newer, former))):
        drivers = (driver(report=replace(REPORT, versions=reported)),)
        assert note_report(view(status=status, observed=Observed(drivers=drivers, executors=EXECUTORS))).versions == kept
