"""NiFi's tables in states in which its own migration from a KCL table can be interrupted. No end of a shard is stored in them."""

from __future__ import annotations

from typing import Any

from takeover.handmade import EVERYTHING, NOTHING, STREAM, Item, Table, after, dump, number, sequence, shard_id, text

KEYS = {"streamName": "HASH", "shardId": "RANGE"}
KCL_KEYS = {"leaseKey": "HASH"}
MILLIS = number(1_795_200_900_000)
MAIN, HALF = "orders-nifi", "orders-nifi_migration"
Extra = dict[str, Any]

COPY_DONE: Extra = {"migrationStatus": text("COMPLETE"), "migrationOwner": text("0d9f1c1e-node"), "migrationStartedAt": MILLIS}


def row(shard: int, record: int) -> Item:
    """A shard that stands after the first user record of a record: all of it, unless it is an aggregate."""
    place = {"sequenceNumber": text(sequence(shard, record)), "subSequenceNumber": number(0)}
    return {"streamName": text(STREAM), "shardId": text(shard_id(shard)), "lastUpdateTimestamp": MILLIS, **place}


def marker(**more: Any) -> Item:
    return {"streamName": text(STREAM), "shardId": text("__migration__"), "lastUpdateTimestamp": MILLIS, **more}


def lease(shard: int, checkpoint: str, sub: int = 0) -> Item:
    place = {"checkpoint": text(checkpoint), "checkpointSubSequenceNumber": number(sub)}
    return {"leaseKey": text(shard_id(shard)), "leaseCounter": number(7), "ownerSwitchesSinceCheckpoint": number(0), **place}


COPIED = (row(0, 5), row(1, 3), row(2, 1))
LEGACY = Table(
    KCL_KEYS,
    [lease(0, "SHARD_END"), lease(1, sequence(1, 3), 1), lease(2, sequence(2, 3), 2), lease(3, "SHARD_END"), lease(4, "TRIM_HORIZON")],
)
AFTER_THE_COPY = [NOTHING, (3, 1), after(1), EVERYTHING, EVERYTHING]  # the copy has 0 where KCL had more: the rest of an aggregate comes again

DUMPS = [
    dump("nifi-main-missing", {HALF: Table(KEYS, [*COPIED, marker(**COPY_DONE, renameOwner=text("n"), renameStartedAt=MILLIS)])}, AFTER_THE_COPY),
    dump(
        "nifi-main-partly-copied",  # its row of shard 1 moved on since, and that of shard 2 is behind the copy
        {MAIN: Table(KEYS, [row(1, 4), row(2, 0)]), HALF: Table(KEYS, [*COPIED, marker(**COPY_DONE)])},
        [NOTHING, after(4), after(1), EVERYTHING, EVERYTHING],
    ),
    dump(
        "nifi-legacy-whole",  # half of it is copied, without the places inside aggregates
        {MAIN: LEGACY, HALF: Table(KEYS, [row(1, 3), marker(**COPY_DONE | {"migrationStatus": text("IN_PROGRESS")})])},
        [NOTHING, (3, 2), (3, 3), NOTHING, EVERYTHING],
    ),
]

# What NiFi's next start makes of a KCL table when its first one failed before the copy (seen: README of the dumps, h1-scan-fails).
NOTHING_LEFT = dump("nifi-nothing-left", {MAIN: Table(KEYS), HALF: Table(KEYS, [marker()])}, [])
