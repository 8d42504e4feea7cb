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
from sluice_operator.state.status import DriverStatus, MigrationState, MigrationStatus, Phase, Status

if TYPE_CHECKING:
    from sluice_operator.resource.changes import DesiredSpec


DEADLINE = timedelta(seconds=600)
NEVER = datetime.max.replace(tzinfo=UTC)


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
    """`wanted` is the present spec, or the last good one while `problem` says why the present one is refused.

    `rests`: the present one, refused or not, says that nothing shall run.
    """

    resource: Resource
    wanted: DesiredSpec | None
    problem: str | None
    status: Status
    observed: Observed
    now: datetime
    rests: bool = False

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

    def names(self, pod: Pod) -> bool:
        """Whether `status.driver` means this very pod, not an older one of the same name."""
        same_pod = pod.name == self.driver.pod and pod.owner == self.resource.uid
        return same_pod and self.driver.uid in {None, pod.uid}

    @property
    def outdated(self) -> str | None:
        """Why another driver is wanted than the one that the status names: the spec changed, or a restart is asked for. None if it is the same."""
        if self.wanted is None:
            return None
        if not self.wanted.is_hash(self.driver.spec_hash):
            return "SpecChanged"
        return "RestartRequested" if self.driver.restart != self.restart else None

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
        return replace(status, driver=self.driver or status.driver, migration=migration, progressing_since=self.since)


def progress(phase: Phase, reason: str, message: str, *actions: Action) -> Step:
    """A step towards what the spec asks. No person has to act."""
    return Step(phase=phase, reason=reason, message=message, progressing=True, actions=actions)


Rule = Callable[[View], Step | None]
