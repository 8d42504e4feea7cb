"""The checkpoint table whose `sluice show` the pages print: a bad version was deployed, and nothing was undone yet."""

from __future__ import annotations

import io
from datetime import timedelta

from rich.console import Console
from scene import NOW

from sluice_checkpoints.cli.show import screen
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.versions import KeptPosition, SpecName, Version
from sluice_lab.fakes.table import MemoryTable

WIDTH = 120
MILLIS = round(NOW.timestamp() * 1000)
ARN = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders"
NAME = "49680415687272674334556884200736274963358048711337{:06}"


def seconds_ago(seconds: float) -> int:
    return MILLIS - round(seconds * 1000)


def shown_table() -> MemoryTable:
    """Four shards, one of which was split; three versions; a batch is open."""
    table = MemoryTable("sluice_default_orders")
    consumer = ConsumerRow(
        "0f6c1a9be2d47381",
        ARN,
        1_700_000_000_000,
        generation=9,
        token="t9",
        counter=400,
        lease_millis=20_000,
        committed=1046,
        bootstrapped=True,
        holder="orders-driver-9/7",
        updated_at=(NOW - timedelta(minutes=31)).isoformat(),
        owner="default/orders",
        cluster="prod 5c1d",
        last_commit={"batch": 1046, "at": seconds_ago(13), "former": seconds_ago(23), "records": 521},
        last_beat={"generation": 9, "at": seconds_ago(2)},
    )
    first, second, third, fourth = (f"shardId-{number:012d}" for number in range(4))
    after, before = Position.after(NAME.format(836_594)), Position.after(NAME.format(112_905))
    rows = (
        ShardRow(first, before, END, 9, batch=980, read_to=seconds_ago(7200), children=(Child(third, frozenset({first})),)),
        ShardRow(second, after, Position.after(NAME.format(836_999)), 9, batch=1047, records=40, read_to=seconds_ago(4), behind=133_000),
        ShardRow(third, before, after, 9, batch=1046, records=521, read_to=seconds_ago(13), behind=1_200, parents=frozenset({first})),
        ShardRow(fourth, after, after, 9, batch=1046, read_to=seconds_ago(13)),
    )
    table.rows |= {item["id"]: item for item in (consumer.to_item(), *(row.to_item() for row in rows))}
    _deploys(CheckpointStore(table), dict.fromkeys((second, third, fourth), KeptPosition(before)))
    return table


def _deploys(store: CheckpointStore, places: dict[str, KeptPosition]) -> None:
    known: list[Version] = []
    deploys = (("9a41c0d27be6f3a8", "orders:1.4.0", 1, 90_000, 2), ("9a41c0d27be6f3b1", "orders:1.4.1", 812, 9_000, 7))
    for spec, image, batch, seconds, generation in (*deploys, ("51e7d92c08ab64f0", "orders:1.5.0", 1041, 1_860, 9)):
        version = Version(SpecName(spec, f"registry.example/{image}"), batch, generation, seconds_ago(seconds), slot=len(known))
        version = versions.keep(store, version, places)
        versions.name(store, Epoch(9, "t9"), known, version)
        known.append(version)


def shown(command: str) -> str:
    table = command.split()[command.split().index("--table") + 1]
    out = io.StringIO()
    Console(file=out, width=WIDTH, highlight=False).print(screen(table, document(shown_table()), NOW, WIDTH))
    return out.getvalue()
