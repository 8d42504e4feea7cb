"""Which of several operators acts: one candidate's side of an election by a Lease. No threads and no sleeping here.

The rules are client-go's (tools/leaderelection), and stricter where those leave a gap:

* No clock of another machine is compared. A candidate watches the Lease's resourceVersion, and measures by its own
  monotonic clock for how long it was unchanged. `renewTime` is written for people.
* A leader counts its time from the moment at which a confirmed renewal was *sent*; others count theirs from the moment at
  which they saw it, which is later. So it stops (`deadline`) before another takes over (`duration`).
* Every write is conditional on the resourceVersion that was seen, or on there being no Lease.
* A leader that finds another's name, or was late, never acts again: `LostLeadership`, and the process ends.
* An absent Lease does not mean that there is no leader. A candidate waits for `duration` then too, also at the very first
  start, unless the chart ships an empty Lease (`lease.install`).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sluice_operator.cluster.port import ApiError
from sluice_operator.untrusted.values import named, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.cluster.port import Cluster

Json = dict[str, Any]

LOG = logging.getLogger("sluice")
LONGEST = 60.0  # seconds of a Lease's duration that count: anybody who may write the Lease could stop all operators for years
TRANSITIONS = 2**31 - 1  # the API's number has 32 bits
NO_HOLDER, UNKNOWN_HOLDER, ABSENT = "", "somebody", ""
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # it runs while the machine is suspended, as the clocks of others do


def uptime() -> float:
    """Seconds since this machine started."""
    return time.clock_gettime(CLOCK)


class LostLeadership(Exception):
    """Another process leads, or may lead by now. This process may not write any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTimings:
    """Seconds: others take over after `duration` without a renewal, a leader gives up after `deadline`, and reads are `retry` apart."""

    duration: float = 15
    deadline: float = 10
    retry: float = 2


@dataclass(frozen=True, slots=True)
class LeaseRef:
    """The Lease, and the identity of this candidate: a new one for each process, even in the same pod."""

    namespace: str
    name: str
    identity: str


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """The Lease as seen last, and since when, by this process's clock."""

    version: str
    holder: str
    duration: float
    transitions: int
    since: float


class Candidate:
    """One process's part in the election. One thread calls `turn` repeatedly; any thread may call `leads`."""

    def __init__(self, cluster: Cluster, ref: LeaseRef, timings: ElectionTimings, clock: Callable[[], float] = uptime) -> None:
        self._cluster, self._ref, self._timings, self._clock = cluster, ref, timings, clock
        self._lease: ObservedLease | None = None
        self._until: float | None = None

    def leads(self) -> bool:
        """Whether it may act at this moment."""
        until = self._until
        return until is not None and self._clock() < until

    def over(self) -> bool:
        """Whether it led and may not any more."""
        return self._until is not None and not self.leads()

    def acquire_or_renew(self) -> float:
        """Read the Lease, and write it if this candidate holds it or it is free. Seconds until the next turn.

        Raises:
            LostLeadership: it led, and may not any more.
        """
        try:
            there = self._cluster.get("Lease", self._ref.namespace, self._ref.name)
            self._see(there)
            if self._may_write():
                self._write(there)
        except ApiError as error:
            LOG.warning("the Lease %s/%s: %s", self._ref.namespace, self._ref.name, error)
        if self.over():
            raise LostLeadership("the Lease was not renewed in time")
        return self._pause()

    def release(self) -> None:
        """Stop leading, and release the Lease, so that the next leader need not wait. Call it when no reconcile runs any more."""
        led, self._until = self.leads(), float("-inf")
        if not led or self._lease is None:
            return
        try:
            self._patch(self._lease, {"holderIdentity": NO_HOLDER, "leaseDurationSeconds": 1, "renewTime": _stamp()})
        except ApiError as error:
            LOG.warning("the Lease was not released: %s", error)

    def _see(self, there: Json | None) -> None:
        if there is None:
            self._miss()
            return
        spec, version = part(there, "spec"), named(there, "resourceVersion")
        if self._lease is None or self._lease.version != version:
            duration = min(float(whole(spec.get("leaseDurationSeconds")) or 0), LONGEST)
            holder = text(spec, "holderIdentity") or NO_HOLDER
            self._lease = ObservedLease(version, holder, duration, (whole(spec.get("leaseTransitions")) or 0) % TRANSITIONS, self._clock())
        if self._until is not None and self._lease.holder != self._ref.identity:
            self._until = float("-inf")
            raise LostLeadership(f"{self._lease.holder or 'nobody'} holds the Lease now")

    def _miss(self) -> None:
        """The Lease is absent. Its last holder may still lead, so the absence is timed like a version of the Lease."""
        seen = self._lease
        if self.leads() or (seen is not None and seen.version == ABSENT):
            return
        self._lease = ObservedLease(ABSENT, UNKNOWN_HOLDER, seen.duration if seen else 0, seen.transitions if seen else 0, self._clock())

    def _may_write(self) -> bool:
        """Whether the Lease is this candidate's or free. Never true after this candidate's leadership is over."""
        seen = self._lease
        if seen is None or self.over():
            return False
        if seen.holder == self._ref.identity:
            return True
        return seen.holder == NO_HOLDER or self._clock() >= self._free_at(seen)

    def _free_at(self, seen: ObservedLease) -> float:
        """When the Lease becomes free. Operators of two versions may have different durations; the longer one counts."""
        return seen.since + max(self._timings.duration, seen.duration)

    def _write(self, there: Json | None) -> None:
        seen, now = self._lease, _stamp()
        spec: Json = {"holderIdentity": self._ref.identity, "leaseDurationSeconds": int(self._timings.duration), "renewTime": now}
        if seen is None or seen.holder != self._ref.identity:
            spec |= {"acquireTime": now, "leaseTransitions": seen.transitions + 1 if seen else 0}
        sent = self._clock()
        self._see(self._patch(seen, spec) if there is not None and seen is not None else self._create(spec))
        self._until = sent + self._timings.deadline

    def _patch(self, seen: ObservedLease, spec: Json) -> Json:
        condition = {"resourceVersion": seen.version}
        return self._cluster.patch("Lease", self._ref.namespace, self._ref.name, {"metadata": condition, "spec": spec})

    def _create(self, spec: Json) -> Json:
        head = {"namespace": self._ref.namespace, "name": self._ref.name}
        return self._cluster.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": head, "spec": spec})

    def _pause(self) -> float:
        """Seconds until the next turn. A follower reads the Lease at the moment at which it becomes free."""
        seen = self._lease
        if seen is None or self._until is not None or seen.holder in {NO_HOLDER, self._ref.identity}:
            return self._timings.retry
        left = self._free_at(seen) - self._clock()
        return min(self._timings.retry, left) if left > 0 else self._timings.retry


def _stamp() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
