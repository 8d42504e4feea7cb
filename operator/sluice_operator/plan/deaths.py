"""Members that end the process of their pool, and when one is put out of it (docs/pools.md, "A member that ends the process"). Pure.

A death names suspects, of which one is the cause. The others are named by chance, so a death that does not name them clears them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan.record import DISRUPTIONS, REFUSED, SAID_SO
from sluice_operator.state.seats import MemberVersion
from sluice_operator.state.status import DeathsStatus, MemberDeaths, PutOut

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.status import Status
    from sluice_operator.state.view import View

STABLE = timedelta(hours=1)
SHARE = 4  # a quarter of the members may be out
MOST = 1_000_000  # deaths that are counted
NO_DEATHS = {0, REFUSED, *SAID_SO}


@dataclass(frozen=True, slots=True)
class Death:
    """A process of a pool that ended without being asked to.

    Attributes:
        pod: its uid.
        at: when. worked: for how long it had run.
        named: names of the members that may be the cause.
    """

    pod: str
    at: datetime
    worked: timedelta
    named: frozenset[str]


Versions = Mapping[str, MemberVersion]
"""The consumers that name a pool, by uid."""


def counted(before: DeathsStatus | None, death: Death, members: Versions, most: int) -> DeathsStatus:
    """The memory after this death, which counts once.

    Args:
        before: the memory.
        death: the process that ended.
        members: all that name the pool, those that are out included.
        most: deaths in a row after which a member is put out.
    """
    if before is not None and before.pod == death.pod:
        return before
    out = returned(before, members).out if before else ()
    gone = {member.uid for member in out}
    former = {member.uid: member.deaths for member in before.named} if before and death.worked < STABLE else {}
    named = [
        MemberDeaths(uid=uid, name=member.name, deaths=min(former.get(uid, 0), MOST) + 1)
        for uid, member in sorted(members.items(), key=lambda item: item[1].name)
        if member.name in death.named and uid not in gone
    ]
    reached = [member for member in named if member.deaths >= most]
    if len(reached) + len(out) > places(len(members)):
        return DeathsStatus(pod=death.pod, named=tuple(named), out=out)
    new = (_put_out(member, members[member.uid], death.at) for member in reached)
    return DeathsStatus(pod=death.pod, named=tuple(member for member in named if member.deaths < most), out=(*out, *new))


def _put_out(member: MemberDeaths, version: MemberVersion, since: datetime) -> PutOut:
    return PutOut(uid=member.uid, name=member.name, deaths=member.deaths, since=since, spec_hash=version.spec_hash, restart=version.restart)


def places(members: int) -> int:
    """How many of so many members may be out at a time: a quarter, and one at least. One that is alone disturbs nobody."""
    return max(1, members // SHARE) if members > 1 else 0


def returned(before: DeathsStatus, members: Versions) -> DeathsStatus:
    """Without those that are gone or name another pool; and of those that are out, without those that have changed: these return."""
    kept = tuple(member for member in before.out if (version := members.get(member.uid)) is not None and version.is_same(member))
    return replace(before, named=tuple(member for member in before.named if member.uid in members), out=kept)


def wanting(view: View) -> int:
    """How many members shall run in the pool's pod: not those that are out."""
    members, deaths = view.members, view.status.deaths
    if members is None or deaths is None:
        return members.wanting if members else 0
    out = {member.uid for member in returned(deaths, members.versions or {}).out}
    return members.wanting - sum(member.wants for uid, member in (members.versions or {}).items() if uid in out)


def suspects(deaths: DeathsStatus | None, most: int) -> tuple[str, ...]:
    """Names of members that reached the limit and are not put out, because too many did."""
    return tuple(member.name for member in deaths.named if member.deaths >= most) if deaths else ()


def note(view: View) -> Status:
    """The status of a pool with the death of its pod in it, if there is one; and without members that return."""
    members, before = view.members, view.status.deaths
    if members is None or members.versions is None:
        return view.status
    death = death_of(view)
    if death is not None:
        return replace(view.status, deaths=counted(before, death, members.versions, members.max_deaths))
    if before is not None:
        before = returned(before, members.versions)
        before = replace(before, named=()) if _is_stable(view) else before
    return replace(view.status, deaths=before)


def _is_stable(view: View) -> bool:
    """Whether the pool's process works, and has for an hour: this clears all numbers, whether it ever dies again or not."""
    pod = view.driver_pod
    return pod is not None and pod.exit is None and pod.started_at is not None and view.now - pod.started_at >= STABLE


def death_of(view: View) -> Death | None:
    """The death of the pool's pod; None: it works, was asked to end, or was taken away."""
    pod = view.driver_pod
    if pod is None or pod.exit is None or pod.deleting or view.driver.stopping:
        return None
    end = pod.exit
    if end.code in NO_DEATHS or end.reason in DISRUPTIONS:
        return None
    busy = view.members.busy.get(pod.uid, frozenset()) if view.members else frozenset[str]()
    worked = end.at - pod.started_at if pod.started_at else timedelta()
    return Death(pod.uid, end.at, worked, busy if pod.working is None else frozenset(pod.working))
