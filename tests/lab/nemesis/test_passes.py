"""The account by passes: what a reset named comes again, in order; each fault is found in its pass."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_lab.nemesis import passes, resets
from sluice_lab.nemesis.passes import CarriedOut, Flaw, PassAccount
from sluice_lab.scenario.account import Delivered, Record, RecordPosition

PARENTS = {"child": ("parent",)}
# Two in each batch. After batch 4 the positions go back to batch 2: 3 to 8 come again.
PRODUCED = [Record(n, "parent" if n < 7 else "child", RecordPosition(n, 0)) for n in range(1, 11)]
RESET = CarriedOut("one", after=4, batch=2)
NUMBERS = {1: [1, 2], 2: [3, 4], 3: [5, 6], 4: [7, 8], 5: [3, 4], 6: [5, 6], 7: [7, 8], 8: [9, 10]}


def account(numbers: dict[int, list[int]], *resets: CarriedOut) -> PassAccount:
    """Of these records, by batch; a number beyond the last one was never produced."""
    known = {record.n: record for record in PRODUCED}
    stranger = Record(99, "child", RecordPosition(99, 0))
    found = [Delivered(known.get(n, stranger), batch) for batch in sorted(numbers) for n in numbers[batch]]
    return passes.compare(PRODUCED, found, PARENTS, resets)


def test_what_is_behind_the_target_comes_again() -> None:
    found = account(NUMBERS, RESET)
    assert found.problems == []
    assert found.again == 6
    assert found.reached == {1: 2, 2: 4, 3: 6, 4: 8, 5: 4, 6: 6, 7: 8, 8: 10}


def test_without_a_reset_there_is_one_pass() -> None:
    assert account({1: [1, 2, 3], 2: [4, 5, 6], 3: [7, 8, 9, 10]}).problems == []
    assert account(NUMBERS).wrong == {(1, Flaw.AGAIN): (3, 4, 5, 6, 7, 8)}


def without(batch: int, n: int) -> Callable[[dict[int, list[int]]], None]:
    return lambda numbers: numbers[batch].remove(n)


def more(batch: int, n: int) -> Callable[[dict[int, list[int]]], None]:
    """At the end of the batch."""
    return lambda numbers: numbers[batch].append(n)


@pytest.mark.parametrize(
    ("spoil", "wrong"),
    [
        (without(6, 5), {(2, Flaw.MISSING): (5,)}),
        (without(5, 3), {(2, Flaw.MISSING): (3,)}),  # the first one behind the target
        (without(2, 3), {(1, Flaw.MISSING): (3,)}),  # and there in pass 2
        (without(8, 10), {(2, Flaw.MISSING): (10,)}),
        (more(6, 5), {(2, Flaw.AGAIN): (5,)}),
        (more(3, 5), {(1, Flaw.AGAIN): (5,)}),
        (more(5, 2), {(2, Flaw.AGAIN): (2,)}),  # not behind the target
        (more(7, 99), {(2, Flaw.UNEXPECTED): (99,)}),
        (lambda numbers: numbers.update({6: [5, 6, 7], 7: [8]}), {(2, Flaw.EARLY): (7,)}),  # beside its parent's last
        (lambda numbers: numbers.update({6: [6, 5]}), {(2, Flaw.MISSING): (5,), (2, Flaw.AGAIN): (5,)}),
    ],
)
def test_each_fault_is_found_in_its_pass(spoil: Callable[[dict[int, list[int]]], None], wrong: dict[tuple[int, Flaw], tuple[int, ...]]) -> None:
    numbers = {batch: list(found) for batch, found in NUMBERS.items()}
    spoil(numbers)
    found = account(numbers, RESET)
    assert found.wrong == wrong
    assert [text.split(":")[0] for text in found.problems] == [f"pass {number}" for number, _ in sorted(wrong)]


def test_a_reset_that_moved_elsewhere_is_found() -> None:
    assert account(NUMBERS, CarriedOut("one", 4, 1)).wrong == {(2, Flaw.MISSING): (1, 2)}
    assert account(NUMBERS, CarriedOut("one", 4, 3)).wrong == {(2, Flaw.AGAIN): (3, 4)}


@pytest.mark.parametrize(
    ("lost", "wrong"),
    [(None, {}), (8, {(1, Flaw.MISSING): (8,)}), (7, {(1, Flaw.MISSING): (7,)})],
)
def test_what_is_lost_at_the_end_of_a_pass_is_not_made_good_by_the_next_one(lost: int | None, wrong: dict[tuple[int, Flaw], tuple[int, ...]]) -> None:
    """The plan of the reset says what was read before it: the parent to its end, and the child up to record 8."""
    numbers = {batch: [n for n in ns if batch > RESET.after or n != lost] for batch, ns in NUMBERS.items()}
    assert account(numbers, replace(RESET, ends={"parent": None, "child": (8, None)})).wrong == wrong


def test_a_child_waits_for_the_parents_of_an_empty_one_too() -> None:
    """A shard may be split before it holds a record."""
    known, parents = [Record(1, "a", RecordPosition(1, 0)), Record(2, "c", RecordPosition(2, 0))], {"c": ("b",), "b": ("a",)}
    for batches, wrong in (((1, 2), {}), ((2, 1), {(1, Flaw.EARLY): (2,)}), ((1, 1), {(1, Flaw.EARLY): (2,)})):
        found = [Delivered(record, batch) for record, batch in zip(known, batches, strict=True)]
        assert passes.compare(known, found, parents, []).wrong == wrong


def test_a_part_of_an_aggregate_may_have_been_read_before_a_reset() -> None:
    whole = [Record(n, "shard", RecordPosition(1, n)) for n in range(4)]
    found = [Delivered(record, batch) for batch, records in ((1, whole[:2]), (2, whole)) for record in records]
    for sub, missing in ((1, {}), (2, {(1, Flaw.MISSING): (2,)}), (None, {(1, Flaw.MISSING): (2, 3)})):
        assert passes.compare(whole, found, {}, [CarriedOut("one", 1, ends={"shard": (1, sub)})]).wrong == missing


def test_resets_follow_each_other() -> None:
    third = {9: [5, 6], 10: [7, 8], 11: [9, 10]}
    assert account(NUMBERS | third, RESET, CarriedOut("two", after=8, batch=6)).problems == []
    fourth = {12: [1, 2, 3, 4, 5, 6], 13: [7, 8, 9, 10]}
    assert account(NUMBERS | third | fourth, CarriedOut("two", 8, 6), CarriedOut("three", 11), RESET).problems == []


def test_a_reset_behind_which_nothing_came_loses_all() -> None:
    assert account({1: [1, 2, 3, 4, 5, 6], 2: [7, 8, 9, 10]}, CarriedOut("one", 2, 2)).wrong == {(2, Flaw.MISSING): (7, 8, 9, 10)}


def test_resets_are_read_from_the_rows_of_the_table() -> None:
    head = {"id": {"S": "reset/one/0"}, "committed": {"N": "4"}, "result": {"M": {"to": {"S": "batch 2"}}}}
    oldest = {"id": {"S": "reset/two/0"}, "committed": {"N": "9"}, "result": {"M": {"to": {"S": "trimHorizon"}}}}
    ends = {"a": {"at": {"S": "AFTER"}, "sequence": {"S": "7"}}, "b": {"at": {"S": "END"}}, "c": {"at": {"S": "TRIM_HORIZON"}}}
    ends["d"] = {"at": {"S": "AFTER"}, "sequence": {"S": "9"}, "sub": {"N": "3"}}
    moves = [{"M": {"id": {"S": shard}, "end": {"M": end}}} for shard, end in ends.items()]
    rows: list[dict[str, Any]] = [{"id": {"S": "consumer"}}, head, {"id": {"S": "reset/one/1"}, "shards": {"L": moves}}, oldest]
    read = {"a": (7, None), "b": None, "d": (9, 3)}
    assert passes.carried_out(rows) == [replace(RESET, ends=read), CarriedOut("two", 9)]


def test_a_reset_goes_back_to_a_version_that_committed_and_keeps_its_positions() -> None:
    """Of those before an earlier reset, the table has none. Else each reset would be refused, or go to the oldest record."""
    versions = [{"first": 1, "positions": False}, {"first": 7, "positions": True}, {"first": 12, "positions": True}, {"first": 20, "positions": True}]
    assert resets.targets(versions, 19) == [None, 7, 12]
