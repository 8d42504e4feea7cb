"""A checkpoint table into which every writer of the protocol has written, by the writers themselves, and what each kind of row has held meanwhile."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from dataclasses import replace

from migrating.bench import Bench

from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol import copies, folding, reset_writes, versions
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.open_range import RangeKept, RangeLeft, exclude, forfeit, shorten
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.pending_letters import hold, place, published
from sluice_checkpoints.protocol.poison_note import IsolationNote, note
from sluice_checkpoints.protocol.reset_writes import Move, StoredReset
from sluice_checkpoints.protocol.row_kinds import KINDS
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, TaskAttempt
from sluice_checkpoints.protocol.versions import KeptPosition, SpecName, Version
from sluice_consumer.batches.bootstrap import Seed, prepare
from sluice_consumer.config import StartConfig
from sluice_lab.fakes.table import MemoryTable

OWNER = Owner("shop/orders", ("c1",))


class WrittenTable:
    """A consumer that was migrated from KCL, worked, folded a shard, and had a poison record.

    Attributes:
        bench: its stream and the tables.
        attributes: by kind of row, every attribute that was ever stored.
    """

    def __init__(self) -> None:
        self.bench = Bench(unstarted="now")
        self.attributes: dict[str, set[str]] = defaultdict(set)
        self.bench.migrator().run()
        self._look()
        self.store = CheckpointStore(self.table)
        self._beginnings()
        self._mark()
        self._work()
        self._reset()

    @property
    def table(self) -> MemoryTable:
        return self.bench.table

    def _look(self, table: MemoryTable | None = None) -> None:
        for item in (table or self.table).rows.values():
            kinds = [kind.name for kind in KINDS if kind.has(item["id"])]
            self.attributes[kinds[0] if kinds else item["id"]] |= item.keys() - {"id"}

    def _beginnings(self) -> None:
        """A driver's plan in a table of its own; the same plan where the migration was first, which stays there for ever."""
        stream, alone = self.bench.stream, MemoryTable("alone")
        seed = Seed("plan-1", "other", stream.describe(), stream.list_shards())
        assert prepare(CheckpointStore(alone), seed, StartConfig())
        self._look(alone)
        assert not prepare(self.store, seed, StartConfig())

    def _reset(self) -> None:
        """A person's move of one shard, in a copy of the table: the batch that is open here is given up there."""
        copy = MemoryTable("moved")
        copy.rows = deepcopy(self.table.rows)
        store = CheckpointStore(copy)
        taken = take_over(store, LeaseRequest(20_000, "reset", "2026-01-01", owner=OWNER), Watcher(lambda: 0.0, lambda _: None))
        row = store.read([self.bench.one])[self.bench.one]
        moves = (Move(row.id, row.batch, row.end, TRIM_HORIZON),)
        named = reset_writes.name(store, taken.epoch, taken.row, StoredReset("one", taken.row.committed + 1, moves, "asked", {"message": "moved"}))
        self._look(copy)
        reset_writes.finish(store, named, taken.epoch)
        self._look(copy)

    def _mark(self) -> None:
        row = self.store.consumer()
        assert row
        copies.check(self.store, row, "arn:table@1")

    def _work(self) -> None:
        """Two batches: one that reads a shard to its end, and one with a poison record, which is open."""
        taken = take_over(self.store, LeaseRequest(20_000, "pod-1", "2026-01-01", owner=OWNER), Watcher(lambda: 0.0, lambda _: None))
        for shard in (self.bench.one, self.bench.two, self.bench.three):
            self.store.fence(taken.epoch, shard)
        self._read_and_commit(taken.epoch)
        self._isolate(taken.epoch)
        self.store.release(taken.epoch)
        self._look()

    def _read_and_commit(self, epoch: Epoch) -> None:
        bench, reader = self.bench, TaskAttempt(f"{epoch.generation}.0.0", 1)
        number = bench.stream.put_in(bench.two, b"x")
        children = tuple(Child(i, frozenset({bench.two})) for i in bench.stream.split(bench.two))
        begun = self.store.read([bench.two])[bench.two].end
        self.store.bind(epoch, 1, Range(bench.two, begun, END, number, 1, 9, children, 10, 1, "note", {"kinesis/GetRecords": 1}), reader)
        self.store.register(epoch, 1, bench.two, TaskAttempt(reader.key, 2))
        self._look()
        for shard in (bench.one, bench.three):
            self.store.close(epoch, 1, self.store.read([shard])[shard])
        version = Version(SpecName("abc", "image:1"), 1, epoch.generation, 5)
        versions.name(self.store, epoch, (), versions.keep(self.store, version, {bench.one: KeptPosition(TRIM_HORIZON, 9)}))
        self.store.beat(epoch, 20_000, 5)
        self.store.commit(epoch, 1, ["1-1-0"], 1, {"at": 6, "records": 1})
        self._look()
        published(self.store, epoch, ["1-1-0"], [])
        born = [ShardRow(child.id, TRIM_HORIZON, TRIM_HORIZON, epoch.generation, joins=2, parents=child.parents) for child in children]
        self.store.create_shards(epoch, 1, born)
        self._fold(epoch, bench.two)

    def _fold(self, epoch: Epoch, shard: str) -> None:
        """The stream still lists it, which a driver waits for: so readers meet a shard that only its id accounts for."""
        ended = [self.store.read([shard])[shard]]
        folding.fold(self.store, epoch, ended, 1_700_000_000_000)
        self._look()
        folding.delete(self.store, epoch, ended)

    def _isolate(self, epoch: Epoch) -> None:
        shard, stream = self.bench.one, self.bench.stream
        numbers = [stream.put_in(shard, b"x") for _ in range(2)]
        stands = self.store.read([shard])[shard].end
        bound = Range(shard, stands, Position.after(numbers[1]), numbers[0], 2, 9, size=20, iterator="AAA")
        self.store.bind(epoch, 2, bound, TaskAttempt(f"{epoch.generation}.1.0", 1))
        note(self.store, epoch, IsolationNote(2, {"controls": 0}, "ValueError", "Traceback", 5, 0, 0))
        self._look()
        row = forfeit(self.store, epoch, self.store.read([shard])[shard], RangeLeft(numbers[0], 2, 20, "retention took some"))
        row = shorten(self.store, epoch, row, RangeKept(Position.after(numbers[0]), numbers[0], 1, 10, 9))
        assert hold(self.store, epoch, {"2-1-0": "{}"})
        place(self.store, epoch, "s3a://letters", 2)
        exclude(self.store, epoch, row, "2-1-0")
        note(self.store, epoch, IsolationNote(2, {}, hour=5, excluded=1, ever=1))

    def exported(self) -> None:
        row = self.store.consumer()
        assert row
        taken = self.store.take(row, replace(row, token="export"))
        assert taken
        assert self.store.export(Epoch(taken.generation, taken.token), "old")
        self._look()
