"""The state machine with resets: to the oldest record, the tip or a time, of all shards or some; crashed, frozen, twice, beside everything else."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from simulation.machine import LEASES, MAX_EPOCHS, Protocol, after, calls, late, slots
from simulation.ports import FAULTS
from simulation.reset import Reset

MAX_RESETS = 3
TARGETS = ("trimHorizon", "trimHorizon", "latest", 3.0, 20.0, 100.0, 3600.0)
MAX_WITH_RESETS = MAX_EPOCHS + 4


class Resetting(Protocol):
    """Sluice, and a person who moves its positions."""

    recreate = stranger = outage = retention = None  # type: ignore[assignment]  # other stories

    def _resets(self) -> list[Any]:  # to the scheduler a command is an epoch without a driver
        return [epoch for epoch in self.world.epochs if isinstance(epoch, Reset)]

    @property
    def _may_reset(self) -> bool:
        return "consumer" in self.world.table.rows and len(self._resets()) < MAX_RESETS and len(self.world.epochs) < MAX_WITH_RESETS

    @precondition(lambda self: self._may_reset)
    @rule(slot=slots, batches=st.integers(0, 3), to=st.sampled_from(TARGETS), part=st.integers(0, 3), after=after)
    def drain_and_reset(self, slot: int, batches: int, to: str | float, part: int, after: int) -> None:
        """A driver works and drains, the command makes all its calls, and the next driver begins."""
        epoch = self._epoch(slot)
        if epoch is not None:
            self.world.work(epoch, batches)
            epoch.draining = True
            self.world.work(epoch)
        self.world.advance(3)
        self._makes(self.world.reset(to, f"r{len(self._resets())}", self._some(part), give_up=self._is_open), 0, "go on")
        heir = self.world.start(self._orders())
        self.world.settle(heir)
        self.world.advance(max(LEASES) * 1.05 + 1)
        self.world.work(heir, batches=3, calls=after)

    @property
    def _is_open(self) -> bool:
        rows = self.world.table.rows
        return any(row.get("batch", 0) > rows["consumer"]["committed"] for key, row in rows.items() if key.startswith("shard/"))

    @precondition(lambda self: self._may_reset)
    @rule(
        slot=slots,
        before=calls,
        stops=st.sampled_from(["drain", "drain", "crash", "freeze", "no"]),
        to=st.sampled_from(TARGETS),
        part=st.integers(0, 3),
        give_up=st.sampled_from([True, True, False]),
        again=st.booleans(),
        made=st.integers(0, 40),
        then=st.sampled_from(["go on", "go on", "crash", "freeze", *FAULTS]),
        after=after,
        late=late,
    )
    def reset(  # noqa: PLR0917 - hypothesis passes names
        self,
        slot: int,
        before: int,
        stops: str,
        to: str | float,
        part: int,
        give_up: bool,  # noqa: FBT001
        again: bool,  # noqa: FBT001
        made: int,
        then: str,
        after: int,
        late: int,
    ) -> None:
        """A driver works, and stops or does not; the command makes some calls, and something happens to it; a driver goes on, then the command."""
        epoch, found = self._epoch(slot), None
        if epoch is not None:
            self.world.work(epoch, calls=before)
            found = self._attempt(slot) if late else None
            if stops == "drain":
                epoch.draining = True
                self.world.work(epoch)
            elif stops != "no" and epoch.working:
                self.world.freeze_epoch(epoch) if stops == "freeze" else self.world.crash(epoch)
        self.world.advance(3)
        name = f"r{len(self._resets()) - again}"
        command: Any = self.world.reset(to, name, self._some(part), give_up=give_up and self._is_open)
        self._makes(command, made, then)
        heir = self.world.start(self._orders())
        self.world.settle(heir)
        self.world.advance(max(LEASES) * 1.05 + 1)
        self.world.work(heir, batches=3, calls=after)
        self._late(found[1].process if found else None, late)
        self._late(command.host, late)

    def _some(self, part: int) -> list[str]:
        """All shards, or one with all that follow it, or one alone."""
        ids = sorted(self.world.stream.shards)
        if part < 2 or self.world.another_stream:
            return []
        first = ids[len(ids) // 2]
        found, parents = {first}, self.world.stream.parents
        if part == 2:
            for shard in ids:
                if found & set(parents.get(shard, ())):
                    found.add(shard)
        return sorted(found)

    def _makes(self, command: Any, made: int, then: str) -> None:
        """A command waits for what it has to wait for, makes some calls, and something happens to it or to its next call."""
        self.world.settle(command)
        for _ in range(made):
            self._wakes(command)
            if self.world.ready(command.host):
                self.world.step(command, command.host, None)
        if command.host.done:
            return
        if then == "crash":
            self.world.crash(command)
        elif then == "freeze":
            self.world.freeze(command.host)
        else:
            self._wakes(command)
            if then in FAULTS and self.world.ready(command.host):
                self.world.step(command, command.host, None, fault=then)
            while not command.host.done:
                self._wakes(command)
                if self.world.ready(command.host):
                    self.world.step(command, command.host, None)

    def _wakes(self, command: Any) -> None:
        """Time passes until it wakes up; it makes no call yet."""
        host = command.host
        if host.done or host.waiting is None or self.world.ready(host):
            return
        self.world.frozen[host] = self.world.time
        self.world.advance(max(0.0, (host.waiting.wake or 0.0) - self.world.time))
        del self.world.frozen[host]
