from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.encoding import Expressions, UnreadableRow, from_wire, item_from_wire, item_to_wire, to_wire
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, MigrationRow, ShardRow
from sluice_checkpoints.protocol.table import Absent, AnyOf, AtMost, Below, Equals, Update, chunks

TEXT = st.text(max_size=8)
COUNTS = st.integers(min_value=0, max_value=2**53)
SEQUENCES = st.integers(min_value=0, max_value=10**129 - 1).map(str)
POSITIONS = st.one_of(
    st.just(TRIM_HORIZON),
    st.just(END),
    st.builds(Position.timestamp, COUNTS),
    st.builds(Position.after, SEQUENCES, st.none() | COUNTS),
)
SETS = st.frozensets(TEXT, max_size=3)
SHARDS = st.builds(
    ShardRow,
    id=TEXT,
    start=POSITIONS,
    end=POSITIONS,
    generation=COUNTS,
    batch=COUNTS,
    joins=COUNTS,
    first=st.none() | SEQUENCES,
    records=COUNTS,
    read_to=COUNTS,
    parents=SETS,
    children=st.none() | st.lists(st.builds(Child, TEXT, st.frozensets(TEXT, min_size=1, max_size=2)), max_size=2).map(tuple),
    readers=st.dictionaries(TEXT, COUNTS, max_size=2),
    read_by=st.none() | TEXT,
    note=st.none() | TEXT,
    calls=st.dictionaries(TEXT, COUNTS, max_size=2),
    iterator=st.none() | st.text(min_size=1, max_size=8),
)
CONSUMERS = st.builds(ConsumerRow, TEXT, TEXT, COUNTS, generation=COUNTS, token=TEXT, released=st.booleans(), plan=st.none() | TEXT, chunks=COUNTS)
MIGRATIONS = st.builds(
    MigrationRow, TEXT, TEXT, COUNTS, counter=COUNTS, released=st.booleans(), plan_digest=st.none() | TEXT, rows=st.none() | COUNTS
)


@given(row=SHARDS)
def test_an_iterator_is_that_of_the_batch_that_left_it(row: ShardRow) -> None:
    """An older Sluice that binds a range moves the place, and leaves what it does not know."""
    item = row.to_item()
    assert ShardRow.from_item(item).iterator == row.iterator
    assert ShardRow.from_item({**item, "batch": row.batch + 1}).iterator is None


@given(position=POSITIONS)
def test_a_position_survives_its_map(position: Position) -> None:
    assert Position.from_map(position.to_map()) == position


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"at": "LATEST"},
        {"at": "AFTER"},
        {"at": "TIMESTAMP"},
        {"at": "END", "sequence": "1"},
        {"at": "TRIM_HORIZON", "sub": 0},
        {"at": "TIMESTAMP", "millis": 1, "sub": 0},
        {"at": "AFTER", "sequence": "1", "colour": "red"},
    ],
)
def test_a_map_that_is_no_position_is_a_violation(stored: dict[str, Any]) -> None:
    with pytest.raises(ProtocolViolation):
        Position.from_map(stored)


@pytest.mark.parametrize("sequence", ["", "01", "-1", "1.0", "LATEST", " 1", "1" * 130, "\u0661"])
def test_what_is_no_sequence_number_is_refused(sequence: str) -> None:
    """Kinesis API reference: `0|([1-9][0-9]{0,128})`."""
    with pytest.raises(Refused):
        Position.after(sequence)


@given(row=SHARDS)
def test_a_shard_row_survives_storage(row: ShardRow) -> None:
    assert ShardRow.from_item(row.to_item()) == row
    assert item_from_wire(item_to_wire(row.to_item())) == row.to_item()


@given(row=CONSUMERS)
def test_a_consumer_row_survives_storage(row: ConsumerRow) -> None:
    assert ConsumerRow.from_item(item_from_wire(item_to_wire(row.to_item()))) == row


@given(row=MIGRATIONS)
def test_a_migration_row_survives_storage(row: MigrationRow) -> None:
    assert MigrationRow.from_item(item_from_wire(item_to_wire(row.to_item()))) == row


@pytest.mark.parametrize("value", [{"N": "1548967022.000001"}, {"NULL": True}, {"B": b""}])
def test_an_attribute_of_another_program_may_be_of_any_type(value: dict[str, Any]) -> None:
    """DynamoDB itself adds such ones to a global table of 2017. One of ours may not."""
    row = item_to_wire(ConsumerRow("c", "arn", 1).to_item())
    assert item_from_wire(row | {"aws:rep:updatetime": value}) == item_from_wire(row)
    with pytest.raises(UnreadableRow, match="row consumer"):
        item_from_wire(row | {"aws:rep:updatetime": value, "committed": {"N": "0.5"}})


@pytest.mark.parametrize(("committed", "position"), [(6, "AFTER 100"), (7, "AFTER 200"), (8, "AFTER 200")])
def test_a_shard_is_at_the_end_of_its_batch_once_that_is_committed(committed: int, position: str) -> None:
    row = ShardRow("shardId-1", Position.after("100"), Position.after("200"), batch=7)
    assert str(row.committed_position(committed)) == position


@pytest.mark.parametrize("value", [1.5, None, frozenset(), {1, 2} - {1, 2}, object(), b"bytes"])
def test_a_type_that_is_not_stored_is_an_error(value: object) -> None:
    with pytest.raises(TypeError):
        to_wire(value)


@pytest.mark.parametrize("tagged", [{"NULL": True}, {"B": b""}, {"NS": ["1"]}])
def test_a_type_that_is_not_ours_is_not_read(tagged: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        from_wire(tagged)


def test_every_name_and_value_of_an_expression_is_a_placeholder() -> None:
    """`start`, `bytes` and `state` are reserved words; a name used twice is sent once."""
    expressions = Expressions()
    text = expressions.conditions(
        (
            Equals(("state",), "x"),
            AnyOf((Absent(("readers", "4.1.0")), AtMost(("readers", "4.1.0"), 7), Below(("state",), 1))),
        )
    )
    assert text == "#0 = :0 AND (attribute_not_exists(#1.#2) OR #1.#2 <= :1 OR #0 < :2)"
    assert expressions.request()["ExpressionAttributeNames"] == {"#0": "state", "#1": "readers", "#2": "4.1.0"}
    assert expressions.values == {":0": {"S": "x"}, ":1": {"N": "7"}, ":2": {"N": "1"}}


def test_an_update_has_only_the_clauses_it_needs() -> None:
    """An empty clause is refused by the service."""
    full = Update("x", (), put={("a",): 1}, remove=frozenset({("c",), ("b",)}), add={"n": 1})
    assert Expressions().update(full) == "SET #0 = :0 REMOVE #1, #2 ADD #3 :1"
    assert Expressions().update(Update("x", (), add={"n": 1})) == "ADD #0 :0"
    assert Expressions().request() == {}


@given(values=st.lists(st.integers(), max_size=20), size=st.integers(min_value=1, max_value=7))
def test_chunks_keep_order_and_size(values: list[int], size: int) -> None:
    cut = list(chunks(values, size))
    assert [value for chunk in cut for value in chunk] == values
    assert all(0 < len(chunk) <= size for chunk in cut)
