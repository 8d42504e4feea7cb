"""Sluice's own table, as docs/protocol.md describes its rows: a batch left open, a released lease, and shards that were to start at a time."""

from __future__ import annotations

from typing import Any

from takeover.handmade import ARN, CREATED, EVERYTHING, NOTHING, PARENTS, Item, Table, after, arrival, dump, number, sequence, shard_id, text

COMMITTED = 7
BEGINNING = {"M": {"at": text("TRIM_HORIZON")}}
END = {"M": {"at": text("END")}}


def at_record(shard: int, record: int, sub: int | None = None) -> dict[str, Any]:
    inside = {} if sub is None else {"sub": number(sub)}
    return {"M": {"at": text("AFTER"), "sequence": text(sequence(shard, record)), **inside}}


def at_time(shard: int, record: int) -> dict[str, Any]:
    return {"M": {"at": text("TIMESTAMP"), "millis": number(1000 * arrival(shard, record) + 1)}}


def consumer(**more: Any) -> Item:
    epoch = {"generation": number(3), "token": text("3f2a"), "counter": number(41), "leaseMillis": number(20_000), "committed": number(COMMITTED)}
    stream = {"format": number(1), "consumerId": text("c0ffee"), "streamArn": text(ARN), "streamCreated": number(1000 * CREATED)}
    return {"id": text("consumer"), "state": text("ACTIVE"), "bootstrapped": {"BOOL": True}, **stream, **epoch, **more}


def row(shard: int, batch: int, start: dict[str, Any], end: dict[str, Any]) -> Item:
    parents = {"parents": {"SS": [shard_id(p) for p in PARENTS[shard]]}} if PARENTS[shard] else {}
    fence = {"generation": number(3), "joins": number(1), "batch": number(batch), "records": number(1), "readers": {"M": {"3.0.0": number(1)}}}
    return {"id": text(f"shard/{shard_id(shard)}"), "start": start, "end": end, **fence, **parents, **(_children(shard) if end is END else {})}


def _children(shard: int) -> dict[str, Any]:
    following = {child: parents for child, parents in PARENTS.items() if shard in parents}
    listed = [{"M": {"id": text(shard_id(c)), "parents": {"SS": [shard_id(p) for p in parents]}}} for c, parents in following.items()]
    return {"children": {"L": listed}}


RELEASED = {"released": {"BOOL": True}}
DUMPS = [
    dump(
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
    ),
    dump(
        "sluice-released",  # taken over from KCL itself: shard 1 still stands inside an aggregate
        {
            "sluice-released": Table(
                {"id": "HASH"},
                [
                    consumer(**RELEASED),
                    row(0, 3, BEGINNING, END),
                    row(1, COMMITTED, at_record(1, 3, 1), at_record(1, 3, 1)),
                    row(2, COMMITTED, at_record(2, 4), at_record(2, 5)),
                    row(3, 6, BEGINNING, END),
                    row(4, 0, BEGINNING, BEGINNING),
                ],
            )
        },
        [NOTHING, (3, 2), NOTHING, NOTHING, EVERYTHING],
    ),
    dump(
        "sluice-timestamp",  # bootstrapped at a time, nothing read since
        {
            "sluice-timestamp": Table(
                {"id": "HASH"},
                [
                    consumer(**RELEASED),
                    row(0, 0, END, END),
                    row(1, 0, END, END),
                    row(2, 0, at_time(2, 2), at_time(2, 2)),
                    row(3, 0, END, END),
                    row(4, 0, at_time(4, 4), at_time(4, 4)),
                ],
            )
        },
        [NOTHING, NOTHING, after(2), NOTHING, after(4)],
    ),
]
