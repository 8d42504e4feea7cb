"""The screen of `show`: what a person reads of a checkpoint table."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from sluice_checkpoints.cli.show import lag, lasting, moment, parsed, screen
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.versions import KeptPosition, SpecName, Version
from sluice_lab.fakes.table import MemoryTable

NOW = datetime(2026, 11, 21, 10, 10, 30, tzinfo=UTC)
MILLIS = round(NOW.timestamp() * 1000)
ROW = ConsumerRow(
    "c-1",
    "arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
    5,
    generation=3,
    lease_millis=20_000,
    committed=124,
    bootstrapped=True,
    holder="orders-driver-3/17",
    updated_at="2026-11-21T10:00:03+00:00",
    owner="shop/orders",
    cluster="prod 1b2c",
    last_commit={"batch": 124, "at": MILLIS - 13_000, "former": MILLIS - 23_000, "records": 521},
    last_beat={"generation": 3, "at": MILLIS - 2_000},
)
AFTER = Position.after("49680415687272674334556884200736274963358048711337836594")
LATER = Position.after("49680415687272674334556884200736274963358048711337836999")
PARENT = ShardRow("shardId-000000000000", AFTER, END, 3, batch=90, children=(Child("shardId-000000000002", frozenset({"shardId-000000000000"})),))
ROWS = (
    PARENT,
    ShardRow("shardId-000000000001", AFTER, LATER, 3, batch=125, records=40, read_to=MILLIS - 4_000, behind=133_000),
    ShardRow("shardId-000000000002", AFTER, AFTER, 3, batch=124, read_to=MILLIS - 5_000, parents=frozenset({PARENT.id})),
    ShardRow("shardId-000000000003", TRIM_HORIZON, TRIM_HORIZON, 3, joins=126, parents=frozenset({"shardId-000000000001"})),
)


def shown(row: ConsumerRow | None = ROW, rows: tuple[ShardRow, ...] = ROWS, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(screen("sluice_shop_orders", read(row, rows), NOW, width))
    return out.getvalue()


def read(row: ConsumerRow | None = ROW, rows: tuple[ShardRow, ...] = ROWS) -> dict[str, Any]:
    table = MemoryTable("sluice_shop_orders")
    items = [*([row.to_item()] if row else []), *(each.to_item() for each in rows)]
    table.rows.update({item["id"]: item for item in items})
    return document(table)


def line(text: str, word: str) -> str:
    return next(each for each in text.splitlines() if each.startswith(word))


def test_the_committed_batch_comes_before_the_open_one() -> None:
    text = shown(width=120)
    assert text.index("batch 124") < text.index("batch 125")
    assert line(text, "committed").split(maxsplit=1)[1] == "batch 124 13s ago, at 2026-11-21 10:10:17Z: 521 records, 52.1 a second"
    assert line(text, "open").split(maxsplit=1)[1] == "batch 125: 40 records bound in 1 shard so far"


def test_without_an_open_batch_none_is_named() -> None:
    """A batch 0 after batch 21 would be no batch at all."""
    text = shown(rows=ROWS[:1])
    assert line(text, "open").split(maxsplit=1)[1] == "no batch"
    assert "batch 0" not in shown(row=replace(ROW, committed=0, last_commit={}), rows=())


def test_the_lease_says_who_holds_it_since_when_and_how_fresh_it_is() -> None:
    text = line(shown(width=150), "lease")
    assert "held by orders-driver-3/17 since 2026-11-21 10:00:03Z, generation 3; last beat 2s ago" in text
    assert "longer ago" not in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"last_beat": {"generation": 3, "at": MILLIS - 61_000}}, "last beat 1m01s ago, longer ago than the 20s that it promised"),
        ({"last_beat": {"generation": 2, "at": MILLIS}}, "no beat of it is known (promised for 20s)"),
        ({"last_beat": {"generation": 3, "at": MILLIS + 9_000}}, "last beat 0s ago"),
        ({"released": True}, "released by orders-driver-3/17, generation 3"),
        ({"generation": 0, "holder": None, "last_beat": {}}, "nobody has taken it"),
        ({"updated_at": None, "holder": None}, "held by an unknown holder, generation 3"),
    ],
)
def test_a_lease_in_every_state(change: dict[str, Any], words: str) -> None:
    assert words in " ".join(line(shown(replace(ROW, **change), width=200), "lease").split())


def test_a_commit_of_an_older_version_has_no_time() -> None:
    """What was written for an earlier batch says nothing of this one."""
    text = line(shown(replace(ROW, committed=125), width=150), "committed")
    assert text.split(maxsplit=1)[1] == "batch 125, at a time that its driver did not write down"


def test_lag_is_in_words() -> None:
    found = read()["shards"]
    assert [lag(shard, found) for shard in found.values()] == ["ended", "2m13s behind", "at the tip", "waits for parents"]
    lonely = read(rows=(replace(ROWS[3], parents=frozenset({"shardId-000000000000"})), PARENT))["shards"]
    assert lag(lonely["shardId-000000000003"], lonely) == "not read yet"
    moved = read(rows=(replace(ROWS[2], batch=124, joins=125, start=LATER, end=LATER, behind=0), replace(ROWS[1], joins=126)))["shards"]
    assert {lag(shard, moved) for shard in moved.values()} == {"not read yet"}
    assert {shard["range"]["behind"] for shard in moved.values()} == {None}
    ending = read(rows=(replace(PARENT, batch=125),))["shards"]
    assert lag(ending[PARENT.id], ending) == "end in open batch"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal_and_no_shard_is_cut(width: int) -> None:
    text = shown(width=width)
    assert max(map(len, text.splitlines())) <= width
    for row in ROWS:
        assert row.id in text
    assert ("PARENTS" in text) is (width >= 120)


def test_the_positions_file_says_what_it_was_read_at() -> None:
    found = read(replace(ROW, table_id="arn:table@1"))
    assert (found["generation"], found["committed"], found["consumerId"], found["tableId"], found["consistent"]) == (
        3,
        124,
        "c-1",
        "arn:table@1",
        True,
    )
    behind = found["shards"]["shardId-000000000001"]
    assert Position.from_map({key: behind[key] for key in ("at", "sequence")}) == AFTER
    assert behind["range"] == {"batch": 125, "joins": 1, "records": 40, "bytes": 0, "readTo": MILLIS - 4_000, "behind": 133_000}
    assert found["open"] == {"batch": 125, "shards": 1, "records": 40}


def test_versions_are_listed_by_their_batches() -> None:
    table = MemoryTable("t")
    table.rows.update({item["id"]: item for item in (ROW.to_item(), *(row.to_item() for row in ROWS))})
    store, epoch = CheckpointStore(table), Epoch(ROW.generation, ROW.token)
    specs = (SpecName(), SpecName("0123456789abcdef", "orders:1"), SpecName("b", "orders:2"))
    former: list[Version] = []
    for spec, first in zip(specs, (1, 90, 90), strict=True):
        version = Version(spec, first, len(former), MILLIS, slot=len(former))
        version = versions.keep(store, version, {"shardId-000000000001": KeptPosition(AFTER)}) if former else version
        versions.name(store, epoch, former, version)
        former.append(version)
    found = document(table)
    assert [(each["first"], each["last"], each["batches"], each["positions"]) for each in found["versions"]] == [
        (1, 89, 89, False),
        (90, 89, 0, False),
        (90, None, 35, True),
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(screen("t", found, NOW, 80))
    lines = [each.split() for each in out.getvalue().splitlines()[-4:]]
    assert lines[0] == ["BATCHES", "SINCE", "POSITIONS", "SPEC", "IMAGE"]
    assert lines[1] == ["1", "to", "89", "2026-11-21", "10:10:30Z", "-", "unknown", "-"]
    assert lines[2] == ["none", "of", "90", "2026-11-21", "10:10:30Z", "-", "0123456789ab", "orders:1"]
    assert lines[3] == ["90", "on", "2026-11-21", "10:10:30Z", "kept", "b", "orders:2"]


def test_a_table_that_went_on_while_it_was_read_says_so() -> None:
    """Its positions may be of several batches."""

    class Moving(MemoryTable):
        def scan(self) -> Any:
            yield from super().scan()
            self.rows["consumer"]["committed"] += 1

    table = Moving("t")
    table.rows.update({item["id"]: item for item in (ROW.to_item(), *(row.to_item() for row in ROWS))})
    found = document(table)
    assert (found["committed"], found["consistent"]) == (124, False)
    out = io.StringIO()
    Console(file=out, width=150).print(screen("t", found, NOW, 150))
    assert "run this again" in out.getvalue()


@pytest.mark.parametrize(("millis", "words"), [(0, "0s"), (133_000, "2m13s"), (11_100_000, "3h05m"), (187_200_000, "2d04h")])
def test_durations_have_two_units(millis: int, words: str) -> None:
    assert lasting(millis) == words


def test_a_time_without_a_zone_is_none() -> None:
    """Nobody knows where it was written."""
    assert parsed("2026-11-21T10:00:03") is None
    assert parsed("yesterday") is None
    assert parsed(None) is None
    assert moment(parsed("2026-11-21T11:00:03+01:00") or 0) == "2026-11-21 10:00:03Z"
    assert NOW - timedelta(milliseconds=MILLIS) == datetime(1970, 1, 1, tzinfo=UTC)
