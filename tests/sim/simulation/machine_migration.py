"""The state machine of a consumer's beginning: pods of a migration Job, late, twice and crashed, beside the first epochs of its driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from simulation.epochs import Orders
from simulation.habits import Habits
from simulation.machine import LEASES, MAX_EPOCHS, Protocol, calls, habits, slots
from simulation.migration import Job
from simulation.ports import FAULTS
from simulation.world import World

MAX_JOBS = 3


class Beginning(Protocol):
    """A table that KCL's places are to be copied into, and drivers that know of it, or do not."""

    overtake = recreate = None  # type: ignore[assignment]  # other stories

    @initialize(shards=st.integers(1, 2), habits=habits, read=st.integers(0, 4), together=st.booleans(), migrate=st.sampled_from([True, True, False]))
    def begin(self, shards: int, habits: Habits, read: int, together: bool, migrate: bool) -> None:  # type: ignore[override]  # noqa: FBT001
        """A stream of which KCL has read a part."""
        self.world = World(shards, replace(habits, **self.only))
        self.start, self.mortal, self.migrate = "TRIM_HORIZON", False, migrate
        for shard in self.world.open_shards:
            self.world.put(shard, 1)
            self.world.put(shard, 3, together=together)
        self.world.kcl(dict.fromkeys(self.world.open_shards, read if migrate else 0))

    def _orders(self, lease: float = LEASES[0], **how: Any) -> Orders:
        return Orders(lease, start=self.start, migrate=self.migrate, **how)

    def _jobs(self) -> list[Any]:  # to the scheduler a Job is an epoch without a driver
        return [epoch for epoch in self.world.epochs if isinstance(epoch, Job)]

    @precondition(lambda self: len(self._jobs()) < MAX_JOBS and len(self.world.epochs) < MAX_EPOCHS)
    @rule(calls=calls)
    def migrates(self, calls: int) -> None:
        """A pod of the Job starts, and makes some calls."""
        self._goes_on(self.world.migrate(), calls)

    @rule(slot=slots, calls=calls, fault=st.sampled_from(["", *FAULTS]), what=st.sampled_from(["go on", "go on", "freeze", "crash"]))
    def job(self, slot: int, calls: int, fault: str, what: str) -> None:
        """A pod of the Job goes on, waits for what it has to wait for, and something happens to it, or to its next call."""
        found = [job for job in self._jobs() if not job.host.done and job.host not in self.world.frozen]
        if not found:
            return
        job = found[slot % len(found)]
        self._goes_on(job, calls)
        if fault and self.world.ready(job.host):
            self.world.step(job, job.host, None, fault=fault)
        if what == "crash":
            self.world.crash(job)
        elif what == "freeze" and not job.host.done:
            self.world.freeze(job.host)

    @precondition(lambda self: "consumer" in self.world.table.rows or not any(self.world.stream.parents.values()))
    @rule(keep=st.integers(0, 4))
    def pause(self, keep: int) -> None:
        """Nobody works until retention has taken the oldest records: KCL stopped a day before somebody moves from it, or the first epoch did.

        Not where children came meanwhile that KCL had not heard of: then a person has to say where those begin.
        """
        self.world.overtake(keep)

    @property
    def _places_are_known(self) -> bool:
        return "consumer" in self.world.table.rows  # until then a migration asks a person about shards that KCL had not heard of

    def _goes_on(self, job: Any, calls: int) -> None:
        for _ in range(calls):
            if job.host.done:
                return
            if job.host.waiting is not None and not self.world.ready(job.host):
                self.world.advance(max(0.0, (job.host.waiting.wake or 0.0) - self.world.time))
            elif self.world.ready(job.host):
                self.world.step(job, job.host, None)
