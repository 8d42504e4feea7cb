"""Tables of vmware-go-kcl 1 and 2 and of kinsumer (twitch, snowplow). None has a place inside an aggregate."""

from __future__ import annotations

from typing import Any

from takeover.handmade import EVERYTHING, NOTHING, Item, Table, after, dump, number, sequence, shard_id, text

NANOS = number(1_795_200_900_000_000_001)
RFC = text("Fri, 20 Nov 2026 22:55:00 +0000")
NULL = {"NULL": True}
OWNED = {"OwnerName": text("w1"), "OwnerID": text("w1-id")}


def lease(shard: int, checkpoint: str | None, **more: str) -> Item:
    """A row of vmware-go-kcl; without a checkpoint it was leased and nothing more."""
    place = {} if checkpoint is None else {"Checkpoint": checkpoint}
    return {name: text(value) for name, value in {"ShardID": shard_id(shard), **place, **more}.items()}


def checkpoint(shard: int, stored: dict[str, Any], **more: Any) -> Item:
    """A row of kinsumer's; `Finished` has a value when the last record of a closed shard was committed."""
    open_ = {"Finished": NULL, "FinishedRFC": NULL}
    return {"Shard": text(shard_id(shard)), "SequenceNumber": stored, "LastUpdate": NANOS, "LastUpdateRFC": RFC, **open_, **more}


def finished(shard: int) -> Item:
    return checkpoint(shard, text(sequence(shard, 5)), Finished=NANOS, FinishedRFC=RFC)


def kinsumer(name: str, rows: list[Item], *clients: Item) -> dict[str, Table]:
    leader: Item = {"Key": text("Leader"), "ID": text("w1-id"), "Name": text("w1"), "LastUpdate": NANOS, "LastUpdateRFC": RFC}
    cached: Item = {"Key": text("ShardCache"), "ShardIDs": {"L": [text(shard_id(2))]}, "LastUpdate": NANOS, "LastUpdateRFC": RFC}
    tables = {
        "checkpoints": Table({"Shard": "HASH"}, rows),
        "clients": Table({"ID": "HASH"}, clients),
        "metadata": Table({"Key": "HASH"}, [leader, cached]),
    }
    return {f"{name}_{kind}": table for kind, table in tables.items()}


V1, V2 = "2026-11-20T18:49:00Z", "2026-11-20T18:49:00.123456789Z"
CLIENT = {"ID": text("w1-id"), "Name": text("w1"), "LastUpdate": NANOS, "LastUpdateRFC": RFC}

DUMPS = [
    dump(
        "gokcl-v1",
        {
            "orders-v1": Table(
                {"ShardID": "HASH"},
                [
                    lease(0, "SHARD_END", LeaseTimeout=V1),
                    lease(1, sequence(1, 3), LeaseTimeout=V1, AssignedTo="w1"),
                    lease(2, sequence(2, 0), LeaseTimeout=V1, AssignedTo="w1", ParentShardId=shard_id(0)),
                    lease(3, "SHARD_END", LeaseTimeout=V1, ParentShardId=shard_id(0)),
                ],
            )
        },
        [NOTHING, after(3), after(0), NOTHING, EVERYTHING],
    ),
    dump(
        "gokcl-v2",  # shard 2 is claimed by another worker, shard 3 was leased only, shard 4 names one parent of two
        {
            "orders-v2": Table(
                {"ShardID": "HASH"},
                [
                    lease(0, "SHARD_END", LeaseTimeout=V2),
                    lease(1, "SHARD_END", LeaseTimeout=V2),
                    lease(2, sequence(2, 4), LeaseTimeout=V2, AssignedTo="w1", ParentShardId=shard_id(0), ClaimRequest="w2"),
                    lease(3, None, LeaseTimeout=V2, AssignedTo="w1", ParentShardId=shard_id(0)),
                    lease(4, sequence(4, 1), LeaseTimeout=V2, AssignedTo="w1", ParentShardId=shard_id(3)),
                ],
            )
        },
        [NOTHING, NOTHING, after(4), EVERYTHING, after(1)],
    ),
    dump(
        "kinsumer-twitch",  # stopped in order: owners are gone; the merged shard is not cached yet
        kinsumer("twitch", [finished(0), checkpoint(1, text(sequence(1, 2))), checkpoint(2, text("")), finished(3)]),
        [NOTHING, after(2), EVERYTHING, NOTHING, EVERYTHING],
    ),
    dump(
        "kinsumer-snowplow",  # killed: owners and the client are still there
        kinsumer(
            "snowplow",
            [
                finished(0) | OWNED,
                checkpoint(1, text(sequence(1, 3)), **OWNED),
                checkpoint(2, text("LATEST"), **OWNED),
                checkpoint(3, NULL, **OWNED),
                checkpoint(4, text(sequence(4, 0)), OwnerName=NULL, OwnerID=NULL),
            ],
            CLIENT,
        ),
        [NOTHING, after(3), EVERYTHING, EVERYTHING, after(0)],
    ),
]
