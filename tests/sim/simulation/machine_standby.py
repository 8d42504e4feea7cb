"""The state machine with drivers that stand by: at most two, started at any time, beside everything else."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from simulation.epochs import SimulatedEpoch
from simulation.machine import LEASES, MAX_EPOCHS, Protocol, after, calls, late, leases, slots

MAX_STANDING = 2


class Standing(Protocol):
    """Sluice, with drivers that stand by."""

    outage = retention = fade = poison = None  # type: ignore[assignment]  # other stories

    def _standing(self) -> list[SimulatedEpoch]:
        return [epoch for epoch in self.world.epochs if isinstance(epoch, SimulatedEpoch) and epoch.orders.standby and epoch.driver is None]

    def _waiting(self) -> list[SimulatedEpoch]:
        return [epoch for epoch in self._standing() if not epoch.host.done]

    @property
    def _may_stand_by(self) -> bool:
        return len(self._waiting()) < MAX_STANDING and len(self.world.epochs) < MAX_EPOCHS

    @precondition(lambda self: self._may_stand_by)
    @rule(lease=leases)
    def stand_by(self, lease: float) -> None:
        """A driver stands by."""
        self.world.settle(self.world.start(self._orders(lease, standby=True)))

    @precondition(lambda self: self._waiting())
    @rule(slot=slots, calls=calls, what=st.sampled_from(["freeze", "crash", "cut", "connect", "step"]))
    def disturb(self, slot: int, calls: int, what: str) -> None:
        """A standby stands still, dies, loses its way to the table or finds it again, or makes some calls while nobody else does."""
        standby = self._waiting()[slot % len(self._waiting())]
        if what == "freeze" and standby.host not in self.world.frozen:
            self.world.freeze(standby.host)
        elif what == "crash":
            self.world.crash(standby)
        elif what in {"cut", "connect"}:
            standby.cut = what == "cut"
        else:
            self._late(standby.host, calls)

    @precondition(lambda self: self._may_stand_by)
    @rule(slot=slots, batches=st.integers(0, 2), calls=calls, what=st.sampled_from(["drain", "drain", "crash", "freeze"]), after=after, late=late)
    def change_over(self, slot: int, batches: int, calls: int, what: str, after: int, late: int) -> None:
        """A driver stands by while another works, which drains, dies or stands still; the standby goes on; then who stood still does."""
        epoch, found = self._epoch(slot), None
        heir = self.world.start(self._orders(standby=True))
        self.world.settle(heir)
        if epoch is not None:
            self.world.work(epoch, batches)
            self.world.work(epoch, calls=calls)
            found = self._attempt(slot) if late else None
            if what == "drain":
                epoch.draining = True
                self.world.work(epoch, 2)
            elif epoch.working:
                self.world.freeze_epoch(epoch) if what == "freeze" else self.world.crash(epoch)
        self.world.advance(max(LEASES) * 1.05 + 1)
        self.world.work(heir, batches=3, calls=after)
        self._late(found[1].process if found else None, late)
        if what == "freeze" and epoch is not None:
            self._late(epoch.driver, late)
