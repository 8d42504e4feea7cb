"""Rows behind a stored position: each is stored once, however batches are cut, come again, and overlap."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import Part
from sluice_consumer.sinks.foreach import PositionMisuse, identity, position

NUMBERS = st.tuples(st.integers(0, 10**129 - 1), st.integers(0, 10**7))


def row(sequence: int, sub: int = 0) -> dict[str, Any]:
    return {"shardId": "s", "sequenceNumber": str(sequence), "subSequenceNumber": sub}


def part() -> Part:
    return Part("c", 1, "s", {})


@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_positions_sort_as_text_as_the_stream_does(numbers: list[tuple[int, int]]) -> None:
    found = [position(row(*number)) for number in sorted(numbers)]
    assert found == sorted(found)
    assert {len(each) for each in found} == {140}
    assert len(set(found)) == len(set(numbers))


class Database:
    """One transaction a part: rows and position, or nothing."""

    def __init__(self) -> None:
        self.rows, self.position = list[tuple[str, int]](), ""

    def store(self, rows: list[dict[str, Any]], fail_at: int | None) -> None:
        """As a function of `foreach` does; raises at a row, as poison makes it do."""
        mine, written = part(), list[tuple[str, int]]()
        for count, each in enumerate(mine.after(iter(rows), self.position)):
            if count == fail_at:
                return
            written.append((each["sequenceNumber"], each["subSequenceNumber"]))
        self.rows, self.position = self.rows + written, mine.position


@pytest.mark.parametrize("seed", range(50))
def test_each_row_is_stored_once_however_its_batches_are_cut(seed: int) -> None:
    """Batches begin at the first row that is not committed, end anywhere, fail, come again shorter or longer. Aggregates are cut, too."""
    dice = random.Random(seed)  # noqa: S311 - a schedule that can be repeated
    stream = [row(sequence, sub) for sequence in range(8, 13) for sub in range(dice.randrange(1, 4))]
    database, committed = Database(), 0
    while committed < len(stream):
        end = dice.randrange(committed, len(stream)) + 1
        for _ in range(dice.randrange(3)):  # stored or not, the batch fails elsewhere, and is cut anew
            database.store(stream[committed : dice.randrange(committed, len(stream)) + 1], dice.choice([None, 0, 1, 2]))
        database.store(stream[committed:end], None)
        committed = end
    assert database.rows == [(each["sequenceNumber"], each["subSequenceNumber"]) for each in stream]


def test_several_rows_of_one_record_are_stored_together() -> None:
    """A record that was made into rows by `explode`."""
    mine = part()
    assert len(list(mine.after(iter([row(1), row(1), row(2)]), None))) == 3
    again = part()
    assert list(again.after(iter([row(1), row(1), row(2)]), mine.position)) == []
    assert again.position == mine.position


def test_a_position_is_never_before_the_stored_one() -> None:
    """All rows come again, and a later part has stored its own meanwhile: to store the position again moves nothing back."""
    later = position(row(9))
    mine = part()
    assert list(mine.after(iter([row(1), row(2)]), later.ljust(150))) == []
    assert mine.position == later


def test_misuse_that_would_lose_or_double_rows_is_an_error() -> None:
    with pytest.raises(PositionMisuse, match=r"part\.after was not called"):
        _ = part().position
    early = part()
    taken = early.after(iter([row(1), row(2)]), None)
    next(taken)
    with pytest.raises(PositionMisuse, match=r"not all rows of part\.after were taken"):
        _ = early.position
    with pytest.raises(PositionMisuse, match="its rows come once; let the error out"):
        early.after(iter([row(1)]), None)
    with pytest.raises(PositionMisuse, match=r"stored: '7' is not a part\.position"):
        part().after(iter([row(1)]), "7")
    with pytest.raises(PositionMisuse, match="in their order"):
        list(part().after(iter([row(2), row(1)]), None))
    with pytest.raises(PositionMisuse, match="no column 'subSequenceNumber'"):
        list(part().after(iter([{"sequenceNumber": "1"}]), None))


def test_each_redrive_is_a_consumer_of_its_own() -> None:
    """Its letters may be older than the stream's position, and than those of the redrive before it."""
    found = [
        identity(BatchInfo(name, number, replay=False, stream="orders", shards=("s",)))
        for name, number in itertools.product(("ab", "ab-redrive"), (1, 2))
    ]
    assert found == ["ab", "ab", "ab-redrive-000001", "ab-redrive-000002"]
