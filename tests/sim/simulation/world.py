"""The simulated world: one table, one stream, a source to migrate from, epochs and Jobs that come and go. A test drives it; the ledger judges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, cast

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import Habits
from simulation.handover import CLUSTER, OWNER, Handover
from simulation.ledger import Ledger
from simulation.migration import Job, kcl_table
from simulation.outages import Outage
from simulation.reset import LEASE_MILLIS, Reset
from simulation.rows import Writer
from simulation.scheduler import MAX_STEPS, Scheduler
from simulation.spark import BatchOverdue
from simulation.stream import Stream, UserRecord
from simulation.turnstile import Process

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.positions.target import ResetRequest, ResetTarget
from sluice_checkpoints.protocol.table import Check
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.batches.retention import DataLost
from sluice_consumer.shards.bind import ShardSource
from sluice_consumer.shards.reader import ShardReader
from sluice_lab.fakes.kinesis import FakeBehaviour, MemoryKinesis
from sluice_lab.fakes.stream import DAY_MILLIS
from sluice_lab.fakes.table import MemoryTable

EPOCH = 1_700_000_000
BOUND = 30.0  # seconds at the end that may bring nothing: whatever is there when faults have ended is delivered sooner
PATIENCE = 600.0  # the same, where a record on which `process` raises has to be found; in doubt that takes minutes
OVERDUE = 400  # epochs that a search takes for a record on which `process` hangs: each of its failures ends a driver
STANDBY_CALLS = ("get consumer", "take consumer", "throttled", "retry take consumer", "sleep")
RESTS, RESTING = 12, 2  # turns of a driver until it rests; and those that bring nothing, one after the other, by which it does
ENDINGS = 8  # epochs at the end, each with a person's word on what the last one said


class World(Scheduler):
    def __init__(self, shards: int = 2, habits: Habits | None = None) -> None:
        super().__init__()
        self.habits, self.calm = habits or Habits(), False
        self.table = MemoryTable(hook=self._seen)
        self.stream = Stream(shards, now=lambda: round((EPOCH + self.time) * 1000))
        self.ledger = Ledger(self.table, self.stream)
        self.ledger.sparse = self.habits.sparse
        self.outage: Outage | None = None
        self.outages, self.raised_late = 0, set[tuple[str, int]]()
        self.attempt_numbers = count(1)
        self.source_tables: dict[str, Any] = {}
        self._put: list[UserRecord] = []  # before there was a consumer
        self._listed: dict[str, int] = {}  # supervisor → how many records there were when it last listed the shards
        self._marks: dict[str, int] = {}  # bootstrap plan → the same
        self._running: Process | None = None

    def source(self, identity: StreamIdentity) -> ShardSource:
        """The real reader over the in-memory fake of the stream, told which stream it is to read."""
        return ShardReader(self.kinesis(), self.stream, identity)

    def kinesis(self) -> MemoryKinesis:
        return MemoryKinesis(self.stream, FakeBehaviour(end_with_records=self.habits.end_with_records, empty_pages=self.habits.sparse))

    # -- the stream ----------------------------------------------------------------------------------------------------------------

    @property
    def open_shards(self) -> list[str]:
        return self.stream.open_shards

    def put(self, shard: str, records: int = 1, *, together: bool = False, poison: int | None = None) -> None:
        """User records arrive in a shard, each alone or all in one aggregate; `process` cannot deal with the one numbered `poison`."""
        found = self.stream.arrive(shard, records, together=together)
        if poison is not None:
            self.ledger.poison.add(found[poison].name)
        if "consumer" not in self.table.rows:
            self._put += found
        elif not self.another_stream:
            self.ledger.owes(found)

    def split(self, shard: str) -> None:
        self.stream.reshard(split=shard)

    def merge(self, shard: str) -> bool:
        return self.stream.reshard(merge=shard)

    def overtake(self, keep: int) -> None:
        """Every node dies, and nobody works until retention has taken all but the youngest `keep` records."""
        self._crash_all()
        self.advance(100)
        held = list(self.stream.kept())
        if len(held) > keep:
            taken = held[len(held) - keep - 1]
            self.advance(max(0.0, (taken.arrival + 1 + self.stream.retention_millis - self.stream.now()) / 1000))
        self.stream.expire()
        self.trace.append(f"{self.time:6.1f} -- retention leaves {[record.name for record in self.stream.kept()]}")

    def keep_records_for(self, days: int, hours: float) -> None:
        """Nobody works for some hours; what is too old by then has expired when somebody changes the retention.

        Whoever stood still dies, too: what it knows of the stream would be old.
        """
        for epoch in self.epochs:
            self.crash(epoch)
        for epoch, _, attempt in list(self.processes()):
            if attempt is not None and attempt.process in self.frozen:
                self.kill_attempt(epoch, attempt)
        self.advance(hours * 3600)
        self.stream.expire()
        self.stream.retention_millis = days * DAY_MILLIS
        self.trace.append(f"{self.time:6.1f} -- the stream keeps records for {days} days, {[record.name for record in self.stream.kept()]}")

    @property
    def retention_is_known(self) -> bool:
        """Whether the table names the stream's retention, or a shorter one: else a driver has yet to see it."""
        return 0 < int(self.table.rows.get("consumer", {}).get("retention", 0)) <= self.stream.retention_millis

    def recreate(self, shards: int) -> None:
        """The stream is deleted and made again under its name; shard ids repeat."""
        self.advance(1)
        self.stream.recreate(shards)
        self._put = []
        self.trace.append(f"{self.time:6.1f} -- the stream is another one")

    @property
    def another_stream(self) -> bool:
        """Whether the stream is not the one that the table is of, or is claimed for."""
        owner = self.table.rows.get("consumer") or self.table.rows.get("migration")
        return owner is not None and owner["streamCreated"] != self.stream.created_millis

    # -- what the table's hook sees ------------------------------------------------------------------------------------------------

    def _seen(self, when: str, operation: str, argument: object) -> None:
        if when != "after":
            return
        members = [argument] if operation == "write" else argument
        keys = [member.key for member in members if not isinstance(member, Check)]  # type: ignore[attr-defined]  # a write or a list of members
        fresh = "consumer" in keys and not self.ledger.rows.get("consumer")
        self.ledger.writer = self._writer()
        self.ledger.wrote(keys)
        for key in keys:
            if key.startswith("bootstrap/"):
                assert self._running
                self._marks[key.split("/")[1]] = self._listed[self._running.name]
        if fresh and not self.another_stream:
            self._begun(self.table.rows["consumer"])

    def _writer(self) -> Writer:
        epoch, attempt = next(((epoch, attempt) for epoch, process, attempt in self.processes() if process is self._running), (None, None))
        if isinstance(epoch, SimulatedEpoch):
            paused = attempt is not None and attempt.paused
            return Writer(
                epoch.orders.owner,
                epoch.orders.clusters,
                paused=paused,
                spec=epoch.orders.spec,
            )
        return Writer(hands_over=isinstance(epoch, Handover))

    def _begun(self, row: Mapping[str, Any]) -> None:
        """A consumer begins: by a plan of its own, or where KCL stopped."""
        due = [record for record in self._put if record.name not in self.ledger.read_before]
        if "plan" in row and self.table.rows[f"bootstrap/{row['plan']}/0"]["position"] == "LATEST":
            due = self._put[self._marks[row["plan"]] :]
            self.ledger.read_before |= self._before(self.table.rows[f"bootstrap/{row['plan']}/0"])
        self.ledger.owes(
            record for record in due if not self.stream.expired(self.ledger.created, record) or ("plan" not in row and self._goes_on(record))
        )

    def _before(self, plan: Mapping[str, Any]) -> set[str]:
        """Names of records that came to a shard of the plan before it begins: this consumer is given none of them."""
        planned = {shard["id"] for shard in plan["shards"]}
        return {record.name for record in self._put if record.shard in planned and record.arrival < plan["t0"]}

    def _goes_on(self, record: UserRecord) -> bool:
        """Whether its shard is gone on from a place of KCL's: then it is owed though it has expired, and that is to be told.

        Of shards that expired as a whole the migration tells in its own words.
        """
        row = self.table.rows.get(f"shard/{record.shard}")
        return row is not None and row["start"]["at"] == "AFTER"

    def _stepping(self, process: Process) -> None:
        self._running = process
        standing = next((epoch for epoch in self.epochs if epoch.host is process and getattr(epoch, "standing", False)), None)
        if standing is not None and not process.at.startswith(STANDBY_CALLS):
            self.ledger.breaks("standby_is_silent", f"{process.name} stands by, and makes the call: {process.at}")
        if process.at == "list":
            self._listed[process.name] = len(self._put)

    def _refused(self, epoch: SimulatedEpoch, error: BaseException) -> None:
        """No driver of the table's owner is told that it is another's."""
        row = self.table.rows.get("consumer", {})
        ours = isinstance(epoch, SimulatedEpoch) and row.get("owner") == epoch.orders.owner
        if ours and not self.ledger.owned_in.isdisjoint(epoch.orders.clusters) and isinstance(error, Refused) and "belongs to" in str(error):
            self.ledger.breaks("progress", f"{epoch.host.name}: {error}")

    # -- who comes -----------------------------------------------------------------------------------------------------------------

    def start(self, orders: Orders) -> SimulatedEpoch:
        """A new driver pod; its supervisor stands before its first call."""
        if orders.accept is not None:
            self.ledger.accepted.add(orders.accept)
        return self._started(SimulatedEpoch(self, len(self.epochs) + 1, orders), str(orders))

    def kcl(self, read: Mapping[str, int]) -> None:
        self.source_tables = kcl_table(self.stream, read)
        self.ledger.read_before = {record.name for shard, done in read.items() for record in self._put_in(shard)[:done]}

    def _put_in(self, shard: str) -> list[UserRecord]:
        return [record for record in self._put if record.shard == shard]

    def migrate(self) -> SimulatedEpoch:
        """A new pod of a migration Job; to the scheduler it is an epoch."""
        return self._started(cast("SimulatedEpoch", Job(self, len(self.epochs) + 1)), "a migration")

    def hand_over(self, to: str) -> SimulatedEpoch:
        """A person's command begins; to the scheduler it is an epoch."""
        return self._started(cast("SimulatedEpoch", Handover(self, len(self.epochs) + 1, to)), f"handover to {to}")

    def reset(self, to: str | float | ResetTarget, name: str, shards: Iterable[str] = (), *, give_up: bool = False) -> SimulatedEpoch:
        """A person's command begins: to a word, to so many seconds ago, or to a target; to the scheduler it is an epoch."""
        target = (
            to
            if isinstance(to, ResetTarget)
            else ResetTarget(to)
            if isinstance(to, str)
            else ResetTarget(millis=self.stream.now() - round(to * 1000))
        )
        open_batch = self.ledger.committed + 1 if give_up else None
        request = ResetRequest(name, target, frozenset(shards), open_batch, accept_expired=True, lease_millis=LEASE_MILLIS)
        return self._started(cast("SimulatedEpoch", Reset(self, len(self.epochs) + 1, request)), f"reset {name} to {target}")

    @property
    def owned(self) -> Orders:
        """A driver of the owner that the table has."""
        row = self.table.rows.get("consumer", {})
        return Orders(owner=row.get("owner", OWNER), clusters=(*row.get("cluster", CLUSTER[0]).split(),))

    def _started(self, epoch: SimulatedEpoch, how: str) -> SimulatedEpoch:
        self.epochs.append(epoch)
        self.trace.append(f"{self.time:6.1f} -- start {epoch.host.name}: {how}")
        return epoch

    # -- longer stretches ----------------------------------------------------------------------------------------------------------

    def work(self, epoch: SimulatedEpoch, batches: int = 1, calls: int = MAX_STEPS) -> None:
        """Runs an epoch by turns, without faults, until some batches or calls are made, or nothing of it can go on."""
        goal, idle = self.ledger.committed + batches, epoch.idle
        while calls > 0 and self.ledger.committed < goal and epoch.idle < idle + batches:
            turn = [entry for entry in self.runnable(epoch) if entry[2] is None or not entry[2].lost]
            if not turn and not self.until_it_looks(epoch):
                return
            for entry in turn[:calls]:
                if self.ready(entry[1], entry[2]):
                    self.step(*entry)
                    calls -= 1

    def until_it_looks(self, epoch: SimulatedEpoch) -> bool:
        """Lets time pass until an idle driver looks for news again; False: it does not idle."""
        at = epoch.looks_at
        if at is not None:
            self.advance(max(0.0, at - self.time) + 1e-6)
        return at is not None

    def finish(self) -> None:
        """Faults end: an undisturbed epoch delivers everything, and in time. Then the zombies wake up, and must not change a thing."""
        self.calm, self.outage = True, None
        for epoch in self.epochs:
            epoch.cut = False
        self._crash_all()
        self.advance(100)
        if self.source_tables and "consumer" not in self.table.rows and not self.another_stream:
            self._migrated()
        last = self._last()
        for _ in range(ENDINGS):
            loss = last.driver.error if last.driver else None
            if not isinstance(loss, DataLost):
                break
            last = self._last(accept=loss)
        last = self._after_overdue(last)
        self._judge(last)
        if not last.over and not self.ledger.missing():
            self._news(last)
        for process in list(self.frozen):
            if process in self.frozen:
                self.thaw(process, MAX_STEPS)
        if not self.another_stream:  # else the refusal says that nothing more can be told of the one before
            self._accounted_for()

    def _after_overdue(self, last: SimulatedEpoch) -> SimulatedEpoch:
        """The first epoch that does not end because `process` hangs."""
        left, without = self.ledger.missing(), 0
        while last.driver and isinstance(last.driver.error, BatchOverdue) and without < OVERDUE:
            last = self._last()
            before, left = left, self.ledger.missing()
            without = without + 1 if left == before else 0
        return last

    def _accounted_for(self) -> None:
        if unreported := self.ledger.unreported():
            self.ledger.breaks("no_record_lost", f"nobody was told of {sorted(unreported)}")
        for shard, missing in self.ledger.missing().items():
            self.ledger.breaks("no_record_lost", f"never delivered: {missing} of {shard}")

    def _crash_all(self) -> None:
        for epoch in self.epochs:
            if not any(process in self.frozen for process in (epoch.host, epoch.driver)):
                self.crash(epoch)

    def _migrated(self) -> None:
        job = self.migrate()
        self.settle(job)
        self.advance(200)
        if not job.over or job.host.error is not None:
            self.ledger.breaks("progress", f"the last migration ended: {job.host.error!r}")

    def _last(self, accept: BaseException | None = None) -> SimulatedEpoch:
        """An epoch that nothing happens to; a person has read what the one before it said."""
        words = re.search(r"set acceptLossOfBatch to (\d+)", str(accept))
        last = self.start(replace(self.owned, migrate="migration" in self.table.rows, accept=int(words[1]) if words else None))
        self.settle(last)
        self.advance(200)
        self.deliver(last)
        return last

    def deliver(self, epoch: SimulatedEpoch) -> None:
        """Works until all that is owed is delivered, or nothing of it was for too long."""
        self.work(epoch, 2)
        bound = PATIENCE if self.habits.isolates else BOUND
        left, until = self.ledger.missing(), self.time + bound
        while left and not epoch.over and self.time < until:
            self.work(epoch, 2)
            self.advance(1)
            if self.ledger.missing() != left:
                left, until = self.ledger.missing(), self.time + bound
        self.work(epoch)  # what was committed last is reported
        if left and not epoch.over:
            self.ledger.breaks("progress", f"not delivered within {bound:g} s: {left}")

    def _news(self, epoch: SimulatedEpoch) -> None:
        """Records that come while it idles, or in a shard that it leaves out beside others, in children of a split too, are delivered as soon."""
        self.rest(epoch)
        self.put(self.open_shards[-1])
        self.deliver(epoch)
        self.put(self.open_shards[0])
        self.split(self.open_shards[-1])
        for shard in self.open_shards:
            self.put(shard)
        self.deliver(epoch)
        self._judge(epoch)

    def rest(self, epoch: SimulatedEpoch) -> None:
        """Works until it only probes its shards, a while at most."""
        for _ in range(RESTS):
            if epoch.idle > RESTING:
                return
            self.work(epoch)

    def _judge(self, last: SimulatedEpoch) -> None:
        """It goes on for ever, unless the stream is another one: then it does not begin."""
        errors = [process.error for process in (last.host, last.driver) if process is not None and process.done]
        if self.another_stream and not any(isinstance(error, Refused) for error in errors):
            self.ledger.breaks("one_stream", f"the last epoch goes on, or ended with {errors}")
        if errors and not self.another_stream:
            self.ledger.breaks("progress", f"the last epoch ended: {errors}")

    def end(self) -> None:
        for _, process, _ in list(self.processes()):
            process.kill()
