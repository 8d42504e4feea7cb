from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import LeaseHeld, Refused
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import ADOPTED, CheckpointStore, Epoch
from sluice_lab.fakes.table import MemoryTable

ORIGINAL, COPY = "arn:t@1", "arn:t@2"


def table(**changes: Any) -> CheckpointStore:
    store = CheckpointStore(MemoryTable())
    store.create_consumer(replace(ConsumerRow("id-1", "arn:s", 1, generation=4, token="t", counter=9, committed=2), **changes))
    return store


def copied(store: CheckpointStore) -> CheckpointStore:
    copy = MemoryTable()
    copy.rows.update(store.table.rows)  # type: ignore[attr-defined]  # the in-memory fake's
    return CheckpointStore(copy)


def consumer(store: CheckpointStore) -> ConsumerRow:
    row = store.consumer()
    assert row is not None
    return row


def test_the_first_look_marks_a_row_and_later_looks_accept_it() -> None:
    """Tables that were made by an earlier version, or by a migration, name none."""
    store = table()
    copies.check(store, consumer(store), ORIGINAL)
    assert consumer(store).table_id == ORIGINAL
    copies.check(store, consumer(store), ORIGINAL)


def test_a_copy_is_refused_and_stays_as_it_is() -> None:
    store = table(table_id=ORIGINAL)
    copy = copied(store)
    before = dict(copy.table.rows)  # type: ignore[attr-defined]  # the in-memory fake's
    with pytest.raises(Refused, match=r"checkpoints\.table: .* is a copy of arn:t@1, .* adopt --table"):
        copies.check(copy, consumer(copy), COPY)
    assert copy.table.rows == before  # type: ignore[attr-defined]


def test_a_mark_that_another_driver_has_made_counts() -> None:
    """Two drivers start at once, one of them on a copy that was not marked when it was read."""
    store = table()
    seen = consumer(store)
    store.mark(seen, ORIGINAL)
    copies.check(store, seen, ORIGINAL)
    with pytest.raises(Refused, match="is a copy"):
        copies.check(store, seen, COPY)


def test_a_mark_is_refused_when_the_consumer_is_another_or_the_row_is_marked() -> None:
    store = table()
    assert not store.mark(replace(consumer(store), consumer_id="other"), ORIGINAL)
    assert store.mark(consumer(store), ORIGINAL)
    assert store.mark(consumer(store), ORIGINAL)  # a reply was lost
    assert not store.mark(consumer(store), COPY)


def test_an_adopted_copy_is_another_consumer_and_fences_every_epoch_of_the_original() -> None:
    copy = copied(table(table_id=ORIGINAL))
    before, after = copies.adopt(copy, COPY, lambda: "id-2")
    assert (before.consumer_id, after.consumer_id, after.table_id, after.committed) == ("id-1", "id-2", COPY, 2)
    assert after.generation == before.generation + ADOPTED
    copies.check(copy, consumer(copy), COPY)
    assert not copy.beat(Epoch(before.generation, "t"))


def test_adopting_twice_changes_nothing_more() -> None:
    """Whoever is not sure runs it again."""
    copy = copied(table(table_id=ORIGINAL))
    copies.adopt(copy, COPY, lambda: "id-2")
    before, after = copies.adopt(copy, COPY, lambda: "id-3")
    assert (before, after.consumer_id) == (after, "id-2")


@pytest.mark.parametrize(("changes", "why"), [({"table_id": None}, "tableId"), (None, "no consumer")], ids=["not marked", "no consumer"])
def test_what_is_not_known_to_be_a_copy_is_not_adopted(changes: dict[str, Any] | None, why: str) -> None:
    """An adopted original would deliver its open batch again under another id."""
    store = CheckpointStore(MemoryTable()) if changes is None else table(**changes)
    with pytest.raises(Refused, match=why):
        copies.adopt(store, COPY, lambda: "id-2")


def test_a_copy_that_a_driver_works_on_is_not_adopted() -> None:
    copy = copied(table(table_id=ORIGINAL))

    def token() -> str:
        assert copy.beat(Epoch(4, "t"))
        return "id-2"

    with pytest.raises(LeaseHeld, match="row consumer"):
        copies.adopt(copy, COPY, token)
    assert consumer(copy).consumer_id == "id-1"


@given(before=st.lists(st.integers(0, 3), max_size=5), lost=st.lists(st.integers(0, 3), max_size=5), after=st.lists(st.integers(0, 3), max_size=5))
def test_a_sink_that_is_idempotent_by_consumer_and_batch_stores_all_that_an_adopted_copy_delivers(
    before: list[int], lost: list[int], after: list[int]
) -> None:
    """Batches after the backup were stored under the former id; the same numbers come with other records."""
    sink: dict[tuple[str, int], tuple[int, ...]] = {}
    names = count(1)
    put: list[int] = []

    def run(store: CheckpointStore, position: int, sizes: list[int]) -> int:
        for size in sizes:
            put.extend(next(names) for _ in range(size))
            row = consumer(store)
            sink.setdefault((row.consumer_id, row.committed + 1), tuple(put[position:]))
            position = len(put)
            store.commit(Epoch(row.generation, ""), row.committed + 1)
        return position

    original = table(table_id=ORIGINAL)
    backup_at = run(original, 0, before)
    backup = copied(original)
    run(original, backup_at, lost)
    copies.adopt(backup, COPY, lambda: "id-2")
    position = run(backup, backup_at, after)
    assert {name for names in sink.values() for name in names} >= set(put[:position])
