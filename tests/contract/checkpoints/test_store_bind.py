"""Which writes bind a range, register a reader, and forget one; each states its condition, and fails where that does not hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from stored_rows import BOUND, EPOCH, FIRST, LATER, READER, ROW, SECOND, A, B, put, row

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.protocol.store import CheckpointStore, Range, Replay, TaskAttempt
from sluice_checkpoints.protocol.table import Table

# -- bind --------------------------------------------------------------------------------------------------------------------------


def test_a_bind_fixes_the_range(store: CheckpointStore) -> None:
    assert store.bind(EPOCH, 8, BOUND, READER) is None
    expected = replace(
        ROW, batch=8, start=FIRST, end=SECOND, first="101", records=12, read_to=99, readers={"4.1.0": 11}, read_by="4.1.0",
        size=1000, behind=5, note=None,
        calls={"kinesis/GetRecords": 2}, iterator="AAAA",
    )  # fmt: skip
    assert row(store) == expected


def test_an_empty_range_is_bound_too(store: CheckpointStore) -> None:
    assert store.bind(EPOCH, 8, Range(A, FIRST, FIRST), READER) is None
    assert (row(store).batch, row(store).first, row(store).records) == (8, None, 0)


def test_the_end_of_a_shard_comes_with_its_children(store: CheckpointStore) -> None:
    children = (Child(B, frozenset({A})),)
    assert store.bind(EPOCH, 8, replace(BOUND, end=END, children=children), READER) is None
    assert (row(store).end, row(store).children) == (END, children)


def test_a_bind_whose_reply_was_lost_has_succeeded(store: CheckpointStore, repeats: Callable[[Table], Any]) -> None:
    assert CheckpointStore(repeats(store.table)).bind(EPOCH, 8, BOUND, READER) is None
    assert row(store).readers == {"4.1.0": 11}


def test_the_second_of_two_binds_replays_the_first(store: CheckpointStore) -> None:
    store.bind(EPOCH, 8, BOUND, READER)
    first = row(store)
    for bound, reader in ((BOUND, TaskAttempt("4.1.0", 12)), (replace(BOUND, end=FIRST), READER), (replace(BOUND, records=1), READER)):
        assert store.bind(EPOCH, 8, bound, reader) == Replay(first)
    assert row(store) == first


def test_a_bind_of_an_earlier_epoch_is_fenced(store: CheckpointStore) -> None:
    put(store, replace(ROW, generation=5))
    with pytest.raises(Fenced):
        store.bind(EPOCH, 8, BOUND, READER)
    assert row(store) == replace(ROW, generation=5)


def test_a_bind_on_a_row_that_was_not_fenced_yet_fences_it(store: CheckpointStore) -> None:
    """A row may come from an earlier epoch's late write."""
    assert store.bind(LATER, 8, BOUND, READER) is None
    assert (row(store).generation, row(store).batch) == (5, 8)


def test_a_bind_of_a_past_batch_lost_its_race(store: CheckpointStore) -> None:
    with pytest.raises(LostRace):
        store.bind(EPOCH, 6, BOUND, READER)
    assert row(store) == ROW


def test_a_bind_that_does_not_continue_the_chain_is_a_violation(store: CheckpointStore) -> None:
    """No gap and no overlap: `AFTER 100/3` and `AFTER 100` are different places."""
    with pytest.raises(ProtocolViolation):
        store.bind(EPOCH, 8, replace(BOUND, start=Position.after("100")), READER)
    assert row(store) == ROW


def test_a_bind_on_no_row_is_a_violation(store: CheckpointStore) -> None:
    with pytest.raises(ProtocolViolation):
        store.bind(EPOCH, 8, replace(BOUND, shard_id=B), READER)
    assert list(store.shards()) == [A]


def test_the_first_of_a_task_to_register_finds_nobody(bound: CheckpointStore) -> None:
    assert bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20)) is None
    assert row(bound).readers == {"4.1.0": 11, "4.2.0": 20}


@pytest.mark.parametrize("attempt", [11, 12])
def test_whoever_finds_another_attempt_is_told_which(bound: CheckpointStore, attempt: int) -> None:
    """It may be alive; its own number too, for a reply may have been lost."""
    assert bound.register(EPOCH, 8, A, TaskAttempt("4.1.0", attempt)) == 11
    assert row(bound).readers == {"4.1.0": attempt}


