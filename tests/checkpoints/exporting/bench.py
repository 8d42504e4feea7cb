"""A world of in-memory fakes for exports: one clock, a stream, a consumer's table, another system's table, and a fault at any call."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from faults import Calls, Catalog

from sluice_checkpoints.export.exporter import Exporter
from sluice_checkpoints.export.ports import ExportPorts, ExportRequest
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import CONSUMER, Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_lab.fakes.migration import MemoryTargetTables
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

OLD, TABLE = "orders_checkpoints", "sluice-orders"
# The attribute that holds the place, in each format.
PLACES = {"kcl": "checkpoint", "nifi": "sequenceNumber", "vmware-go-kcl": "Checkpoint", "kinsumer": "SequenceNumber"}
ZERO, ONE, TWO, THREE, FOUR = (f"shardId-{i:012d}" for i in range(5))


class Bench:
    """One world.

    The stream: shard 0 was split into 3 and 4; 1 and 2 are open. The consumer, suspended after batch 7, has finished 0, stands behind two records of
    1, one of 2 and one of 3, and has not started 4. The other system had stopped at the first record of 1 and of 2, and before 3.
    """

    def __init__(self, name: str = "kcl") -> None:
        self.seconds = 0.0
        self.calls = Calls()
        self.stream = MemoryStream("orders", shards=3, now=lambda: 1_700_000_000_000 + round(self.seconds * 1000))
        self.zeroth = self.stream.put_in(ZERO, b"a")
        self.first, self.second, self.two = (self.stream.put_in(i, b"b") for i in (ONE, ONE, TWO))
        self.stream.split(ZERO)
        self.three = self.stream.put_in(THREE, b"d")
        self.table = MemoryTable(TABLE, self.calls)
        for row in self._rows():
            self.table.rows[row.key] = row.to_item()
        identity = self.stream.describe()
        consumer = ConsumerRow("c", identity.arn, identity.created_millis, 3, "t", 40, 20_000, released=True, committed=7, bootstrapped=True)
        self.table.rows[CONSUMER] = consumer.to_item()
        self.writer = WRITERS[name]
        self.old = MemoryTargetTables({OLD: (self.writer.keys, rows_of(name, self))}, self.calls)
        self.request = ExportRequest(name, OLD)

    def _rows(self) -> list[ShardRow]:
        def after(sequence: str) -> Position:
            return Position.after(sequence)

        children = (Child(THREE, frozenset({ZERO})), Child(FOUR, frozenset({ZERO})))
        parents = frozenset({ZERO})
        return [
            ShardRow(ZERO, after(self.zeroth), END, generation=3, batch=5, children=children),
            ShardRow(ONE, after(self.first), after(self.second), generation=3, batch=7, first=self.second, records=1),
            ShardRow(TWO, after(self.two), after(self.two), generation=3, batch=7),
            ShardRow(THREE, TRIM_HORIZON, after(self.three), generation=3, joins=6, batch=7, parents=parents),
            ShardRow(FOUR, TRIM_HORIZON, TRIM_HORIZON, generation=3, joins=8, parents=parents),
        ]

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(self.table)

    @property
    def consumer(self) -> dict[str, Any]:
        return self.table.rows[CONSUMER]

    @property
    def rows(self) -> list[Any]:
        return self.old.tables[OLD][1]

    def row(self, shard: str) -> dict[str, Any]:
        last = self.writer.keys[-1].name
        return next(row for row in self.rows if row[last] == {"S": shard} and row.get("streamName") != {"S": "others"})

    def advance(self, shard: str) -> str:
        """The other system's consumer works: it writes a higher number. Returns that."""
        number = self.stream.put_in(shard, b"later")
        self.row(shard)[PLACES[self.writer.name]] = {"S": number}
        return number

    def put(self, row: ShardRow) -> None:
        self.table.rows[row.key] = row.to_item()

    def says(self) -> dict[str, Position | None]:
        return {row.id: row.stored.position for row in self.writer.reader.parse(self.snapshot(), self.stream.describe()).shards}

    def snapshot(self) -> Snapshot:
        return Snapshot(OLD, {OLD: self.writer.keys}, {OLD: copy.deepcopy(self.rows)})

    def world(self) -> ExportPorts:
        return ExportPorts(self.store, Catalog(self.stream, self.calls), self.old, self._clock, self._sleep)

    def exporter(self, **changes: Any) -> Exporter:
        return Exporter(replace(self.request, **changes), self.world())

    def end_state(self) -> tuple[Any, ...]:
        """Both tables without what is random, counted, or the time."""
        consumer = {name: value for name, value in self.consumer.items() if name not in {"token", "generation", "counter", "updatedAt", "released"}}
        others = {key: row for key, row in self.table.rows.items() if key != CONSUMER}
        times = {"lastUpdateTimestamp", "LastUpdate", "LastUpdateRFC", "Finished", "FinishedRFC"}
        rows = [{name: tagged for name, tagged in row.items() if name not in times} for row in self.rows]
        return consumer, others, sorted(map(str, (sorted(row.items()) for row in rows)))

    def _clock(self) -> float:
        return self.seconds

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.calls("before", "wake", seconds)


