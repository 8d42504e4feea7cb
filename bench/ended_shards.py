"""`python bench/ended_shards.py [SHARDS]`: a table of 100,000 ended shards before and after they are folded. Part of `make bench`.

Asserts nothing but that migration and export plan the same. `test_ended_shards.py` asserts what can be counted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from sluice_checkpoints.export import plan as export
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.sluice import KEY, Sluice
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate import plan as migration
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.encoding import item_to_wire
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.model import Shard, ShardList, StreamIdentity
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.folding import Folder, FoldPorts
from sluice_lab.fakes.table import MemoryTable

ENDED, OPEN = 100_000, 100
NOW, DAY, AUDIT = 1_700_000_000_000, 86_400_000, 120_000
STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, DAY, "ACTIVE")
TURNS = 5000


def name(number: int) -> str:
    return f"shardId-{number:012d}"


@dataclass
class Lineage:
    """A table of a stream that was resharded over and over: each shard follows the one that came `OPEN` shards before. The ended ones have expired.

    Attributes:
        ended: how many shards.
        now: the service's clock.
        transactions: members of each that folded or deleted.
    """

    ended: int = ENDED
    now: int = NOW
    table: MemoryTable = field(default_factory=lambda: MemoryTable("own"))
    transactions: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = [self._over(number) for number in range(self.ended)] + [self._open(self.ended + number) for number in range(OPEN)]
        consumer = ConsumerRow("c", STREAM.arn, 1, committed=3, bootstrapped=True, released=True, retention=DAY, filled=3)
        self.table.rows = {item["id"]: item for item in (consumer.to_item(), *(row.to_item() for row in rows))}
        self.table.hook = self._seen

    def _seen(self, when: str, operation: str, members: Any) -> None:
        if (when, operation) == ("after", "transact"):
            self.transactions.append(len(members))

    @staticmethod
    def _over(number: int) -> ShardRow:
        children = (Child(name(number + OPEN), frozenset({name(number)})),)
        return ShardRow(
            name(number),
            TRIM_HORIZON,
            END,
            batch=1,
            first=f"496{number:053d}",
            records=9,
            read_to=NOW - 2 * DAY + number,
            parents=_parents(number),
            children=children,
            readers={"1.12.3": 4711},
            read_by="1.12.3",
            size=1234,
        )

    @staticmethod
    def _open(number: int) -> ShardRow:
        return ShardRow(name(number), TRIM_HORIZON, Position.after(f"496{number:053d}"), batch=3, read_to=NOW, parents=_parents(number))

    # -- the stream ----------------------------------------------------------------------------------------------------------------

    def describe(self) -> StreamIdentity:
        return STREAM

    def list_shards(self) -> ShardList:
        share = 2**128 // OPEN
        shards = [
            Shard(name(self.ended + i), tuple(_parents(self.ended + i)), i * share, (i + 1) * share - 1 if i + 1 < OPEN else 2**128 - 1, "1")
            for i in range(OPEN)
        ]
        return ShardList(tuple(shards), self.now)

    # -- what is done with it ------------------------------------------------------------------------------------------------------

    def epoch(self) -> Consumer:
        store = CheckpointStore(self.table)
        row = store.consumer()
        assert row is not None
        taken = store.take(row, row)
        assert taken is not None
        consumer = Consumer(store, self, Epoch(taken.generation, taken.token))
        consumer.begin()
        return consumer

    def folds(self, consumer: Consumer) -> list[float]:
        """All audits of a driver until nothing more is folded or deleted; seconds of the turns that wrote."""
        folder, seconds = Folder(consumer, FoldPorts(consumer.store, lambda: 0.0)), list[float]()
        for _ in range(TURNS):
            before = len(self.transactions)
            self.now += AUDIT
            consumer.audit()
            seconds.append(timed(folder.fold)[0])
            if len(self.transactions) == before:
                break
        return seconds[:-1]

    @property
    def bytes(self) -> int:
        """Of the table, as JSON that goes over the wire: a little more than DynamoDB counts."""
        return sum(len(orjson.dumps(item_to_wire(item))) for item in self.table.rows.values())

    def migrated(self) -> Any:
        rows = [item_to_wire(row) for row in self.table.rows.values()]
        reading = Sluice().read(Snapshot("own", {"own": KEY}, {"own": rows}), STREAM)
        found = migration.plan(migration.PlanInput(reading, self.list_shards(), "own"), Choices(NOW))
        return [(one.id, one.stored, one.verdict, one.row.start) for one in found.shards], found.warnings, found.counts

    def exported(self) -> Any:
        writer = WRITERS["kcl"]
        theirs = export.TargetSide(writer, Snapshot("t", {"t": writer.keys}, {"t": ()}), {})
        ours = export.SluiceSide(CheckpointStore(self.table).contents().all, 3)
        found = export.plan(ours, theirs, STREAM, self.list_shards())
        return [(export.as_document(entry), entry.change) for entry in found.entries], found.warnings


def _parents(number: int) -> frozenset[str]:
    return frozenset({name(number - OPEN)} if number >= OPEN else ())


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and CPU-milliseconds."""
    wall, cpu = time.monotonic(), time.process_time()
    call()
    return time.monotonic() - wall, (time.process_time() - cpu) * 1000


def compared(ended: int = ENDED) -> Table:
    world = Lineage(ended)
    planned = world.migrated(), world.exported()
    table = Table(
        title=f"{ended:,} ended shards, {OPEN} open ones, a table in memory", caption="load: " + ", ".join(f"{v:.1f}" for v in os.getloadavg())
    )
    for head in ("", "rows", "table, MB", "take-over, s", "plan, CPU-ms"):
        table.add_column(head, justify="right")

    def line(what: str) -> Consumer:
        made: list[Consumer] = []
        took = timed(lambda: made.append(world.epoch()))[0]
        plan = min(timed(made[0].plan)[1] for _ in range(5))
        table.add_row(what, f"{len(world.table.rows):,}", f"{world.bytes / 1e6:.1f}", f"{took:.1f}", f"{plan:.1f}")
        return made[0]

    seconds = sorted(world.folds(line("before")))
    line("folded")
    if (world.migrated(), world.exported()) != planned:
        raise SystemExit("migration or export plan otherwise than before")
    table.add_row("turns", f"{len(seconds):,}", "", f"median {seconds[len(seconds) // 2]:.2f} s", f"longest {seconds[-1]:.2f} s")
    return table


if __name__ == "__main__":
    Console().print(compared(int(sys.argv[1]) if len(sys.argv) > 1 else ENDED))
