"""The demo's account: it must see every way in which records can be lost, repeated_numbers or come in the wrong order."""

import dataclasses

import pytest

from sluice_lab.scenario import account
from sluice_lab.scenario.account import AccountInput, Delivered, Record, RecordPosition, ShardAccount

A, B, CHILD = "shardId-000000000000", "shardId-000000000001", "shardId-000000000002"


def record(n: int, shard: str = A, sub: int = 0) -> Record:
    return Record(n, shard, RecordPosition(n, sub))


def batches(*each: list[Record]) -> list[Delivered]:
    return [Delivered(found, number) for number, batch in enumerate(each, 1) for found in batch]


PRODUCED = [record(1), record(2), record(3), record(11, B), record(12, B)]
GOOD = AccountInput(PRODUCED, {A: RecordPosition(1, 0)}, batches([record(2), record(11, B)], [record(3), record(12, B)]), {})


def delivered(*each: list[Record]) -> AccountInput:
    return dataclasses.replace(GOOD, delivered=batches(*each))


def test_a_right_account() -> None:
    found = account.compare(GOOD)
    assert found.right
    assert found.total == ShardAccount(produced=5, processed=1, delivered=4)
    assert found.shards[A] == ShardAccount(produced=3, processed=1, delivered=2)


def test_a_record_that_never_came_is_missing() -> None:
    found = account.compare(delivered([record(2), record(11, B)], [record(3)]))
    assert (found.total.missing, found.missing_numbers, found.right) == (1, (12,), False)
    assert found.shards[B].missing == 1


def test_a_record_that_came_twice_is_repeated() -> None:
    found = account.compare(delivered([record(2), record(11, B)], [record(3), record(3), record(12, B), record(12, B), record(12, B)]))
    assert (found.total.repeated, found.total.out_of_order, found.repeated_numbers, found.right) == (3, 0, (3, 12), False)


def test_what_kcl_had_processed_must_not_come_again() -> None:
    """A delivery of it is neither missing nor repeated, and still wrong."""
    found = account.compare(delivered([record(1), record(2), record(11, B)], [record(3), record(12, B)]))
    assert (found.total.reprocessed, found.total.repeated, found.repeated_numbers, found.right) == (1, 0, (1,), False)


def test_a_delivery_of_something_never_put_is_unexpected() -> None:
    found = account.compare(delivered([record(2), record(11, B)], [record(3), record(12, B), dataclasses.replace(record(3), shard=B)]))
    assert (found.total.unexpected, found.right) == (1, False)
    alien = account.compare(delivered([Record(99, A, RecordPosition(0, 0)), record(2), record(11, B)], [record(3), record(12, B)]))
    assert (alien.total.unexpected, alien.total.reprocessed, alien.repeated_numbers) == (1, 0, ())


def test_a_later_record_before_an_earlier_one_is_out_of_order() -> None:
    for order in ([[record(3), record(2)], []], [[record(3)], [record(2)]]):
        found = account.compare(delivered(*order, [record(11, B), record(12, B)]))
        assert (found.shards[A].out_of_order, found.shards[B].out_of_order, found.right) == (1, 0, False)


def test_user_records_of_an_aggregate_have_an_order() -> None:
    whole = [Record(n, A, RecordPosition(7, n)) for n in range(3)]
    right = account.compare(AccountInput(whole, {}, batches(whole), {}))
    wrong = account.compare(AccountInput(whole, {}, batches(list(reversed(whole))), {}))
    assert (right.total.out_of_order, wrong.total.out_of_order) == (0, 2)


def test_a_checkpoint_inside_an_aggregate_splits_it() -> None:
    whole = [Record(n, A, RecordPosition(7, n)) for n in range(8)]
    found = account.compare(AccountInput(whole, {A: RecordPosition(7, 4)}, batches(whole[5:]), {}))
    assert (found.right, found.total.processed, found.total.delivered) == (True, 5, 3)


@pytest.mark.parametrize(
    ("order", "right"),
    [
        ([[record(1), record(2)], [record(21, CHILD)]], True),
        ([[record(1), record(2), record(21, CHILD)]], False),
        ([[record(1)], [record(21, CHILD)], [record(2)]], False),
        ([[record(21, CHILD)], [record(1), record(2)]], False),
    ],
)
def test_a_child_comes_in_a_later_batch_than_its_parents_last(order: list[list[Record]], right: bool) -> None:  # noqa: FBT001 - a column of the table
    """A child never shares a batch with its parent, so order holds whatever a pipeline does inside a batch."""
    produced = [record(1), record(2), record(21, CHILD)]
    found = account.compare(AccountInput(produced, {}, batches(*order), {CHILD: (A,)}))
    assert found.right is right


def test_an_account_of_nothing_is_no_success() -> None:
    assert not account.compare(AccountInput([], {}, [], {})).right
