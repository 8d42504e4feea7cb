"""A seat: what one consumer has in the pod of a pool, instead of a driver's pod (docs/pools.md, "A seat"). Values, and what may be done with them.

To the rules a seat is a driver's pod, so that the same rules plan both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from sluice_operator.state.objects import Pod, Report, Trouble
from sluice_operator.state.status import Exit, PutOut

LOST = "DriverLost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One attempt of one consumer in a pod of a pool.

    Attributes:
        consumer: uid of the KinesisConsumer. name: its name.
        leave_by: it was asked to leave, and has this time for it.
        began: when the pool's driver began it. exit: how its run ended.
        reported_at: when the number of its report was seen first. batch_at: when its open batch was.
    """

    consumer: str
    name: str
    attempt: int
    spec_hash: str | None = None
    leave_by: datetime | None = None
    report: Report | None = None
    reported_at: datetime | None = None
    batch_at: datetime | None = None
    began: datetime | None = None
    exit: Exit | None = None

    def uid_in(self, host: Pod) -> str:
        """What stands for its uid."""
        return seat_uid(host.uid, self.consumer, self.attempt)

    def end_in(self, host: Pod) -> Exit | None:
        """How it ended: its own end, or that of the pod it is in."""
        if self.exit is not None or host.exit is None:
            return self.exit
        return Exit(reason=LOST, message=f"{host.name} of the pool ended: {host.exit.message or host.exit.reason}", at=host.exit.at)

    def is_over(self, host: Pod) -> bool:
        """Nothing of it works, and the operator has asked for that: another driver may be made."""
        return self.leave_by is not None and self.end_in(host) is not None

    def as_pod(self, host: Pod) -> Pod:
        """The driver's pod that it is to the rules. It leaves when asked to, or with the pod it is in.

        A consumer in a pool has one executor: the pool.
        """
        ends = [end for end in (self.leave_by, host.gone_by) if end is not None]
        return Pod(
            name=f"{self.name}-driver-{self.attempt}",
            uid=self.uid_in(host),
            role="driver",
            attempt=self.attempt,
            owner=self.consumer,
            owner_kind="KinesisConsumer",
            owner_name=self.name,
            phase=host.phase,
            gone_by=min(ends, default=None),
            started_at=self.began,
            spec_hash=self.spec_hash,
            target="1",
            exit=self.end_in(host),
            trouble=host.trouble,
            reported_at=self.reported_at,
            batch_at=self.batch_at,
            report=replace(self.report, executors=min(self.report.executors, 1)) if self.report else None,
        )


def seat_uid(host: str, consumer: str, attempt: int) -> str:
    """What stands for the uid of a seat: no other seat has it, nor has a pod."""
    return f"{host}/{consumer}.{attempt}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a consumer of a pool gets its next seat: a pod that works, or why there is none."""

    pool: str
    host: Pod | None
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Seating:
    """What a consumer has to do with pools.

    Attributes:
        place: where its next seat is; None: its next driver is a pod of its own.
        hosts: by the uid of a seat that it has, the pod that it is in, and the seat.
        over: the same of those that are over, in pods that run.
        unknown: the pool's image and account, which Jobs take, are not known.
        out_of: the pool that it was put out of. out: when and why.
    """

    place: Place | None = None
    hosts: Mapping[str, tuple[Pod, Seat]] = field(default_factory=dict)
    over: Mapping[str, tuple[Pod, Seat]] = field(default_factory=dict)
    unknown: bool = False
    out_of: str | None = None
    out: PutOut | None = None

    def fits(self, driver: Pod) -> bool:
        """Whether a driver that works is where it belongs: a seat of a member, else a pod of its own."""
        return driver.exit is not None or (driver.uid in self.hosts) == (self.place is not None)


ALONE = Seating()


@dataclass(frozen=True, slots=True)
class MemberVersion:
    """A consumer that names a pool, and what it is to run: the hash of its spec, and the annotation sluice.dev/restart.

    `wants`: it shall run.
    """

    name: str
    spec_hash: str
    restart: str | None = None
    wants: bool = True

    def is_same(self, out: PutOut) -> bool:
        """Whether nothing has changed since it was put out."""
        return (self.spec_hash, self.restart) == (out.spec_hash, out.restart)


@dataclass(frozen=True, slots=True)
class Members:
    """How many consumers name a pool, how many of them shall run, and how many are ready.

    Attributes:
        versions: what each of them is to run, by uid; None: nothing depends on it now.
        busy: by uid of a pod, those that had a batch open in it when it ended.
        max_deaths: in a row, after which a member is put out.
        orphans: seats, and the pods that they are in, of consumers that are gone. Somebody removed their finalizer.
    """

    all: int = 0
    wanting: int = 0
    ready: int = 0
    versions: Mapping[str, MemberVersion] | None = None
    busy: Mapping[str, frozenset[str]] = field(default_factory=dict)
    max_deaths: int = 3
    orphans: tuple[tuple[Pod, Seat], ...] = ()


@dataclass(frozen=True, slots=True)
class PutSeat:
    """Write the seat that the status names into this pod, if it still has this uid."""

    host: str
    uid: str
    seat: Seat


@dataclass(frozen=True, slots=True)
class EndSeat:
    """Ask the pool's driver to drain this seat by then. Condition: the pod has this uid, and is still there."""

    host: str
    uid: str
    seat: Seat


@dataclass(frozen=True, slots=True)
class ClearSeat:
    """Remove the annotations of a seat that is over, if the pod has this uid. However late: such a seat never works again."""

    host: str
    uid: str
    seat: Seat
