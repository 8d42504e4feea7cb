"""What a correct take-over of a dump delivers, worked out without the product. Pure.

Most dumps say it themselves, for whoever made them knew what was stored. Those that NiFi made of a KCL table do not: there it follows from what
their tables still hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from takeover.dumps import Dump
from takeover.replay import Recorded

Row = tuple[str, int, str]  # sequence number, place inside the aggregate, payload
Delivery = dict[str, list[Row]]  # by shard
Done = tuple[int, float]  # sequence number, and the last user record of it that is done


def expected(dump: Dump) -> dict[str, Delivery]:
    if all("derived" in stream for stream in dump.document["streams"].values()):
        return _as_derived(dump)
    return by_nifi_rules(dump) if nifi_only(dump) else _as_derived(dump.made_of())


def nifi_only(dump: Dump) -> bool:
    """Whether all tables are in NiFi's schema: the KCL table that it may have begun with is gone."""
    return all({key["AttributeName"] for key in table["describe"]["KeySchema"]} == {"streamName", "shardId"} for table in dump.tables.values())


def nothing_left(dump: Dump) -> bool:
    return nifi_only(dump) and not any(highest(dump, stream) for stream in dump.streams)


def by_nifi_rules(dump: Dump) -> dict[str, Delivery]:
    """A number, wherever it is still found and the highest of them, means that its record is done up to the user record that stands beside it.

    NiFi's copy of a KCL row says 0 whatever KCL had done: the rest of that aggregate comes again. A shard without a number begins.
    """
    return {name: _after(highest(dump, name), stream) for name, stream in dump.streams.items()}


def _after(done: Mapping[str, Done], stream: Recorded) -> Delivery:
    users = {shard["ShardId"]: user_records(stream.records.get(shard["ShardId"], ())) for shard in stream.shards}
    return {shard: [row for row in rows if (int(row[0]), row[1]) > done.get(shard, (0, 0))] for shard, rows in users.items()}


def highest(dump: Dump, stream: str) -> dict[str, Done]:
    items = [item for table in dump.tables.values() for item in table["items"] if item["streamName"]["S"] == stream and "sequenceNumber" in item]
    places: dict[str, Done] = {}
    for item in items:
        shard = item["shardId"]["S"]
        sub = float(item["subSequenceNumber"]["N"]) if "subSequenceNumber" in item else float("inf")
        places[shard] = max(places.get(shard, (0, 0.0)), (int(item["sequenceNumber"]["S"]), sub))
    return places


def user_records(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    """All user records of a shard: those of an aggregate are numbered, a plain record has number 0."""
    return [
        (record["seq"], user.get("sub") or 0, user["sha256"]) for record in records for user in record.get("user") or [{"sha256": record["sha256"]}]
    ]


def _as_derived(dump: Dump) -> dict[str, Delivery]:
    streams = dump.document["streams"].items()
    return {name: {shard: [tuple(row) for row in d["must_deliver"]] for shard, d in stream["derived"].items()} for name, stream in streams}
