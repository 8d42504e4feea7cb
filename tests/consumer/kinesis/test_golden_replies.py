"""Streams that the real KCL, KPL and Kinesis emulators left behind are delivered as a correct take-over delivers them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reading.kpl import aggregate
from reading.stream import PLENTY, Stream

from sluice_checkpoints.position import END, TRIM_HORIZON
from sluice_checkpoints.stream.catalog import shard_from_reply
from sluice_consumer.shards.ranges import BoundRange, FetchRequest, Limits
from sluice_lab.fakes.kinesis import FakeBehaviour
from sluice_lab.fakes.stream import MemoryRecord, MemoryShard

DUMPS = sorted((Path(__file__).parents[2] / "checkpoints" / "golden").glob("*.json"))
Row = tuple[str, int, str]


def payload(record: dict[str, Any]) -> bytes:
    """A Kinesis record of a dump: dumps hold hashes of payloads, and the user records of aggregates."""
    users = record.get("user")
    if not users or users[0].get("sub") is None:
        return str(record["sha256"]).encode()
    return aggregate([(user["pk"], user["sha256"].encode()) for user in users])


def replayed(recorded: dict[str, Any], behaviour: FakeBehaviour) -> Stream:
    stream = Stream()
    stream.client.behaviour = behaviour
    stream.memory.shards = {listed["ShardId"]: MemoryShard(shard_from_reply(listed)) for listed in recorded["shards"]}
    for shard_id, records in recorded["records"].items():
        shard = stream.memory.shards[shard_id]
        shard.records = [MemoryRecord(r["seq"], r["pk"], payload(r), round(r["arrival"] * 1000)) for r in records]
        shard.numbers = [int(r["seq"]) for r in records]
    stream.now = 1000 + max(r.arrival_millis for shard in stream.memory.shards.values() for r in shard.records)
    return stream


def recorded_rows(recorded: dict[str, Any], shard_id: str) -> list[Row]:
    return [
        (record["seq"], user.get("sub") or 0, user["sha256"])
        for record in recorded["records"].get(shard_id, [])
        for user in record.get("user") or [{"sub": 0, "sha256": record["sha256"]}]
    ]


def read(stream: Stream, shard_id: str, limits: Limits) -> tuple[list[Row], bool]:
    """All rows of a shard, range after range, each read again; and whether it ended."""
    rows: list[Row] = []
    position = TRIM_HORIZON
    while True:
        fetched = stream.reader.fetch(FetchRequest(shard_id, position), limits)
        again = stream.reader.replay(BoundRange(shard_id, fetched.start, fetched.end, fetched.first, fetched.records))
        assert again.columns == fetched.columns
        columns = fetched.columns
        rows += zip(columns.sequence, columns.sub, [data.decode() for data in columns.data], strict=True)
        if fetched.end in {END, position}:
            return rows, fetched.end == END
        position = fetched.end


@pytest.mark.parametrize("limits", [PLENTY, Limits(7, 10_000)], ids=["at once", "in small ranges"])
@pytest.mark.parametrize("dump", DUMPS, ids=[dump.stem for dump in DUMPS])
def test_every_user_record_comes_once_and_in_order(dump: Path, limits: Limits) -> None:
    for recorded in json.loads(dump.read_text())["streams"].values():
        stream = replayed(recorded, FakeBehaviour(child_shards=False, end_with_records=True, page_records=9))
        for shard_id, shard in stream.memory.shards.items():
            assert read(stream, shard_id, limits) == (recorded_rows(recorded, shard_id), shard.shard.closed)


def test_there_are_dumps() -> None:
    """Otherwise this file proves nothing."""
    assert len(DUMPS) >= 5
