from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.sluice import KEY, Sluice
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.encoding import item_to_wire
from sluice_checkpoints.protocol.rows import EXPORTED, RESETTING, Child, ConsumerRow, MigrationRow, ShardRow
from sluice_checkpoints.stream.model import StreamIdentity

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
CONSUMER = ConsumerRow("c", STREAM.arn, 1, generation=3, lease_millis=20_000, committed=7, bootstrapped=True)
A, B, C = (f"shardId-{i:012d}" for i in range(3))
FROM, TO = Position.after("150"), Position.after("160")


def snapshot(*rows: Any) -> Snapshot:
    return Snapshot("app", {"app": KEY}, {"app": [item_to_wire(row.to_item()) for row in rows]})


def read(*rows: Any) -> Reading:
    return Sluice().parse(snapshot(*rows), STREAM)


@pytest.mark.parametrize(("batch", "stands"), [(0, FROM), (6, TO), (7, TO), (8, FROM)])
def test_a_shard_stands_at_the_end_of_a_committed_range_and_at_the_start_of_an_open_one(batch: int, stands: Position) -> None:
    end = TO if batch else FROM
    (shard,) = read(CONSUMER, ShardRow(A, FROM, end, batch=batch)).shards
    assert shard.stored.position == stands
    assert bool(shard.stored.again) is (batch == 8)


def test_places_inside_an_aggregate_times_and_ends_are_kept() -> None:
    rows = [
        ShardRow(A, END, END, children=(Child(B, frozenset({A})), Child(C, frozenset({A})))),
        ShardRow(B, Position.after("150", 3), Position.after("150", 3), parents=frozenset({A})),
        ShardRow(C, Position.timestamp(5), Position.timestamp(5), parents=frozenset({A})),
    ]
    shards = {shard.id: shard for shard in read(CONSUMER, *rows).shards}
    assert shards[A].stored.position == END
    assert shards[A].children == {B, C}
    assert shards[B].stored.position == Position.after("150", 3)
    assert shards[C].stored.position == Position.timestamp(5)
    assert shards[B].parents == {A}


def test_rows_of_a_migration_and_a_bootstrap_are_skipped() -> None:
    chunk: dict[str, Any] = {"id": {"S": "bootstrap/p/0"}, "shards": {"L": []}}
    seen = snapshot(CONSUMER, MigrationRow("old", "kcl", 0), ShardRow(A, TRIM_HORIZON, TRIM_HORIZON))
    reading = Sluice().parse(replace(seen, tables={"app": [*seen.rows, chunk]}), STREAM)
    assert [shard.id for shard in reading.shards] == [A]
    assert len(reading.skipped) == 3


@pytest.mark.parametrize(
    ("consumer", "said"),
    [
        (None, "no consumer row"),
        (replace(CONSUMER, stream_created=2), "is of stream"),
        (replace(CONSUMER, stream_arn="arn:aws:kinesis:us-east-1:0:stream/other"), "is of stream"),
        (replace(CONSUMER, state=EXPORTED), "is EXPORTED"),
        (replace(CONSUMER, state=RESETTING, reset="r1"), "the reset r1 is not complete"),
        (replace(CONSUMER, bootstrapped=False), "was never bootstrapped"),
        (replace(CONSUMER, letters=("letters/8",)), r"dead letters that are not published \(letters/8\)"),
    ],
)
def test_a_table_that_does_not_hold_this_streams_places_is_refused(consumer: ConsumerRow | None, said: str) -> None:
    with pytest.raises(Refused, match=said):
        read(*([consumer] if consumer else []), ShardRow(A, FROM, FROM))


@pytest.mark.parametrize("name", ["isolation", "letters"])
def test_rows_of_records_that_were_left_out_are_no_places(name: str) -> None:
    seen = snapshot(CONSUMER, ShardRow(A, FROM, FROM))
    reading = Sluice().parse(replace(seen, tables={"app": [*seen.rows, {"id": {"S": name}}]}), STREAM)
    assert ([shard.id for shard in reading.shards], len(reading.skipped)) == ([A], 2)


def test_an_unknown_row_is_refused() -> None:
    seen = snapshot(CONSUMER)
    with pytest.raises(Refused, match="unknown row 'lease/x'"):
        Sluice().parse(replace(seen, tables={"app": [*seen.rows, {"id": {"S": "lease/x"}}]}), STREAM)


@pytest.mark.parametrize(
    ("number", "attribute", "value", "said"),
    [
        (0, "committed", {"S": "7"}, "row consumer: attribute committed is '7'"),
        (0, "counter", {"N": "1.5"}, "row consumer: .*1.5"),
        (0, "holder", {"B": b"x"}, "row consumer: .*attribute type B"),
        (1, "start", {"S": "here"}, f"row shard/{A}: attribute start is 'here'"),
        (1, "end", {"M": {"at": {"S": "AFTER"}, "sequence": {"S": "12ab"}}}, f"row shard/{A}: sequence of a position is '12ab'"),
    ],
)
def test_a_row_that_sluice_did_not_write_is_refused_naming_row_and_attribute(number: int, attribute: str, value: Any, said: str) -> None:
    """Any table may have a key named id, and anybody may change a row by hand."""
    seen = snapshot(CONSUMER, ShardRow(A, FROM, FROM))
    rows = [dict(row) for row in seen.rows]
    rows[number][attribute] = value
    with pytest.raises(Refused, match=f"no row that Sluice writes: {said}"):
        Sluice().parse(replace(seen, tables={"app": rows}), STREAM)


def test_a_released_lease_is_rest_and_any_other_runs_out_first() -> None:
    """By the rule of a take-over: the promise, and 5 % more."""
    assert Sluice().quiet_seconds(snapshot(replace(CONSUMER, released=True))) == 0
    assert Sluice().quiet_seconds(snapshot(CONSUMER)) == pytest.approx(21)
