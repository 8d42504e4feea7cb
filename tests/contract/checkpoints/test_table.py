from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ReadTimeoutError

from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.table import (
    NEW_ROW,
    Absent,
    AnyOf,
    AtMost,
    Below,
    Check,
    Condition,
    Delete,
    Equals,
    Member,
    Outcome,
    Put,
    Table,
    Update,
    equals,
)

ROW: dict[str, Any] = {
    "id": "shard/a",
    "generation": 3,
    "batch": 10,
    "start": {"at": "AFTER", "sequence": "49" * 28, "sub": 0},
    "end": {"at": "END"},
    "readers": {"3.1.0": 7, "3.1.1": 2**40},
    "parents": frozenset({"x", "y"}),
    "children": [{"id": "b", "parents": frozenset({"a"})}],
    "released": True,
    "note": "",
    "bytes": 0,
}


@pytest.fixture
def filled(table: Table) -> Table:
    table.write(Put(ROW, ()))
    return table


# -- reads -------------------------------------------------------------------------------------------------------------------------


def test_a_row_comes_back_as_it_was_put(filled: Table) -> None:
    assert filled.get("shard/a") == ROW


def test_a_row_that_is_not_there_is_none(filled: Table) -> None:
    assert filled.get("shard/b") is None


def test_many_rows_are_read_by_key_beyond_the_limit_of_one_request(table: Table) -> None:
    """A request has 100 keys; missing and repeated ones are no matter."""
    for i in range(120):
        table.write(Put({"id": f"r{i}", "n": i}, ()))
    keys = [f"r{i}" for i in range(130)] + ["r0"]
    assert {key: row["n"] for key, row in table.batch_get(keys).items()} == {f"r{i}": i for i in range(120)}


def test_reading_no_keys_reads_nothing(table: Table) -> None:
    """No request is sent that the service would refuse."""
    assert table.batch_get([]) == {}


def test_a_scan_finds_every_row(table: Table) -> None:
    """Over pages: each row is large, and a page has 1 MB."""
    for i in range(12):
        table.write(Put({"id": f"r{i}", "fill": "x" * 150_000}, ()))
    assert sorted(row["id"] for row in table.scan()) == sorted(f"r{i}" for i in range(12))


def test_a_table_that_is_not_there_is_refused_by_name(dynamodb_api: Any) -> None:
    name = f"nowhere-{uuid4()}"
    with pytest.raises(Refused, match=name):
        DynamoTable(name, dynamodb_api).get("x")


# -- conditions --------------------------------------------------------------------------------------------------------------------

HOLDS: list[tuple[Condition, bool]] = [
    (Equals(("generation",), 3), True),
    (Equals(("generation",), 4), False),
    (Equals(("generation",), "3"), False),
    (Equals(("released",), value=True), True),
    (Equals(("released",), value=False), False),
    (Equals(("bytes",), value=False), False),
    (Equals(("nothing",), 3), False),
    (Equals(("start",), ROW["start"]), True),
    (Equals(("start",), {"at": "AFTER", "sequence": "49" * 28}), False),
    (Equals(("end",), {"at": "END"}), True),
    (Equals(("end",), {"at": "END", "sub": 0}), False),
    (Equals(("readers",), {"3.1.1": 2**40, "3.1.0": 7}), True),
    (Equals(("readers", "3.1.0"), 7), True),
    (Equals(("readers", "3.1.0"), 8), False),
    (Equals(("readers", "9.9.9"), 7), False),
    (Equals(("parents",), frozenset({"y", "x"})), True),
    (Equals(("parents",), frozenset({"x"})), False),
    (Equals(("note",), ""), True),
    (Below(("generation",), 4), True),
    (Below(("generation",), 3), False),
    (Below(("nothing",), 4), False),
    (Below(("note",), 4), False),
    (Below(("released",), 4), False),
    (AtMost(("batch",), 10), True),
    (AtMost(("batch",), 9), False),
    (AtMost(("readers", "3.1.0"), 7), True),
    (AtMost(("readers", "3.1.0"), 6), False),
    (AtMost(("readers", "9.9.9"), 6), False),
    (Absent(("nothing",)), True),
    (Absent(("note",)), False),
    (Absent(("readers", "9.9.9")), True),
    (Absent(("readers", "3.1.0")), False),
    (Absent(("nothing", "inside")), True),
    (Absent(("generation", "inside")), True),
    (Absent(("id",)), False),
    (AnyOf((Equals(("generation",), 9), Equals(("batch",), 10))), True),
    (AnyOf((Equals(("generation",), 9), Absent(("batch",)))), False),
]