def test_a_row_counts_who_registered_until_the_next_range_is_bound_or_closed(bound: CheckpointStore) -> None:
    """For metrics: who registers and adds no name to the readers has waited."""
    counts = [row(bound).replays]
    for reader in (TaskAttempt("4.2.0", 20), TaskAttempt("4.2.0", 21)):
        bound.register(EPOCH, 8, A, reader)
        counts.append(row(bound).replays)
    bound.bind(EPOCH, 9, replace(BOUND, start=SECOND), READER)
    counts.append(row(bound).replays)
    bound.register(EPOCH, 9, A, TaskAttempt("4.2.0", 22))
    assert bound.close(EPOCH, 10, row(bound)) == row(bound)
    assert [*counts, row(bound).replays] == [0, 1, 2, 0, 0]


def test_calls_stay_in_the_row_until_the_next_range_is_bound_or_closed(bound: CheckpointStore) -> None:
    """For metrics: they are counted once, with the batch that they were bound in."""
    bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20))
    counts = [row(bound).calls]
    bound.bind(EPOCH, 9, replace(BOUND, start=SECOND, calls={}), READER)
    counts.append(row(bound).calls)
    bound.bind(EPOCH, 10, replace(BOUND, start=SECOND), READER)
    assert bound.close(EPOCH, 11, row(bound)) == row(bound)
    assert [*counts, row(bound).calls] == [{"kinesis/GetRecords": 2}, {}, {}]


def test_an_iterator_stays_until_the_next_range_is_bound_or_closed(bound: CheckpointStore) -> None:
    """One of an earlier range would skip what lies between or read it again."""
    bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20))
    found = [row(bound).iterator]
    bound.bind(EPOCH, 9, replace(BOUND, start=SECOND, iterator=None), READER)
    found.append(row(bound).iterator)
    bound.bind(EPOCH, 10, replace(BOUND, start=SECOND, iterator="BBBB"), READER)
    found.append(row(bound).iterator)
    assert bound.close(EPOCH, 11, row(bound)) == row(bound)
    assert [*found, row(bound).iterator] == ["AAAA", None, "BBBB", None]


def test_an_earlier_attempt_than_the_one_that_registered_lost_its_race(bound: CheckpointStore) -> None:
    with pytest.raises(LostRace):
        bound.register(EPOCH, 8, A, TaskAttempt("4.1.0", 10))
    assert row(bound).readers == {"4.1.0": 11}


@pytest.mark.parametrize("batch", [7, 9])
def test_nobody_registers_for_another_batch(bound: CheckpointStore, batch: int) -> None:
    with pytest.raises(LostRace):
        bound.register(EPOCH, batch, A, TaskAttempt("4.2.0", 20))


def test_nobody_registers_after_a_later_epoch_took_over(bound: CheckpointStore) -> None:
    bound.fence(LATER, A)
    with pytest.raises(Fenced):
        bound.register(EPOCH, 8, A, TaskAttempt("4.2.0", 20))


def test_readers_of_earlier_lives_are_forgotten_and_those_of_this_epoch_are_not(bound: CheckpointStore) -> None:
    """Whoever finds itself there waits; generations never repeat, so nobody finds the others."""
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 1)) is None
    left = bound.forget(LATER, row(bound))
    assert left == row(bound)
    assert (left.readers, left.replays) == ({"5.0.0": 1}, 0)
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 2)) == 1


def test_nothing_is_forgotten_if_somebody_registered_meanwhile(bound: CheckpointStore) -> None:
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 1)) is None
    seen = row(bound)
    assert bound.register(LATER, 8, A, TaskAttempt("5.1.0", 2)) is None
    before = row(bound)
    assert bound.forget(LATER, seen) == seen
    assert row(bound) == before


def test_an_earlier_epoch_forgets_nothing(bound: CheckpointStore) -> None:
    seen = row(bound)
    bound.fence(LATER, A)
    before = row(bound)
    with pytest.raises(Fenced):
        bound.forget(EPOCH, seen)
    assert row(bound) == before


def test_a_later_epoch_registers_on_a_row_that_was_not_fenced_yet(bound: CheckpointStore) -> None:
    assert bound.register(LATER, 8, A, TaskAttempt("5.0.0", 1)) is None
    assert (row(bound).generation, row(bound).readers) == (5, {"4.1.0": 11, "5.0.0": 1})