def rows_of(name: str, bench: Bench) -> list[Any]:
    return {"kcl": _kcl, "nifi": _nifi, "vmware-go-kcl": _vmware_go_kcl, "kinsumer": _kinsumer}[name](bench)


def _kcl(bench: Bench) -> list[Any]:
    def lease(shard: str, checkpoint: str, **more: Any) -> Any:
        numbers = {name: {"N": "0"} for name in ("checkpointSubSequenceNumber", "ownerSwitchesSinceCheckpoint")}
        return {"leaseKey": {"S": shard}, "checkpoint": {"S": checkpoint}, "leaseCounter": {"N": "7"}, "leaseOwner": {"S": "w"}, **numbers, **more}

    return [
        {"leaseKey": {"S": "Leader"}, "entityType": {"S": "LEADER"}, "ownerName": {"S": "w"}},
        lease(ZERO, "SHARD_END", childShardIds={"SS": [FOUR, THREE]}),
        lease(ONE, bench.first, pendingCheckpoint={"S": bench.second}, throughputKBps={"N": "2.3E-5"}),
        lease(TWO, bench.two),
        lease(THREE, "TRIM_HORIZON", parentShardId={"SS": [ZERO]}),
    ]


def _nifi(bench: Bench) -> list[Any]:
    def row(shard: str, **more: Any) -> Any:
        return {"streamName": {"S": "orders"}, "shardId": {"S": shard}, "lastUpdateTimestamp": {"N": "1699999999000"}, **more}

    return [
        row("__node__#1", nodeHeartbeat={"N": "1699999999000"}),
        {"streamName": {"S": "others"}, "shardId": {"S": ONE}, "sequenceNumber": {"S": "5"}, "lastUpdateTimestamp": {"N": "1"}},
        row(ONE, sequenceNumber={"S": bench.first}, subSequenceNumber={"N": "0"}, leaseOwner={"S": "n"}, leaseExpiry={"N": "1699999999000"}),
        row(TWO, sequenceNumber={"S": bench.two}),
    ]


def _vmware_go_kcl(bench: Bench) -> list[Any]:
    def row(shard: str, **more: str) -> Any:
        return {"ShardID": {"S": shard}, "LeaseTimeout": {"S": "2023-11-14T22:13:20Z"}} | {name: {"S": text} for name, text in more.items()}

    return [
        row(ZERO, Checkpoint="SHARD_END"),
        row(ONE, Checkpoint=bench.first, AssignedTo="w"),
        row(TWO, Checkpoint=bench.two),
        row(THREE, ParentShardId=ZERO, AssignedTo="w", ClaimRequest="v"),
    ]


def _kinsumer(bench: Bench) -> list[Any]:
    nothing = {"NULL": True}

    def row(shard: str, number: Any, **more: Any) -> Any:
        times = {"LastUpdate": {"N": "1699999999000000000"}, "LastUpdateRFC": {"S": "Tue, 14 Nov 2023 22:13:19 +0000"}}
        return {"Shard": {"S": shard}, "SequenceNumber": number, "Finished": nothing, "FinishedRFC": nothing, **times, **more}

    finished = {"Finished": {"N": "1699999999000000001"}, "FinishedRFC": {"S": "Tue, 14 Nov 2023 22:13:19 +0000"}}
    return [
        row(ZERO, {"S": bench.zeroth}, **finished),
        row(ONE, {"S": bench.first}, OwnerID={"S": "i"}, OwnerName={"S": "w"}),
        row(TWO, {"S": bench.two}),
        row(THREE, {"S": "LATEST"}),
    ]
