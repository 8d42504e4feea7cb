"""One view of one resource: the spec, the status, what was observed, and the time.

A rule reads nothing but the `View`. `observe` builds it from raw objects, and it does not change during a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sluice_operator.names import END_REACHED
from sluice_operator.state.actions import Action
from sluice_operator.state.objects import Observed, Pod, Resource
from sluice_operator.state.seats import ALONE, Members, Seating
from sluice_operator.state.status import (
    AutoscaleStatus,
    DriverStatus,
    MigrationState,
    MigrationStatus,
    Phase,
    PositionStatus,
    StandbyState,
    StandbyStatus,
    Status,
    TrialState,
    TrialStatus,
)

if TYPE_CHECKING:
    from sluice_operator.resource.changes import DesiredSpec


DEADLINE = timedelta(seconds=600)
NEVER = datetime.max.replace(tzinfo=UTC)
RAISING = "Isolating"  # warning of a driver on whose batch `process` raises


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """`spec.restart`: seconds between a failed driver and the next, at first and at most, and how long a driver runs to be called stable."""

    backoff_seconds: int = 10
    max_backoff_seconds: int = 300
    reset_after_seconds: int = 600

    @property
    def longest(self) -> timedelta:
        """No pause is longer."""
        return timedelta(seconds=self.max_backoff_seconds)

    def pause(self, failures: int) -> timedelta:
        """After so many failures before this one: doubled with each."""
        return timedelta(seconds=min(self.backoff_seconds * 2 ** min(failures, 16), self.max_backoff_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """`asked` is the present spec, or the last good one while `problem` says why the present one is refused.

    `former`: the same with the proven version in place of its own, if there is one that may be carried out.
    `rests`: the present spec, refused or not, says that nothing shall run. `seating`: what a consumer has to do with pools. `members`: of a pool.
    """

    resource: Resource
    asked: DesiredSpec | None
    problem: str | None
    status: Status
    observed: Observed
    now: datetime
    rests: bool = False
    seating: Seating = ALONE
    members: Members | None = None
    former: DesiredSpec | None = None

    @property
    def wanted(self) -> DesiredSpec | None:
        """The spec to carry out: what was asked for, unless its version was rolled back."""
        return self.asked if self.rolled_back is None or self.former is None else self.former

    @property
    def rolled_back(self) -> TrialStatus | None:
        """The trial of the version that is asked for, if it was rolled back, and nobody asks to try it again."""
        trial = self.status.trial
        back = trial is not None and trial.state is TrialState.ROLLED_BACK and self.is_tried(trial)
        return trial if back else None

    def is_tried(self, trial: TrialStatus) -> bool:
        """Whether this trial is of what is asked for. One that is over begins again with another request for a restart."""
        same = self.asked is not None and self.asked.is_hash(trial.hash)
        return same and (trial.state is TrialState.RUNNING or self.resource.restart in {None, trial.restart})

    @property
    def driver(self) -> DriverStatus:
        """What the status says about the driver."""
        return self.status.driver

    @property
    def driver_pod(self) -> Pod | None:
        """The pod that `status.driver` names, if it is there and ours."""
        return next((pod for pod in self.observed.drivers if self.names(pod)), None)

    @property
    def leaving_pod(self) -> Pod | None:
        """The driver before: it ends its work, then the driver that `status.driver` names is created."""
        leaving = self.driver.leaving
        return next((pod for pod in self.observed.drivers if leaving is not None and pod.uid == leaving.uid), None)

    @property
    def standby_pod(self) -> Pod | None:
        """The pod that `status.standby` names, whatever became of it."""
        standby = self.status.standby
        return None if standby is None else next((pod for pod in self.observed.drivers if self._is_standby(pod, standby)), None)

    def _is_standby(self, pod: Pod, standby: StandbyStatus) -> bool:
        return pod.name == standby.pod and pod.owner == self.resource.uid and standby.uid in {None, pod.uid}

    @property
    def own_executors(self) -> tuple[Pod, ...]:
        """Executors without those of the standby: nothing of this consumer is read by these."""
        pod = self.standby_pod
        return self.observed.executors if pod is None else tuple(executor for executor in self.observed.executors if executor.owner != pod.uid)

    @property
    def stands_by(self) -> bool:
        """Whether the next driver of a rollout starts beside the present one. One that looks for a record ends first: it puts good ones aside."""
        rollout, back = self.wanted.spec.rollout if self.wanted else None, self.rolled_back
        harmless = back is None or back.reason != RAISING
        return rollout is not None and rollout.stands_by and not self.stopped and harmless

    @property
    def has_failover(self) -> bool:
        """Whether the spec asks for a standby behind the driver between rollouts, too."""
        rollout = self.wanted.spec.rollout if self.wanted else None
        return rollout is not None and rollout.for_good and not self.stopped

    @property
    def on_trial(self) -> bool:
        """Whether the version that runs has to prove itself, or the proven one that it was not to blame."""
        trial = self.status.trial
        return trial is not None and (trial.state is TrialState.RUNNING or (trial.state is TrialState.ROLLED_BACK and not trial.passed))

    @property
    def keeps_table(self) -> bool:
        """Whether the next driver finds the present one's lease. In another table both would work at once."""
        pod = self.driver_pod
        return pod is not None and self.wanted is not None and pod.table_hash == self.wanted.table_hash

    @property
    def stopped(self) -> bool:
        """Whether nothing shall run."""
        spec = self.wanted.spec if self.wanted else None
        return self.resource.deleting or self.rests or (spec is not None and (spec.suspend or not spec.replicas))

    @property
    def ready_time(self) -> timedelta:
        """`spec.rollout.readySeconds`."""
        rollout = self.wanted.spec.rollout if self.wanted else None
        return timedelta(seconds=rollout.ready_seconds) if rollout else timedelta()

    def is_meant(self, standby: StandbyStatus) -> bool:
        """Whether a rollout is under way, and this is its standby. If none is: whether it stands behind the driver for good."""
        fits = self.wanted is not None and self.wanted.is_hash(standby.spec_hash) and standby.restart == self.restart
        asked = self.stands_by if self.outdated is not None else self.has_failover and not self.on_trial
        return fits and asked

    def remembers(self, standby: StandbyStatus) -> bool:
        """Whether a standby that was given up still says how the wanted spec was rolled out."""
        fits = self.wanted is not None and self.wanted.is_hash(standby.spec_hash)
        return fits and self.stands_by and standby.state is StandbyState.GIVEN_UP

    def promoted(self, standby: StandbyStatus) -> DriverStatus:
        """The standby, as the driver."""
        return DriverStatus(
            attempt=standby.attempt,
            pod=standby.pod,
            uid=standby.uid,
            spec_hash=standby.spec_hash,
            restart=standby.restart,
            started_at=self.now,  # a standby may have stood by for months, and has not worked yet
            generation=self.driver.generation,
        )

    def names(self, pod: Pod) -> bool:
        """Whether `status.driver` means this very pod, not an older one of the same name."""
        same_pod = pod.name == self.driver.pod and pod.owner == self.resource.uid
        return same_pod and self.driver.uid in {None, pod.uid}

    @property
    def outdated(self) -> str | None:
        """Why another driver is wanted than the one that the status names: the spec changed, or a restart is asked for. None if it is the same.

        A pod of its own that shall be a seat, or the reverse, counts as a changed spec: of its pool.
        """
        if self.wanted is None:
            return None
        pod = self.driver_pod
        if not self.wanted.is_hash(self.driver.spec_hash) or (pod is not None and not self.seating.fits(pod)):
            return "SpecChanged"
        return "RestartRequested" if self.driver.restart != self.restart else None

    @property
    def in_driver(self) -> bool:
        """Whether the tasks run in the driver that the status names: not yet while a driver of the former spec works on."""
        return self.wanted is not None and self.wanted.spec.executor.in_driver and self.wanted.is_hash(self.driver.spec_hash)

    @property
    def executors(self) -> int:
        """The wanted number of executors: `spec.replicas`, or what `spec.autoscale` has come to, within its bounds."""
        if self.wanted is None:
            return 0
        bounds, chosen = self.wanted.spec.autoscale, self.status.autoscale
        if bounds is None:
            return self.wanted.spec.replicas
        return min(max(chosen.replicas if chosen else bounds.min, bounds.min), bounds.max)

    @property
    def end_reached(self) -> bool:
        """Whether the last driver has reached the end of its run, `spec.until`, with the wanted spec. Only another spec starts a driver then."""
        end, wanted = self.driver.exit, self.wanted
        if self.driver.pod is not None or end is None or wanted is None or wanted.spec.until is None:
            return False
        return (end.code, end.reason) == (0, END_REACHED) and wanted.is_hash(self.driver.spec_hash)

    @property
    def restart(self) -> str | None:
        """The request for a restart that a driver which is made now honours: the newest one. Taking it away asks for nothing."""
        return self.resource.restart or self.driver.restart

    @property
    def migrated(self) -> bool:
        """Whether the migration is complete. That is final."""
        return self.status.migration is not None and self.status.migration.state is MigrationState.COMPLETE

    @property
    def has_positions(self) -> bool:
        """Whether there is a checkpoint table that says where to read: a driver has reported its lease in it, or a migration has written it."""
        return self.driver.generation is not None or self.migrated

    @property
    def last_report_at(self) -> datetime:
        """When the driver's last report was seen first; the status may have an earlier time, from a previous operator."""
        pod, known = self.driver_pod, self.status.stream
        first = pod.reported_at if pod and pod.reported_at else self.now
        same = known is not None and pod is not None and pod.report is not None and known.number == pod.report.number
        return min(first, known.reported_at) if same and known else first

    @property
    def patience(self) -> RestartPolicy:
        """`spec.restart`, or its defaults while there is no spec."""
        if self.wanted is None:
            return RestartPolicy()
        policy = self.wanted.spec.restart
        return RestartPolicy(policy.backoff_seconds, policy.max_backoff_seconds, policy.reset_after_seconds)

    @property
    def deadline(self) -> timedelta:
        """`spec.progressDeadlineSeconds`, or its default while there is no spec."""
        return timedelta(seconds=self.wanted.spec.progress_deadline_seconds) if self.wanted else DEADLINE

    @property
    def refused(self) -> bool:
        """A driver refused the wanted spec, and none has worked since."""
        return self.wanted is not None and self.wanted.is_hash(self.status.restarts.refused)

    def with_status(self, status: Status) -> View:
        """The same view with another status."""
        return replace(self, status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a rule decided: what the user reads (phase, reason, message), what is remembered, and what is done.

    `progressing` and `stalled` become the conditions kstatus reads. `wake` asks for a reconcile at that time.
    `due` is when what is under way has an end of its own, such as a grace period; NEVER: a person holds it.
    `since` is what `Status.progressing_since` becomes. `look_by` asks for a reconcile at that time, whatever is reported until then.
    """

    phase: Phase
    reason: str
    message: str = ""
    ready: bool = False
    progressing: bool = False
    stalled: bool = False
    driver: DriverStatus | None = None
    migration: MigrationStatus | None = None
    forget_migration: bool = False
    standby: StandbyStatus | None = None
    forget_standby: bool = False
    position: PositionStatus | None = None
    autoscale: AutoscaleStatus | None = None
    actions: tuple[Action, ...] = field(default=())
    wake: datetime | None = None
    due: datetime | None = None
    since: datetime | None = None
    look_by: datetime | None = None

    def onto(self, status: Status) -> Status:
        """The status with what this step remembers. A new attempt has no report yet, so figures and drains are cleared."""
        migration = None if self.forget_migration else self.migration or status.migration
        if self.driver is not None and self.driver.attempt != status.driver.attempt:
            status = replace(status, stream=None, draining=())
        status = replace(status, position=self.position or status.position, autoscale=self.autoscale or status.autoscale)
        standby = None if self.forget_standby else self.standby or status.standby
        attempts = self.standby.attempt if self.standby else status.attempts
        if self.driver is not None and self.driver.attempt < status.driver.attempt:  # the numbers begin again
            attempts = None
        driver = self.driver or status.driver
        return replace(status, driver=driver, standby=standby, attempts=attempts, migration=migration, progressing_since=self.since)


def progress(phase: Phase, reason: str, message: str, *actions: Action) -> Step:
    """A step towards what the spec asks. No person has to act."""
    return Step(phase=phase, reason=reason, message=message, progressing=True, actions=actions)


Rule = Callable[[View], Step | None]
