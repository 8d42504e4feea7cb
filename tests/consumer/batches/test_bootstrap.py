from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace

import pytest

from sluice_checkpoints.errors import Fenced, ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ConsumerRow, MigrationRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.model import Shard, ShardList
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.bootstrap import Seed
from sluice_consumer.config import StartConfig
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable

T0 = 1_700_000_000_000
OPEN, CLOSED = Shard("open", (), 0, 1, "1"), Shard("closed", (), 0, 1, "1", "2")


class Crash(BaseException):
    """The process died here."""


def seed(stream: MemoryStream, plan: str = "plan") -> Seed:
    return Seed(plan, f"id of {plan}", stream.describe(), stream.list_shards())


def taken(store: CheckpointStore) -> tuple[ConsumerRow, Epoch]:
    before = store.consumer()
    assert before is not None
    after = store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
    assert after is not None
    return after, Epoch(after.generation, after.token)


def crash_after(writes: int) -> Callable[[str, str, object], None]:
    left = [writes]

    def hook(when: str, operation: str, _argument: object) -> None:
        if when == "before" and operation in {"write", "transact"}:
            left[0] -= 1
            if left[0] < 0:
                raise Crash

    return hook


@pytest.mark.parametrize(
    ("start", "shard", "expected"),
    [
        (StartConfig("TRIM_HORIZON"), OPEN, TRIM_HORIZON),
        (StartConfig("TRIM_HORIZON"), CLOSED, TRIM_HORIZON),
        (StartConfig("LATEST"), OPEN, Position.timestamp(T0)),
        (StartConfig("LATEST"), CLOSED, END),
        (StartConfig("AT_TIMESTAMP", "2023-11-14T22:13:00+00:00"), OPEN, Position.timestamp(T0 - 20_000)),
        (StartConfig("AT_TIMESTAMP", "2023-11-14T22:13:00+00:00"), CLOSED, Position.timestamp(T0 - 20_000)),
        (StartConfig("AT_TIMESTAMP", "2023-11-14T22:13:21+00:00"), OPEN, Position.timestamp(T0)),
    ],
)
def test_a_shard_begins(start: StartConfig, shard: Shard, expected: Position) -> None:
    """LATEST is a time for open shards and END for closed ones; no time lies after T0."""
    assert bootstrap.starting_position(start, shard, T0) == expected


def test_a_start_in_the_future_is_refused() -> None:
    with pytest.raises(Refused, match=r"start\.timestamp"):
        bootstrap.starting_position(StartConfig("AT_TIMESTAMP", "2024-01-01T00:00:00Z"), OPEN, T0)


@pytest.mark.parametrize(
    ("hours_ago", "age_hours", "oldest"),
    [(43, 100, True), (24.01, 100, True), (23.9, 100, False), (43, 1, False), (43, 24.01, True)],
    ids=["long before", "just before", "just after", "before a young stream", "before a stream that has begun to forget"],
)
def test_a_start_before_the_oldest_record_is_one_at_the_oldest(hours_ago: float, age_hours: float, *, oldest: bool) -> None:
    """A time would look overtaken. A young stream has kept everything, and may be overtaken yet."""
    start = datetime.datetime.fromtimestamp(T0 / 1000 - hours_ago * 3600, datetime.UTC)
    config = StartConfig("AT_TIMESTAMP", start.isoformat())
    identity = replace(MemoryStream("s").describe(), created_millis=T0 - round(age_hours * 3_600_000))
    plan = Seed("p", "id", identity, ShardList((OPEN, CLOSED), T0))
    (item,) = bootstrap.chunk_items(plan, config)
    assert [shard["at"]["at"] for shard in item["shards"]] == ["TRIM_HORIZON" if oldest else "TIMESTAMP"] * 2
    told = bootstrap.before_the_oldest(plan, config)
    assert (told is not None) == oldest
    assert told is None or told.startswith(
        f"start.timestamp {start.isoformat()} lies before the oldest record of stream s, which keeps records for 24 h"
    )
    store = CheckpointStore(MemoryTable())
    assert bootstrap.prepare(store, plan, config)
    row = store.consumer()
    assert row is not None
    assert bootstrap.expired_before(store, row) == (T0 - 2000 - 86_400_000 if oldest else None)


def test_only_a_start_at_a_time_can_lie_before_the_oldest_record() -> None:
    stream = MemoryStream("s")
    for start in (StartConfig("TRIM_HORIZON"), StartConfig("LATEST")):
        assert bootstrap.before_the_oldest(seed(stream), start) is None
        store = CheckpointStore(MemoryTable())
        assert bootstrap.prepare(store, seed(stream), start)
        row = store.consumer()
        assert row is not None
        assert bootstrap.expired_before(store, row) is None


