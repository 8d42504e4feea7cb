"""What a driver's report becomes in the status."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan.views import EXECUTORS, NOW, REPORT, attempt, driver, view

from sluice_operator.plan.record import note_report
from sluice_operator.state.objects import Observed, Report
from sluice_operator.state.status import Status, StreamStatus, VersionStatus

STARTING = replace(REPORT, phase="Starting", held_shards=0)


def stream(report: Report, before: StreamStatus | None) -> StreamStatus:
    status = Status(observed_generation=1, driver=attempt(), stream=before)
    found = note_report(view(status=status, observed=Observed(drivers=(driver(report=report),), executors=EXECUTORS))).stream
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


def test_versions_stay_until_a_driver_reports_others() -> None:
    former, newer = VersionStatus(first_batch=1), VersionStatus(first_batch=5)
    status = Status(observed_generation=1, driver=attempt(), versions=(former,))
    for reported, kept in (((), (former,)), ((newer, former), (newer, former))):
        drivers = (driver(report=replace(REPORT, versions=reported)),)
        assert note_report(view(status=status, observed=Observed(drivers=drivers, executors=EXECUTORS))).versions == kept
