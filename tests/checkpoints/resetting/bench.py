"""A world of in-memory fakes for resets: one clock, a stream that was split and merged, a consumer's table, and a fault at any call."""

from __future__ import annotations

from typing import Any

from faults import Calls

from sluice_checkpoints.position import END, Position
from sluice_checkpoints.positions.ports import ResetPorts
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.target import ResetRequest, ResetTarget
from sluice_checkpoints.protocol.folding import EndedShards
from sluice_checkpoints.protocol.rows import CONSUMER, Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

TABLE = "sluice-orders"
ZERO, ONE, TWO, THREE, FOUR, FIVE = (f"shardId-{i:012d}" for i in range(6))
START = 1_700_000_000_000  # of the stream
HOUR = 3_600_000
SPLIT, MERGED, NOW = 4 * HOUR, 8 * HOUR, 12 * HOUR  # after the start


class Bench:
    """One world.

    Shard 0 was split into 2 and 3 after 4 hours; 1 and 2 were merged into 4 after 8; it is 12 hours after the start. The consumer is suspended after
    batch 7, and has read everything but the last record of 4. Each shard has a record an hour.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = Calls()
        self.stream = MemoryStream("orders", shards=2, now=lambda: START + round(self.seconds * 1000))
        self.put: dict[str, list[str]] = {}
        self._hours(SPLIT)
        self.stream.split(ZERO)
        self._hours(MERGED)
        self.stream.merge(ONE, THREE)
        self._hours(NOW)
        self.stream.now = lambda: START + NOW  # a plan depends on it, and crashes take time
        self.table = MemoryTable(TABLE, self.calls)
        for row in self._rows():
            self.row(row)
        identity = self.stream.describe()
        self.consumer(
            ConsumerRow("c", identity.arn, identity.created_millis, 3, "t", 40, 20_000, released=True, committed=7, bootstrapped=True, plan="p")
        )

    def _hours(self, until: int) -> None:
        """A record an hour in each open shard, half an hour after each full one."""
        while self.seconds * 1000 < until:
            self.seconds += 1800
            for shard in [s.id for s in self.stream.list_shards().shards if not s.closed]:
                self.put.setdefault(shard, []).append(self.stream.put_in(shard, b"r"))
            self.seconds += 1800

    def _rows(self) -> list[ShardRow]:
        later = START + NOW - HOUR
        over = START + MERGED - HOUR // 2
        two, three, four = (Child(TWO, frozenset({ZERO})), Child(THREE, frozenset({ZERO})), Child(FOUR, frozenset({ONE, THREE})))
        read: dict[str, Any] = {"generation": 3, "readers": {"3.1.0": 1}, "read_by": "3.1.0"}
        return [
            ShardRow(ZERO, self.after(ZERO, 1), END, batch=3, read_to=START + SPLIT - HOUR // 2, children=(two, three), **read),
            ShardRow(ONE, self.after(ONE, 2), END, batch=5, read_to=over, children=(four,), **read),
            ShardRow(TWO, self.after(TWO, -2), self.after(TWO), batch=7, joins=4, read_to=START + NOW, records=1, parents=two.parents, **read),
            ShardRow(THREE, self.after(THREE, 0), END, batch=5, read_to=over, parents=three.parents, children=(four,), **read),
            ShardRow(FOUR, self.after(FOUR, 1), self.after(FOUR, -2), batch=7, read_to=later, records=1, parents=four.parents, **read),
        ]

    def after(self, shard: str, record: int = -1) -> Position:
        return Position.after(self.put[shard][record])

    # -- the table -----------------------------------------------------------------------------------------------------------------

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(self.table)

    def row(self, row: ShardRow) -> None:
        self.table.rows[row.key] = row.to_item()

    def consumer(self, row: ConsumerRow) -> None:
        self.table.rows[CONSUMER] = row.to_item()

    def of(self, shard: str) -> ShardRow:
        return ShardRow.from_item(self.table.rows[f"shard/{shard}"])

    @property
    def seen(self) -> ConsumerRow:
        return ConsumerRow.from_item(self.table.rows[CONSUMER])

    def fold(self, shard: str, at: int = START) -> None:
        self.stream.expire_shard(shard)
        del self.table.rows[f"shard/{shard}"]
        ended = EndedShards(frozenset({shard}), at=at)
        self.table.rows[ended.key] = ended.to_item()

    def positions(self) -> dict[str, Position]:
        return {row.id: row.committed_position(self.seen.committed) for row in map(self.of, self.shards)}

    @property
    def shards(self) -> list[str]:
        return sorted(key.removeprefix("shard/") for key in self.table.rows if key.startswith("shard/"))

    def end_state(self) -> dict[str, Any]:
        free = {"token", "generation", "counter", "updatedAt", "released", "holder", "leaseMillis"}
        return {key: {name: value for name, value in row.items() if name not in free} for key, row in sorted(self.table.rows.items())}

    # -- a reset -------------------------------------------------------------------------------------------------------------------

    def ports(self, **more: Any) -> ResetPorts:
        return ResetPorts(self.store, self.stream, self.stream, self._clock, self._sleep, **more)

    def resetter(self, to: str = "trimHorizon", reset: str = "one", **more: Any) -> Resetter:
        shards = frozenset(more.pop("shards", ()))
        return Resetter(ResetRequest(reset, ResetTarget.parse(to), shards, **more), self.ports())

    def hour(self, hours: float) -> str:
        return str(ResetTarget(millis=START + round(hours * HOUR)))

    def _clock(self) -> float:
        return self.seconds

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.calls("before", "wake", seconds)
