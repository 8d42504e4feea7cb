"""First half of a plan: what was observed goes into the status. Only facts are recorded; the rules decide afterwards.

Each note takes the view and returns the status with one more fact. A driver's exit is recorded while its pod exists, because
a rule may delete the pod.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import END_REACHED, lasting
from sluice_operator.plan import autoscale, migration, position
from sluice_operator.plan.clocks import note_clock
from sluice_operator.plan.standby_terms import STAND, may_follow
from sluice_operator.resource.changes import start_position
from sluice_operator.state.status import Exit, RestartStatus, StandbyState, Status, StreamStatus

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.objects import Pod, Report
    from sluice_operator.state.status import DriverStatus, StandbyStatus
    from sluice_operator.state.view import View

LOST = "DriverLost"
FORCED = "Forced"
REFUSED = 65  # configuration, format, stream or data; trying again will hardly help
SAID_SO = {75, 76}  # LeaseHeld, Fenced: another epoch works; not a failure (docs/interfaces.md)
MOST_ENDS = 1_000_000  # that are counted
DISRUPTIONS = {"Evicted", "Drained", "Killed", LOST, FORCED}  # the pod was taken away: not the driver's fault


def record(view: View) -> Status:
    """The status with every observed fact in it."""
    for note in NOTES:
        view = view.with_status(note(view))
    return view.status


def note_driver(view: View) -> Status:
    """The driver's uid, times, generation and exit. A pod that was seen and is gone has ended; without a known exit it counts as lost."""
    driver, pod = view.driver, view.driver_pod
    if driver.pod is None:
        return view.status
    if pod is not None:
        seen = _seen(driver, pod, view.now)
        return replace(view.status, driver=replace(seen, leaving=driver.leaving) if view.leaving_pod else seen)
    if driver.uid is None or driver.exit is not None:
        return view.status
    reason = FORCED if view.resource.force == driver.uid else LOST
    what = "the pod" if driver.host is None else f"{driver.host}, the pod of the pool,"
    gone = Exit(reason=reason, message=f"{what} was deleted before its exit could be read", at=view.now)
    return replace(view.status, driver=replace(driver, exit=view.observed.exits.get(driver.uid, gone)))


def _seen(driver: DriverStatus, pod: Pod, now: datetime) -> DriverStatus:
    generation = pod.report.generation if pod.report else None
    started = pod.started_at if pod.started_at and pod.started_at <= now else driver.started_at or (now if pod.started_at else None)
    return replace(
        driver,
        uid=pod.uid,
        started_at=max(started, driver.started_at) if started and driver.started_at else started,  # a standby began to work later
        generation=generation or driver.generation,
        stopping=driver.stopping if pod.deleting else None,  # a deletion that was intended and not carried out: the rules decide again
        exit=driver.exit or pod.exit,  # the first exit counts: a pod that is deleted afterwards would look killed
        leaving=None,  # this driver was created after the other was gone, or continues when it is
    )


def note_standby(view: View) -> Status:
    """The standby's uid and end. What no rollout means any more is forgotten once its pod is gone; what was never created, with its driver.

    One that the operator stopped, because it may not follow any more, has not failed.
    """
    standby, pod = view.status.standby, view.standby_pod
    if standby is None:
        return view.status
    passed = standby.uid is None and standby.state in STAND and standby.attempt < view.driver.attempt
    stopped = standby.state in STAND and not may_follow(view, standby)
    if pod is None and (passed or (stopped and standby.uid) or not (view.is_meant(standby) or view.remembers(standby))):
        return replace(view.status, standby=None)
    standby = replace(standby, uid=pod.uid if pod else standby.uid)
    end = pod.exit if pod else Exit(reason=LOST, message="its pod was deleted", at=view.now) if standby.uid else None
    if end is not None and standby.state in STAND and not stopped:
        standby = backed_off(view, standby, end.reason, end.message)
    return replace(view.status, standby=standby)


def backed_off(view: View, standby: StandbyStatus, reason: str, message: str) -> StandbyStatus:
    """A standby that ended, or shall. The next one follows after a pause."""
    tries = tries_of(view, standby)
    pause = view.now + view.patience.pause(tries - 1)
    return replace(standby, state=StandbyState.BACKING_OFF, reason=reason, message=message, tries=tries, next_at=pause)


def tries_of(view: View, standby: StandbyStatus) -> int:
    """Its number in a series of standbys. One that was ready for `resetAfterSeconds` ends the series."""
    stable = standby.state is StandbyState.READY and view.now - standby.since >= timedelta(seconds=view.patience.reset_after_seconds)
    return 1 if stable else standby.tries


def note_end(view: View) -> Status:
    """A driver ended and its pod is gone: count its end, once. The next attempt may start."""
    driver = view.driver
    if driver.pod is None or driver.exit is None or view.driver_pod is not None:
        return view.status
    over = replace(driver, pod=None, uid=None, stopping=None)
    return replace(view.status, driver=over, restarts=_account(view, driver, driver.exit), stream=None)


