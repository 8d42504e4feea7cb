"""The state machine: hypothesis chooses the faults and whose turn it is; the invariants are those of docs/protocol.md, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import LATE, NOTHING, PROCESSES, Habits
from simulation.handover import OTHER, OWNER
from simulation.outages import PARTS, SECONDS, Outage
from simulation.ports import FAULTS
from simulation.spark import Attempt
from simulation.turnstile import Process
from simulation.world import World

from sluice_consumer.shards.reader import FOLLOWED

LEASES = (12.0, 30.0)
MAX_EPOCHS = 6
MAX_SHARDS = 7
slots = st.integers(0, 7)
steps = st.integers(1, 6)
calls = st.integers(0, 24)
after = st.one_of(st.integers(0, 8), st.integers(0, 60))
late = st.integers(0, 6)
leases = st.sampled_from(LEASES)
habits = st.builds(
    Habits,
    processes=st.lists(st.sampled_from(PROCESSES), min_size=1, max_size=2).map(tuple).filter(lambda kinds: set(kinds) != {NOTHING}),
    looks_first=st.booleans(),
    attempts=st.sampled_from([3, 1, 2]),
    shards_per_task=st.sampled_from([1, 2]),
    bind_all_first=st.booleans(),
    end_with_records=st.booleans(),
    only_close=st.booleans(),
    isolates=st.booleans(),
    overdue=st.booleans(),
    straggles=st.booleans(),
    own_session=st.booleans(),
    interval=st.sampled_from([0.0, 0.0, 5.0]),
    probes=st.sampled_from([500, 1, 2]),
    refreshes=st.sampled_from([128, 1]),
    picks=st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple),
    folds=st.sampled_from([1, 0]),
    page=st.sampled_from([0, 0, 2]),
    sparse=st.sampled_from([0, 0, FOLLOWED + 1]),
    rates=st.sampled_from([(1.0,), (0.99, 1.01), (1.01, 0.99), (1.01, 1.0, 0.99)]),
).map(lambda drawn: replace(drawn, looks_first=drawn.looks_first or drawn.only_close or LATE in drawn.processes))
# Who marks what it has not read must look first; so must who raises when its sink has the batch: else an outage hides that it has.


class Protocol(RuleBasedStateMachine):
    """Sluice, its stream and its table, and everything that can go wrong with them."""

    only: ClassVar[Mapping[str, Any]] = {}  # habits that are not drawn, for mutants
    shared = False  # another owner names the table

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize(
        shards=st.integers(1, 3),
        habits=habits,
        start=st.sampled_from(["TRIM_HORIZON", "LATEST"]),
        records=st.integers(0, 4),
        lease=leases,
        whole=st.booleans(),
        mortal=st.sampled_from([False, False, False, True]),
        shared=st.sampled_from([False, False, True]),
    )
    def begin(self, shards: int, habits: Habits, start: str, records: int, lease: float, whole: bool, mortal: bool, shared: bool = False) -> None:  # noqa: FBT001, FBT002, PLR0917 - hypothesis passes names
        """A stream, and the first epoch; sometimes its bootstrap can be interrupted, one day the stream may be deleted, or another owner come."""
        self.world = World(shards, replace(habits, **self.only))
        self.start, self.mortal, self.shared = start, mortal, shared
        for shard in self.world.open_shards:
            self.world.put(shard, records)
        epoch = self.world.start(self._orders(lease))
        if whole:
            self.world.settle(epoch)
            self.world.work(epoch)

    def _orders(self, lease: float = LEASES[0], **how: Any) -> Orders:
        return replace(self.world.owned, lease=lease, start=self.start, **how)

    # -- choices -------------------------------------------------------------------------------------------------------------------

    def _epoch(self, slot: int) -> SimulatedEpoch | None:
        epochs = [epoch for epoch in self.world.epochs if epoch.working]
        return epochs[slot % len(epochs)] if epochs else None

    def _attempt(self, slot: int) -> tuple[SimulatedEpoch, Attempt] | None:
        found = [(epoch, attempt) for epoch, _, attempt in self.world.processes() if attempt is not None and attempt.process not in self.world.frozen]
        return found[slot % len(found)] if found else None

    def _shard(self, slot: int) -> str:
        shards = self.world.open_shards
        return shards[slot % len(shards)]

    # -- the stream ----------------------------------------------------------------------------------------------------------------

    @rule(slot=slots, records=st.integers(1, 3), together=st.booleans())
    def put(self, slot: int, records: int, together: bool) -> None:  # noqa: FBT001 - hypothesis passes names
        """Records arrive, each alone or in one aggregate; one that holds nothing comes before those of two."""
        if together and records == 2:
            self.world.put(self._shard(slot), 0, together=True)
        self.world.put(self._shard(slot), records, together=together)

    @precondition(lambda self: self.world.habits.isolates)
    @rule(slot=slots, records=st.integers(1, 4), poison=st.integers(0, 3), together=st.booleans())
    def poison(self, slot: int, records: int, poison: int, together: bool) -> None:  # noqa: FBT001
        """Records arrive, and `process` cannot deal with one of them."""
        self.world.put(self._shard(slot), records, together=together, poison=poison % records)

    @precondition(lambda self: self.world.habits.isolates and self.world.outages == 0)
    @rule(slot=slots, batches=st.integers(1, 3), calls=calls, part=st.sampled_from(PARTS), which=st.integers(0, 9))
    def outage(self, slot: int, batches: int, calls: int, part: str, which: int) -> None:
        """For less than a minute, once, `process` fails on everything or on a part, by the error of a poison record."""
        self.world.outages += 1
        self.world.outage = Outage(part, which, until=self.world.time + SECONDS)
        if epoch := self._epoch(slot):
            for _ in range(batches):
                self.world.work(epoch, calls=calls)
                self.world.until_it_looks(epoch)

    @precondition(lambda self: len(self.world.stream.parents) < MAX_SHARDS)
    @rule(slot=slots, records=st.integers(0, 2))
    def split(self, slot: int, records: int) -> None:
        """A shard is split, and records arrive in its children at once."""
        self.world.split(self._shard(slot))
        for shard in self.world.open_shards[-2:]:
            self.world.put(shard, records)

    @precondition(lambda self: len(self.world.open_shards) > 1 and len(self.world.stream.parents) < MAX_SHARDS)
    @rule(slot=slots, records=st.integers(0, 2))
    def merge(self, slot: int, records: int) -> None:
        """Two shards are merged, and records arrive in the child at once."""
        if self.world.merge(self._shard(slot)):
            self.world.put(self.world.open_shards[-1], records)

    @precondition(lambda self: self.mortal and not self.world.another_stream)
    @rule(shards=st.integers(1, 3), records=st.integers(0, 3))
    def recreate(self, shards: int, records: int) -> None:
        """The stream is deleted and made again, and records arrive in it at once."""
        self.world.recreate(shards)
        for shard in self.world.open_shards:
            self.world.put(shard, records)

    # -- progress ------------------------------------------------------------------------------------------------------------------

    @rule(slot=slots, batches=st.integers(1, 3))
    def work(self, slot: int, batches: int) -> None:
        """An epoch works undisturbed for a while."""
        if epoch := self._epoch(slot):
            self.world.work(epoch, batches)

    @rule(slot=slots, count=steps)
    def step(self, slot: int, count: int) -> None:
        """Some process makes some calls."""
        for _ in range(count):
            if found := self.world.runnable():
                self.world.step(*found[slot % len(found)])

    @rule(slot=slots, count=steps)
    def zombie(self, slot: int, count: int) -> None:
        """An attempt that the driver has given up makes some calls."""
        for _ in range(count):
            if found := [entry for entry in self.world.runnable() if entry[2] is not None and entry[2].lost]:
                self.world.step(*found[slot % len(found)])

    @rule(slot=slots)
    def audit(self, slot: int) -> None:
        """A driver looks for shards that nobody accounts for, before its next batch."""
        if epoch := self._epoch(slot):
            epoch.audit = True

    @rule(fraction=st.sampled_from([0.05, 0.2, 0.4, 1.1]))
    def advance(self, fraction: float) -> None:
        """Time passes."""
        self.world.advance(fraction * LEASES[0])

    # -- faults, in the middle of a batch ------------------------------------------------------------------------------------------

    @rule(slot=slots, calls=calls, fault=st.sampled_from(FAULTS))
    def fault(self, slot: int, calls: int, fault: str) -> None:
        """A call of some process fails, or its reply is lost."""
        if epoch := self._epoch(slot):
            self.world.work(epoch, calls=calls)
        if found := self.world.runnable():
            self.world.step(*found[slot % len(found)], fault=fault)

    @rule(slot=slots, calls=calls, what=st.sampled_from(["kill", "lose", "lose", "lose frozen"]), after=after, late=late)
    def executor(self, slot: int, calls: int, what: str, after: int, late: int) -> None:
        """The executor of a task dies, or is cut off from the driver: a zombie, that may stand still; the batch goes on; the zombie goes on."""
        epoch = self._epoch(slot)
        if epoch is not None:
            self.world.work(epoch, calls=calls)
        if not (found := self._attempt(slot)):
            return
        if what == "kill":
            self.world.kill_attempt(*found)
            return
        if what == "lose frozen":
            self.world.freeze(found[1].process)
        self.world.lose_attempt(*found)
        if epoch is not None:
            self.world.work(epoch, calls=after)
        self._late(found[1].process, late)

    @rule(slot=slots, calls=calls, what=st.sampled_from(["crash", "crash", "freeze", "drain", "cut", "connect"]))
    def driver(self, slot: int, calls: int, what: str) -> None:
        """A driver's node dies or stands still; it gets SIGTERM; its supervisor loses its way to the table, or finds it again."""
        if not (epoch := self._epoch(slot)):
            return
        self.world.work(epoch, calls=calls)
        if what == "crash":
            self.world.crash(epoch)
        elif what == "freeze" and epoch.working:
            self.world.freeze_epoch(epoch)
        elif what == "drain":
            epoch.draining = True
        else:
            epoch.cut = what == "cut"

    @precondition(lambda self: self.world.frozen)
    @rule(slot=slots, count=st.integers(1, 12))
    def thaw(self, slot: int, count: int) -> None:
        """Something that stood still goes on."""
        hosts = {epoch.host for epoch in self.world.epochs if epoch.driver is not None and not epoch.driver.done}
        frozen: list[Process] = [process for process in self.world.frozen if process not in hosts]
        if frozen:
            self.world.thaw(frozen[slot % len(frozen)], count)

    # -- epochs ---------------------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.epochs) < MAX_EPOCHS)
    @rule(lease=leases, force=st.booleans())
    def start_epoch(self, lease: float, force: bool) -> None:  # noqa: FBT001
        """Another driver pod starts."""
        self.world.settle(self.world.start(self._orders(lease, force=force)))

    @precondition(lambda self: self.shared and len(self.world.epochs) < MAX_EPOCHS)
    @rule(slot=slots, calls=calls, what=st.sampled_from(["start", "start", "force", "hand over"]), far=st.booleans(), late=late)
    def stranger(self, slot: int, calls: int, what: str, far: bool, late: int) -> None:  # noqa: FBT001
        """A driver of another owner starts: another name, or the same in another cluster; or a person hands the table over. The owner goes on."""
        epoch, found = self._epoch(slot), None
        if epoch is not None:
            self.world.work(epoch, calls=calls)
            found = self._attempt(slot)
        if what == "hand over" and "consumer" in self.world.table.rows:  # who hands over what is not there is told so
            other = self.world.hand_over(OTHER if self.world.owned.owner == OWNER else OWNER)
        else:
            whose = {"clusters": ("c2",)} if far else {"owner": OTHER}
            other = self.world.start(self._orders(force=what == "force", **whose))
        self.world.settle(other)
        self.world.advance(max(LEASES) * 1.05 + 1)
        if isinstance(other, SimulatedEpoch):
            self.world.work(other)
        self._late(found[1].process if found else None, late)

    @precondition(lambda self: len(self.world.epochs) < MAX_EPOCHS)
    @rule(
        slot=slots, calls=calls, lease=leases, what=st.sampled_from(["crash", "freeze", "leave a zombie", "leave a zombie"]), after=after, late=late
    )
    def succeed(self, slot: int, calls: int, lease: float, what: str, after: int, late: int) -> None:
        """An epoch crashes or freezes in the middle of something; the next one watches its lease, takes over and works; then who froze goes on."""
        epoch, zombie = self._epoch(slot), None
        if epoch is not None:
            self.world.work(epoch, calls=calls)
            zombie, found = epoch.driver, self._attempt(slot)
            if what == "leave a zombie" and found and found[0] is epoch:
                zombie = found[1].process
                self.world.freeze(zombie)
            if epoch.working:
                self.world.freeze_epoch(epoch) if what == "freeze" else self.world.crash(epoch)
        heir = self.world.start(self._orders(lease))
        self.world.settle(heir)
        self.world.advance(max(LEASES) * 1.05 + 1)
        self.world.work(heir, batches=3, calls=after)
        self._late(zombie, late)

    @precondition(lambda self: len(self.world.epochs) < MAX_EPOCHS)
    @rule(slot=slots, calls=calls, lease=leases, after=after, late=late, crash=st.booleans())
    def usurp(self, slot: int, calls: int, lease: float, after: int, late: int, crash: bool) -> None:  # noqa: FBT001
        """An epoch is taken over by force while it works, and whoever did that may crash at once."""
        epoch, found = self._epoch(slot), None
        if epoch is not None:
            self.world.work(epoch, calls=calls)
            found = self._attempt(slot)
        usurper = self.world.start(self._orders(lease, force=True))
        self.world.settle(usurper)
        self.world.work(usurper, calls=after)
        self._late(found[1].process if found else None, late)
        if crash:
            self.world.crash(usurper)

    @precondition(lambda self: len(self.world.epochs) < MAX_EPOCHS)
    @rule(slot=slots, calls=calls, keep=st.integers(0, 4), accept=st.sampled_from([True, True, False]), after=after, late=late)
    def overtake(self, slot: int, calls: int, keep: int, accept: bool, after: int, late: int) -> None:  # noqa: FBT001
        """All epochs die; nobody works until retention has taken the oldest records; the next epoch begins, with a person's word or without."""
        epoch, found = self._epoch(slot), None
        if epoch is not None:
            self.world.work(epoch, calls=calls)
            found = self._attempt(slot) if late else None
        if found:
            self.world.freeze(found[1].process)
        self.world.overtake(keep)
        heir = self.world.start(self._orders(accept=self.world.ledger.committed + 1 if accept else None))
        self.world.settle(heir)
        self.world.advance(max(LEASES) * 1.05 + 1)
        self.world.work(heir, batches=3, calls=after)
        self._late(found[1].process if found else None, late)

    @precondition(lambda self: self.world.retention_is_known and len(self.world.epochs) < MAX_EPOCHS)
    @rule(slot=slots, calls=calls, records=st.integers(0, 2), hours=st.sampled_from([3, 26]), days=st.sampled_from([7, 7, 1]), after=after)
    def retention(self, slot: int, calls: int, records: int, hours: int, days: int, after: int) -> None:
        """All epochs die. The retention is raised or lowered, before records have expired or too late. The next epoch begins a day later."""
        if epoch := self._epoch(slot):
            self.world.work(epoch, calls=calls)
        for shard in self.world.open_shards:
            self.world.put(shard, records)
        self.world.keep_records_for(days, hours)
        self._one_for_each()
        self.world.advance(22 * 3600)
        self.world.stream.expire()
        heir = self.world.start(self._orders(accept=self.world.ledger.committed + 1))
        self.world.settle(heir)
        self.world.advance(max(LEASES) * 1.05 + 1)
        self.world.work(heir, batches=3, calls=after)

    @precondition(
        lambda self: (
            self.world.habits.folds and self._places_are_known and len(self.world.epochs) < MAX_EPOCHS and len(self.world.stream.parents) < MAX_SHARDS
        )
    )
    @rule(slot=slots, calls=calls, audits=st.integers(1, 4), after=after, late=late)
    def fade(self, slot: int, calls: int, audits: int, after: int, late: int) -> None:
        """A shard is split and read to its end. Everybody dies, until it has left the stream; the next epoch lists the shards some times."""
        epoch, found = self._epoch(slot), None
        self.world.split(self._shard(slot))
        self._one_for_each()
        if epoch is not None:
            self.world.work(epoch, 5)
            self.world.work(epoch, calls=calls)
            found = self._attempt(slot) if late else None
        if found:
            self.world.freeze(found[1].process)
        self.world.overtake(0)
        heir = self.world.start(self._orders())
        self.world.settle(heir)
        self.world.advance(max(LEASES) * 1.05 + 1)
        for _ in range(audits):
            self._one_for_each()
            heir.audit = True
            self.world.work(heir, 2)
        heir.audit = True
        self.world.work(heir, calls=after)
        self._late(found[1].process if found else None, late)

    @property
    def _places_are_known(self) -> bool:
        """Whether nobody has to be asked where a shard begins, however many come and go."""
        return True

    def _one_for_each(self) -> None:
        for shard in self.world.open_shards:
            self.world.put(shard)

    def _late(self, process: Process | None, calls: int) -> None:
        """Somebody that nobody expects any more makes some calls."""
        if process in self.world.frozen:
            self.world.thaw(process, calls)
            return
        for _ in range(calls):
            if found := [entry for entry in self.world.runnable() if entry[1] is process]:
                self.world.step(*found[0])

    # -- invariants ----------------------------------------------------------------------------------------------------------------

    @invariant()
    def claims_hold(self) -> None:
        """Each of `ledger.INVARIANTS`."""
        for name, how in self.world.ledger.broken:
            for line in self.world.trace:
                note(line)
            raise AssertionError(f"{name}: {how}")

    def teardown(self) -> None:
        """Faults end: everything is delivered, and late zombies change nothing."""
        try:
            if not self.world.ledger.broken and self.world.epochs:
                self.world.finish()
            self.claims_hold()
        finally:
            self.world.end()


RULES = frozenset(
    {
        "poison",
        "outage",
        "split",
        "merge",
        "step",
        "zombie",
        "audit",
        "advance",
        "fault",
        "executor",
        "driver",
        "thaw",
        "start_epoch",
        "succeed",
        "usurp",
        "overtake",
        "retention",
        "fade",
        "recreate",
        "stranger",
    }
)


def focused(rules: frozenset[str], habits: Mapping[str, Any]) -> type[Protocol]:
    """The machine with some of its rules only (beside `put` and `work`), in worlds of some habits only."""
    hidden = RULES - rules if rules else frozenset()
    return type("Focused", (Protocol,), {"only": habits} | dict.fromkeys(hidden))