def test_latest_is_pinned_to_the_date_of_the_listing_less_two_seconds() -> None:
    """Kinesis refuses a timestamp in its future, and clocks differ."""
    (item,) = bootstrap.chunk_items(Seed("p", "id", MemoryStream("s").describe(), ShardList((OPEN, CLOSED), T0)), StartConfig("LATEST"))
    assert item["t0"] == T0 - 2000
    assert item["shards"] == [
        {"id": "open", "open": True, "at": {"at": "TIMESTAMP", "millis": T0 - 2000}},
        {"id": "closed", "open": False, "at": {"at": "END"}},
    ]


def test_a_plan_of_many_shards_is_cut_into_rows_of_two_thousand() -> None:
    """A DynamoDB item holds 400 KB."""
    shards = tuple(Shard(f"s{i}", (), 0, 1, "1") for i in range(4001))
    items = bootstrap.chunk_items(Seed("p", "id", MemoryStream("s").describe(), ShardList(shards, T0)), StartConfig())
    assert [(item["id"], len(item["shards"])) for item in items] == [("bootstrap/p/0", 2000), ("bootstrap/p/1", 2000), ("bootstrap/p/2", 1)]


def test_a_bootstrap_gives_every_shard_its_row_with_its_parents() -> None:
    stream, store = MemoryStream("s"), CheckpointStore(MemoryTable())
    stream.split("shardId-000000000000")
    assert bootstrap.prepare(store, seed(stream), StartConfig("LATEST"))
    consumer, epoch = taken(store)
    assert bootstrap.finish(store, consumer, epoch).bootstrapped
    rows = store.shards()
    assert [(r.end.at, r.joins, r.generation, r.batch) for r in rows.values()] == [("END", 1, 0, 0), ("TIMESTAMP", 1, 0, 0), ("TIMESTAMP", 1, 0, 0)]
    assert rows["shardId-000000000002"].parents == {"shardId-000000000000"}


def test_of_two_bootstrappers_the_first_wins_and_the_other_plan_is_ignored() -> None:
    stream, store = MemoryStream("s"), CheckpointStore(MemoryTable())
    assert bootstrap.prepare(store, seed(stream, "first"), StartConfig("TRIM_HORIZON"))
    assert not bootstrap.prepare(store, seed(stream, "second"), StartConfig("LATEST"))
    consumer, epoch = taken(store)
    assert (consumer.plan, consumer.consumer_id) == ("first", "id of first")
    bootstrap.finish(store, consumer, epoch)
    assert {row.end for row in store.shards().values()} == {TRIM_HORIZON}


def test_no_bootstrap_beside_a_migration() -> None:
    """A table that a migrator has claimed gets its positions from it."""
    store = CheckpointStore(MemoryTable())
    store.put_new(MigrationRow("source", "kcl", 1).to_item())
    assert not bootstrap.prepare(store, seed(MemoryStream("s")), StartConfig())
    assert store.consumer() is None


@pytest.mark.parametrize("writes", range(4))
def test_a_crash_anywhere_is_finished_by_the_next_epoch_with_the_same_plan(writes: int) -> None:
    """What arrives between the crash and the next start belongs to the consumer: LATEST is not decided again."""
    now = [T0]
    stream = MemoryStream("s", 3, now=lambda: now[0])
    table = MemoryTable()
    store = CheckpointStore(table)
    bootstrap.prepare(store, seed(stream, "plan"), StartConfig("LATEST"))
    consumer, epoch = taken(store)
    table.hook = crash_after(writes)
    with pytest.raises(Crash):
        bootstrap.finish(store, consumer, epoch)
    table.hook = lambda *_: None
    now[0] += 3_600_000
    assert not bootstrap.prepare(store, seed(stream, "later"), StartConfig("LATEST"))
    bootstrap.finish(store, *taken(store))
    assert {row.end for row in store.shards().values()} == {Position.timestamp(T0 - 2000)}
    assert len(store.shards()) == 3


def test_finishing_again_changes_no_row_that_moved_on() -> None:
    stream, store = MemoryStream("s"), CheckpointStore(MemoryTable())
    bootstrap.prepare(store, seed(stream), StartConfig())
    consumer, epoch = taken(store)
    bootstrap.finish(store, consumer, epoch)
    store.fence(epoch, "shardId-000000000000")
    bootstrap.finish(store, consumer, epoch)
    assert store.shards()["shardId-000000000000"].generation == epoch.generation


def test_a_fenced_epoch_does_not_finish_the_bootstrap() -> None:
    store = CheckpointStore(MemoryTable())
    bootstrap.prepare(store, seed(MemoryStream("s")), StartConfig())
    consumer, epoch = taken(store)
    taken(store)
    with pytest.raises(Fenced):
        bootstrap.finish(store, consumer, epoch)


def test_a_missing_row_of_the_plan_is_an_error() -> None:
    table = MemoryTable()
    store = CheckpointStore(table)
    bootstrap.prepare(store, seed(MemoryStream("s")), StartConfig())
    consumer, epoch = taken(store)
    del table.rows["bootstrap/plan/0"]
    with pytest.raises(ProtocolViolation, match="bootstrap/plan/0"):
        bootstrap.finish(store, consumer, epoch)