NAMES = [f"{number}-{type(condition).__name__}" for number, (condition, _) in enumerate(HOLDS)]  # a set has another text in every process


@pytest.mark.parametrize(("condition", "expected"), HOLDS, ids=NAMES)
def test_a_condition_decides_whether_an_update_takes_effect(filled: Table, condition: Condition, *, expected: bool) -> None:
    """Types count, map order does not, and what is missing equals nothing."""
    outcome = filled.write(Update("shard/a", (condition,), put={("seen",): 1}))
    after = filled.get("shard/a") or {}
    assert outcome.applied is expected
    assert ("seen" in after) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [(NEW_ROW, True), (Absent(("anything",)), True), (Equals(("generation",), 1), False), (Below(("generation",), 1), False)],
)
def test_of_a_row_that_is_not_there_everything_is_absent(table: Table, condition: Condition, *, expected: bool) -> None:
    assert table.write(Put({"id": "new"}, (condition,))).applied is expected
    assert (table.get("new") is not None) is expected


def test_all_conditions_of_a_write_must_hold(filled: Table) -> None:
    assert filled.write(Update("shard/a", equals(generation=3, batch=10), put={("n",): 1})).applied
    assert not filled.write(Update("shard/a", equals(generation=3, batch=11), put={("n",): 2})).applied
    assert filled.write(Update("shard/a", (), put={("n",): 3})).applied


# -- what a write answers ----------------------------------------------------------------------------------------------------------


def test_a_refused_write_brings_the_row_as_it_stands(filled: Table) -> None:
    """ALL_OLD, for puts and updates; so the loser needs no second read."""
    assert filled.write(Put({"id": "shard/a"}, (NEW_ROW,))).row == ROW
    assert filled.write(Update("shard/a", equals(generation=9), put={("generation",): 10})).row == ROW
    assert filled.get("shard/a") == ROW


def test_a_refused_write_on_no_row_brings_nothing(table: Table) -> None:
    outcome = table.write(Update("shard/z", equals(generation=9), put={("generation",): 10}))
    assert (outcome.applied, outcome.row) == (False, None)
    assert table.get("shard/z") is None


def test_an_update_answers_with_the_former_values_of_what_it_set(filled: Table) -> None:
    """UPDATED_OLD: only what it touched, only where there was something. Of a map DynamoDB Local brings its other entries too."""
    outcome = filled.write(Update("shard/a", (), put={("batch",): 11, ("fresh",): 1, ("readers", "3.1.0"): 8}))
    found = outcome.row or {}
    assert found.keys() == {"batch", "readers"}
    assert (found["batch"], found["readers"]["3.1.0"]) == (10, 7)


def test_an_entry_that_was_not_there_has_no_former_value(filled: Table) -> None:
    outcome = filled.write(Update("shard/a", (), put={("readers", "9.9.9"): 8}))
    assert (outcome.row or {}).get("readers", {}).get("9.9.9") is None
    assert (filled.get("shard/a") or {})["readers"] == {**ROW["readers"], "9.9.9": 8}


def test_attributes_are_removed_and_numbers_added(filled: Table) -> None:
    """Removing what is not there is fine; adding to what is not there starts at 0."""
    filled.write(Update("shard/a", (), remove=frozenset({("note",), ("nothing",)}), add={"batch": 5, "fresh": 2}))
    row = filled.get("shard/a") or {}
    assert (row["batch"], row["fresh"], "note" in row) == (15, 2, False)


def test_a_put_replaces_the_whole_row(filled: Table) -> None:
    filled.write(Put({"id": "shard/a", "n": 1}, ()))
    assert filled.get("shard/a") == {"id": "shard/a", "n": 1}