def _account(view: View, driver: DriverStatus, end: Exit) -> RestartStatus:
    """Counts and pause after an end that the operator did not ask for. An end that it asked for changes no count."""
    patience = view.patience
    lasted = min(end.at, view.now) - driver.started_at if driver.started_at else timedelta()  # two clocks: the shorter time counts
    stable = lasted >= timedelta(seconds=patience.reset_after_seconds)
    before = RestartStatus() if stable else view.status.restarts
    if driver.stopping:
        return replace(before, next_at=None)
    if _is_done(view, end):
        return RestartStatus()
    before = replace(before, reason=end.reason, message=end.message)
    if end.code in SAID_SO or end.reason in DISRUPTIONS:
        failures, after = before.interruptions, replace(before, interruptions=_one_more(before.interruptions))
    else:
        refused = driver.spec_hash if end.code == REFUSED else None
        failures, after = before.count, replace(before, count=_one_more(before.count), refused=refused)
    worked = lasted >= timedelta(seconds=patience.backoff_seconds)  # so one start in that time needs no pause
    if worked and (stable or end.reason in DISRUPTIONS):
        return replace(after, next_at=None)
    return replace(after, next_at=view.now + patience.pause(failures))


def _is_done(view: View, end: Exit) -> bool:
    """Whether a driver has reached the end of its run. One that says so without having an end has failed."""
    has_end = view.wanted is not None and view.wanted.spec.until is not None
    return end.reason == END_REACHED and (has_end or view.outdated is not None)


def _one_more(count: int) -> int:
    """The next number, from whatever the status has: a number that the API server does not store would keep anything from being started."""
    return min(max(count, 0) + 1, MOST_ENDS)


def note_stability(view: View) -> Status:
    """A driver that works clears the refusal of its spec. One that has run for `resetAfterSeconds` clears all counts."""
    driver, restarts, pod = view.driver, view.status.restarts, view.driver_pod
    if pod is None or driver.started_at is None or restarts == RestartStatus():
        return view.status
    since = max(driver.started_at, pod.seen_at or driver.started_at)  # two clocks: the shorter time counts
    if view.now - since >= timedelta(seconds=view.patience.reset_after_seconds):
        return replace(view.status, restarts=RestartStatus())
    works = pod.report is not None and pod.report.holds_all
    return replace(view.status, restarts=replace(restarts, refused=None)) if works else view.status


def note_pods(view: View) -> Status:
    """The number of executors that are not being deleted, and the selector that finds them (a string: HPA reads it).

    Executors of a standby are idle, so they belong to neither: HPA takes the mean over all pods that the selector finds.
    With `executor.inDriver` a driver that runs is the one executor.
    """
    drivers = tuple(pod for pod in view.observed.drivers if pod != view.standby_pod)
    places = drivers if view.in_driver else view.own_executors
    count = sum(1 for pod in places if not pod.deleting and not pod.finished)
    selector = f"sluice.dev/consumer={view.resource.name},sluice.dev/role=executor"
    if view.status.standby is not None:
        selector += f",sluice.dev/attempt={view.driver.attempt}"
    return replace(view.status, replicas=count, selector=selector)


def note_report(view: View) -> Status:
    """Figures, draining executors and versions of the driver's report. One that names no version leaves those that an earlier one named."""
    pod = view.driver_pod
    if pod is None or pod.report is None:
        return replace(view.status, draining=())
    report, status = pod.report, view.status
    stream = _figures(report, status.stream, view.last_report_at, pod.batch_at or view.now)
    return replace(status, draining=report.draining, stream=stream, versions=report.versions or status.versions)


def _figures(report: Report, before: StreamStatus | None, heard: datetime, began: datetime) -> StreamStatus:
    same = before is not None and before.open_batch == report.open_batch
    return StreamStatus(
        open_batch=report.open_batch,
        batch_at=None if report.open_batch is None else before.batch_at if before and same else began,
        number=report.number,
        open_shards=report.open_shards,
        ended_shards=report.ended_shards,
        held_shards=report.held_shards,
        batch=before.batch if before and report.batch is None else report.batch,
        millis_behind_latest=report.millis_behind_latest,
        lag=None if report.millis_behind_latest is None else lasting(report.millis_behind_latest),
        records_per_second=report.records_per_second,
        records=report.records,
        dead_letters=report.dead_letters,
        busy=report.busy,
        active_shards=report.active_shards,
        reported_at=heard,
    )


def note_migration(view: View) -> Status:
    """The state of the migration, from its Job."""
    return replace(view.status, migration=migration.note(view))


def note_start(view: View) -> Status:
    """The start position that the consumer was given, from the edit of `spec.start` on; None while the spec says the same.

    It is taken from the last good spec, which operators have always written, so one that comes new finds no edit where there was none. Until there
    is a table, a driver that is not yet made gets the edited position.
    """
    if view.wanted is None:
        return view.status
    good, asked = view.status.last_good_spec, start_position(view.wanted.raw)
    given = view.status.start or (asked if good is None else start_position(good))
    follows = given == asked or not (view.has_positions or view.driver.uid)
    return replace(view.status, start=None if follows else given)


NOTES = (
    note_clock,
    note_driver,
    note_standby,
    note_end,
    note_stability,
    note_migration,
    position.note,
    note_pods,
    note_report,
    autoscale.note,
    note_start,
)
