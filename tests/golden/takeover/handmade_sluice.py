"""Sluice's own table, as docs/protocol.md describes its rows, with a batch left open."""

from __future__ import annotations

from typing import Any

from takeover.handmade import ARN, CREATED, EVERYTHING, NOTHING, PARENTS, Item, Table, after, dump, number, sequence, shard_id, text

COMMITTED = 7
BEGINNING = {"M": {"at": text("TRIM_HORIZON")}}
END = {"M": {"at": text("END")}}


def at_record(shard: int, record: int) -> dict[str, Any]:
    return {"M": {"at": text("AFTER"), "sequence": text(sequence(shard, record))}}


def consumer() -> Item:
    epoch = {"generation": number(3), "token": text("3f2a"), "counter": number(41), "leaseMillis": number(20_000), "committed": number(COMMITTED)}
    stream = {"format": number(1), "consumerId": text("c0ffee"), "streamArn": text(ARN), "streamCreated": number(1000 * CREATED)}
    return {"id": text("consumer"), "state": text("ACTIVE"), "bootstrapped": {"BOOL": True}, **stream, **epoch}


def row(shard: int, batch: int, start: dict[str, Any], end: dict[str, Any]) -> Item:
    parents = {"parents": {"SS": [shard_id(p) for p in PARENTS[shard]]}} if PARENTS[shard] else {}
    fence = {"generation": number(3), "joins": number(1), "batch": number(batch), "records": number(1), "readers": {"M": {"3.0.0": number(1)}}}
    return {"id": text(f"shard/{shard_id(shard)}"), "start": start, "end": end, **fence, **parents, **(_children(shard) if end is END else {})}


def _children(shard: int) -> dict[str, Any]:
    following = {child: parents for child, parents in PARENTS.items() if shard in parents}
    listed = [{"M": {"id": text(shard_id(c)), "parents": {"SS": [shard_id(p) for p in parents]}}} for c, parents in following.items()]
    return {"children": {"L": listed}}


DUMP = dump(
    "sluice-batch-open",  # killed in batch 8, which had bound shards 1 and 2
    {
        "sluice-open": Table(
            {"id": "HASH"},
            [
                consumer(),
                row(0, 2, BEGINNING, END),
                row(1, COMMITTED + 1, at_record(1, 2), END),
                row(2, COMMITTED + 1, at_record(2, 0), at_record(2, 4)),
                row(3, COMMITTED, at_record(3, 1), at_record(3, 3)),
            ],
        )
    },
    [NOTHING, after(2), after(0), after(3), EVERYTHING],
)
