"""When a status is written: one row a change, from two statuses, times and counts to NOW, LATER or NEVER."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from plan.views import EXECUTORS, NOW, REPORT, attempt, driver, migration, seconds, view

from sluice_operator.plan.live_read_policy import needs_live_read
from sluice_operator.plan.write_policy import WriteContext, WriteTime, figures_interval, write_time
from sluice_operator.state.actions import Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import (
    Condition,
    DeathsStatus,
    DrainStatus,
    Leaving,
    MemberDeaths,
    Phase,
    PutOut,
    RestartStatus,
    Status,
    StreamStatus,
    VersionStatus,
)

READY = Condition(type="Ready", status="True", reason="Consuming", message="4 open shards", last_transition_time=NOW, observed_generation=1)
OLD = Status(
    observed_generation=1,
    phase=Phase.RUNNING,
    conditions=(READY,),
    replicas=2,
    driver=attempt(),
    migration=migration(),
    stream=StreamStatus(number=9, reported_at=NOW),
)
OUT = PutOut(uid="u", name="views", deaths=3, since=NOW, spec_hash="51e7d92c08ab")
LEFT = Leaving(attempt=1, pod="orders-driver-1", uid="driver-1", why="SpecChanged")
ANNOUNCED = replace(
    OLD,
    phase=Phase.STARTING,
    conditions=(replace(READY, status="False", reason="SpecChanged"),),
    driver=attempt(2, uid=None, started_at=None, leaving=LEFT),
    stream=None,
)


def starting(reason: str) -> Status:
    """What follows on ANNOUNCED when the driver before is gone and the next one is seen."""
    return replace(ANNOUNCED, conditions=(replace(READY, status="False", reason=reason),), driver=attempt(2))


@dataclass(frozen=True)
class Row:
    """A change of the status, and when it is written. `age`: seconds since the last write; `wake`: seconds until the plan goes on."""

    what: str
    new: Status
    when: WriteTime
    old: Status = OLD
    age: float = 0
    resources: int = 1
    acting: bool = False
    wake: float | None = None
    at_once: int = 0

    def __str__(self) -> str:
        return f"{self.what} after {self.age:.0f} s"


AT_ONCE, LATER, NEVER = WriteTime.NOW, WriteTime.LATER, WriteTime.NEVER
FIGURES = replace(OLD, stream=StreamStatus(number=10, reported_at=seconds(5)))
VERSIONS = replace(FIGURES, versions=(VersionStatus(first_batch=30, image="orders:1.5.0"),))
UNSEEN = replace(OLD, driver=attempt(uid=None, started_at=None))
LIMITED = replace(READY, type="ScalingLimited", reason="AtMaximum", message="2m00s behind, busy 100%")
BEHIND = replace(OLD, conditions=(READY, LIMITED))
FARTHER = replace(OLD, conditions=(READY, replace(LIMITED, message="3m00s behind, busy 100%")))
OTHERWISE = replace(OLD, conditions=(READY, replace(LIMITED, reason="NoGain")))
MESSAGE = replace(OLD, conditions=(replace(READY, message="3 open shards"),))
URGENT = {
    "the phase": replace(OLD, phase=Phase.IDLE),
    "the status of a condition": replace(OLD, conditions=(replace(READY, status="False"),)),
    "a condition that was absent": replace(OLD, conditions=(READY, replace(READY, type="Stalled"))),
    "the generation": replace(OLD, observed_generation=2),
    "the last good spec": replace(OLD, last_good_spec={"replicas": 2}),
    "the restarts": replace(OLD, restarts=RestartStatus(count=1)),
    "the attempt": replace(OLD, driver=attempt(2)),
    "why the driver stops": replace(OLD, driver=attempt(stopping="Suspended")),
    "the try of the migration": replace(OLD, migration=migration(tries=2)),
    "the members that are out of the pool": replace(OLD, deaths=DeathsStatus(pod="p", out=(OUT,))),
    "the deaths that name a member": replace(OLD, deaths=DeathsStatus(pod="p", named=(MemberDeaths(uid="u", name="views", deaths=2),))),
}
TOLD = {"the phase", "the status of a condition", "a condition that was absent"}  # a report makes them come and go
ROWS = [
    *(Row(what, new, AT_ONCE) for what, new in URGENT.items()),
    *(Row(f"{what}, and an action", new, AT_ONCE, acting=True) for what, new in URGENT.items()),
    *(Row(f"{what}, the tenth time within a minute", new, AT_ONCE, at_once=9) for what, new in URGENT.items()),
    *(Row(f"{what}, once more", new, LATER if what in TOLD else AT_ONCE, age=9, at_once=10) for what, new in URGENT.items()),
    *(Row(f"{what}, once more", new, AT_ONCE, age=10, resources=300, at_once=10) for what, new in URGENT.items()),
    *(Row(f"{what}, once more, and an action", new, AT_ONCE, acting=True, at_once=10) for what, new in URGENT.items()),
    Row("the phase, once more, and the plan goes on at once", URGENT["the phase"], AT_ONCE, wake=0, at_once=10),
    Row("nothing", OLD, NEVER, age=3600),
    Row("nothing, and an action", OLD, NEVER, acting=True),
    Row("nothing, and the plan goes on at once", OLD, NEVER, wake=0),
    Row("figures", FIGURES, LATER, age=9),
    Row("figures", FIGURES, AT_ONCE, age=10),
    Row("figures of one of 30 resources", FIGURES, AT_ONCE, age=10, resources=30),
    Row("figures of one of 300 resources", FIGURES, LATER, age=99, resources=300),
    Row("figures of one of 300 resources", FIGURES, AT_ONCE, age=100, resources=300),
    Row("versions", VERSIONS, LATER, age=9),
    Row("versions", VERSIONS, AT_ONCE, age=10),
    Row("versions of one of 300 resources", VERSIONS, LATER, age=99, resources=300),
    Row("versions, and an action", VERSIONS, LATER, age=3600, acting=True),
    Row("figures, and an action", FIGURES, LATER, age=3600, acting=True),
    Row("figures, and the plan goes on at once", FIGURES, AT_ONCE, wake=0),
    Row("figures, and the plan goes on later", FIGURES, LATER, wake=1),
    Row("figures in a message of one of 300 resources", FARTHER, LATER, BEHIND, age=99, resources=300),
    Row("figures in a message of one of 300 resources", FARTHER, AT_ONCE, BEHIND, age=100, resources=300),
    Row("another reason of one of 300 resources", OTHERWISE, AT_ONCE, BEHIND, age=10, resources=300),
    Row("a message", MESSAGE, LATER, age=9),
    Row("a message of one of 300 resources", MESSAGE, AT_ONCE, age=10, resources=300),
    Row("a message, and an action", MESSAGE, AT_ONCE, acting=True),
    Row("an executor that drains", replace(OLD, draining=(DrainStatus(pod="orders-exec-1"),)), LATER, age=9),
    Row("the number of executors", replace(OLD, replicas=3), AT_ONCE, age=10),
    Row("the number of executors at the start", replace(OLD, phase=Phase.STARTING), LATER, replace(OLD, phase=Phase.STARTING, replicas=0), age=119),
    Row("the driver's uid and start", OLD, LATER, UNSEEN, age=119),
    Row("the driver's uid and start", OLD, AT_ONCE, UNSEEN, age=120),
    Row("the driver's uid and start, and an action", OLD, LATER, UNSEEN, age=120, acting=True),
    Row("the uid of the migration's Job", OLD, LATER, replace(OLD, migration=migration(uid=None)), age=9),
    Row("the uid of the migration's Job", OLD, AT_ONCE, replace(OLD, migration=migration(uid=None)), age=10),
    Row("a restart that goes as announced", starting("DriverStarting"), LATER, ANNOUNCED, age=119),
    Row("a restart that goes as announced", starting("DriverStarting"), AT_ONCE, ANNOUNCED, age=120),
    Row("a restart that goes as announced, and an action", starting("DriverStarting"), LATER, ANNOUNCED, acting=True),
    Row("a restart whose driver cannot start", starting("ImagePullBackOff"), LATER, ANNOUNCED, age=9),
    Row("a restart whose driver cannot start", starting("ImagePullBackOff"), AT_ONCE, ANNOUNCED, age=10),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_change_is_written_at_its_time(row: Row) -> None:
    """NOW: what somebody waits for, what an action depends on, and what has waited long enough."""
    wake = None if row.wake is None else seconds(row.wake)
    context = WriteContext(now=NOW, written=seconds(-row.age), resources=row.resources, acting=row.acting, wake=wake, at_once=row.at_once)
    assert write_time(row.old, row.new, context) is row.when


@pytest.mark.parametrize(("resources", "expected"), [(0, 10), (30, 10), (31, 31 / 3), (1000, 1000 / 3)])
def test_all_resources_together_write_figures_three_times_a_second(resources: int, expected: float) -> None:
    assert figures_interval(resources) == timedelta(seconds=expected)


SILENT = replace(OLD, conditions=(READY, replace(READY, type="DriverHealthy", status="Unknown", reason="ReportStale")))
LISTED, UNLISTED = Observed(drivers=(driver(),), executors=EXECUTORS), Observed(drivers=(driver(unlisted=True),), executors=EXECUTORS)
BOTH_WORK = Observed(drivers=(driver(),), executors=(EXECUTORS[0], replace(EXECUTORS[1], unlisted=True)))
ONE_WORKS = replace(BOTH_WORK, drivers=(driver(report=replace(REPORT, executors=1)),))
READS: dict[str, tuple[Observed, Status, Status, bool]] = {
    "figures": (LISTED, OLD, FIGURES, False),
    "versions": (LISTED, OLD, VERSIONS, False),
    "a driver that counts as silent from now on": (LISTED, OLD, SILENT, True),
    "a driver that counts as silent already": (LISTED, SILENT, SILENT, False),
    "a driver that no watch shows": (UNLISTED, OLD, FIGURES, True),
    "executors that no watch shows, as many as work": (BOTH_WORK, OLD, FIGURES, False),
    "executors that no watch shows, more than work": (ONE_WORKS, OLD, FIGURES, True),
    "executors that a watch shows, more than work": (replace(ONE_WORKS, executors=EXECUTORS), OLD, FIGURES, False),
}


@pytest.mark.parametrize(("observed", "old", "new", "read"), READS.values(), ids=READS)
def test_what_no_watch_shows_is_read_live(observed: Observed, old: Status, new: Status, read: bool) -> None:  # noqa: FBT001 - a table
    assert needs_live_read(view(status=old, observed=observed), Plan(status=new)) is read