@pytest.mark.parametrize("value", [frozenset(), None, 1.5, {"inner": frozenset()}, [None]])
def test_what_cannot_be_stored_is_an_error_before_anything_is(table: Table, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        table.write(Put({"id": "x", "value": value}, ()))
    assert table.get("x") is None


# -- transactions ------------------------------------------------------------------------------------------------------------------


def test_a_transaction_takes_effect_as_a_whole(filled: Table) -> None:
    members: list[Member] = [Check("shard/a", equals(generation=3)), Put({"id": "b"}, (NEW_ROW,)), Update("c", (), put={("n",): 1}, add={"m": 2})]
    assert filled.transact(members).applied
    assert (filled.get("b"), filled.get("c")) == ({"id": "b"}, {"id": "c", "n": 1, "m": 2})


def test_a_transaction_that_loses_one_condition_changes_nothing_and_says_which(filled: Table) -> None:
    members: list[Member] = [
        Check("shard/a", equals(generation=4)),
        Put({"id": "b"}, (NEW_ROW,)),
        Update("c", equals(n=1), put={("n",): 2}),
        Put({"id": "d"}, (NEW_ROW,)),
    ]
    result = filled.transact(members)
    assert (result.applied, dict(result.refused)) == (False, {0: ROW, 2: None})
    assert (filled.get("b"), filled.get("c"), filled.get("d")) == (None, None, None)


def test_a_transaction_has_up_to_100_members(table: Table) -> None:
    assert table.transact([Put({"id": f"r{i}"}, (NEW_ROW,)) for i in range(100)]).applied
    with pytest.raises(Exception, match=r".+"):
        table.transact([Put({"id": f"s{i}"}, (NEW_ROW,)) for i in range(101)])
    assert table.get("s0") is None


def test_a_transaction_touches_each_row_once(table: Table) -> None:
    """The service refuses two members on one row."""
    with pytest.raises(Exception, match=r".+"):
        table.transact([Check("a", ()), Put({"id": "a"}, ())])
    assert table.get("a") is None


# -- lost replies ------------------------------------------------------------------------------------------------------------------


def lost() -> Exception:
    broken: Exception = ReadTimeoutError(endpoint_url="http://dynamodb")
    return broken


def test_a_transaction_whose_reply_was_lost_is_not_applied_twice(dynamo_table: DynamoTable, dynamodb_api: Any, loses_replies: Any) -> None:
    """It carries one token for all its tries, so its second try is told that the first succeeded."""
    lossy = DynamoTable(dynamo_table.name, loses_replies(dynamodb_api, "transact_write_items", lost))
    assert lossy.transact([Update("a", (), add={"n": 1}), Put({"id": "b"}, (NEW_ROW,))]).applied
    assert dynamo_table.get("a") == {"id": "a", "n": 1}


def test_a_put_whose_reply_was_lost_answers_with_itself(dynamo_table: DynamoTable, dynamodb_api: Any, loses_replies: Any) -> None:
    """The second try loses to the first, and brings the row by which the caller knows it."""
    lossy = DynamoTable(dynamo_table.name, loses_replies(dynamodb_api, "put_item", lost))
    outcome = lossy.write(Put({"id": "a", "token": "mine"}, (NEW_ROW,)))
    assert (outcome.applied, outcome.row) == (False, {"id": "a", "token": "mine"})


# -- side by side ------------------------------------------------------------------------------------------------------------------


def test_writes_side_by_side_are_all_made_and_answer_in_their_order(table: Table) -> None:
    rows = [{"id": f"r{i}", "n": i} for i in range(40)]
    outcomes = table.side_by_side(partial(table.write, Put(row, (NEW_ROW,))) for row in rows)
    assert [outcome.applied for outcome in outcomes] == [True] * 40
    again = table.side_by_side(partial(table.write, Put(row | {"n": -1}, (NEW_ROW,))) for row in rows)
    assert [(outcome.applied, outcome.row) for outcome in again] == [(False, row) for row in rows]


def test_an_error_beside_other_calls_is_raised_and_what_took_effect_stays(table: Table) -> None:
    def fails() -> Outcome:
        raise Refused("not this one")

    calls: list[Callable[[], Outcome]] = [partial(table.write, Put({"id": "first"}, (NEW_ROW,))), fails]
    with pytest.raises(Refused, match="not this one"):
        table.side_by_side(calls)
    assert table.get("first") == {"id": "first"}


# -- deletes -----------------------------------------------------------------------------------------------------------------------


def test_a_transaction_deletes_rows(filled: Table) -> None:
    members: list[Member] = [Delete("shard/a", equals(batch=10)), Put({"id": "ended/a"}, (NEW_ROW,)), Delete("shard/b", ())]
    assert filled.transact(members).applied
    assert [row["id"] for row in filled.scan()] == ["ended/a"]


def test_a_delete_whose_condition_fails_tells_the_row_and_keeps_everything(filled: Table) -> None:
    filled.write(Put({"id": "shard/b"}, ()))
    result = filled.transact([Delete("shard/b", ()), Delete("shard/a", equals(batch=11)), Delete("shard/c", equals(batch=1))])
    assert not result.applied
    assert result.refused == {1: ROW, 2: None}
    assert {row["id"] for row in filled.scan()} == {"shard/a", "shard/b"}
