"""A checkpoint table that is a copy of another: restored from a backup, or replicated (docs/protocol.md, "A copy of a table").

A copy has the same consumer id and may lag behind its original. Its batch numbers would come again with other content, and a sink that is
idempotent by (consumer id, batch) would skip records that it never stored. So a driver refuses a copy until a person adopts it. May not read a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sluice_checkpoints.errors import LeaseHeld, Refused
from sluice_checkpoints.protocol.owners import NOBODY, Owner
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore


def check(store: CheckpointStore, seen: ConsumerRow, table_id: str) -> None:
    """Makes sure that the consumer row was written in this table, and not copied into it. A row that names no table is marked.

    Raises:
        Refused: it is a copy.
    """
    if seen.table_id is None and store.mark(seen, table_id):
        return
    row = seen if seen.table_id is not None else store.consumer()
    if row is not None and row.table_id != table_id:
        raise _copy(store.table.name, row, table_id)


def check_copy(table: str, row: ConsumerRow, table_id: str) -> None:
    """The same without a write: a row that names no table passes.

    Raises:
        Refused: it is a copy.
    """
    if row.table_id not in {None, table_id}:
        raise _copy(table, row, table_id)


def _copy(table: str, row: ConsumerRow, table_id: str) -> Refused:
    return Refused(
        f"checkpoints.table: {table} ({table_id}) is a copy of {row.table_id}, restored or replicated. Its batch numbers would come "
        "again with other records, which a sink may skip. Stop the consumer of the original, then run: "
        f"sluice adopt --table {table} --region REGION. The consumer continues from the copy's positions"
    )


def batches_again(copy: ConsumerRow, original: ConsumerRow | None) -> int | None:
    """How many batches the original committed after the copy was made: their records come again. None: the original is not there to be asked."""
    if original is None or original.consumer_id != copy.consumer_id:
        return None
    return max(0, original.committed - copy.committed)


def adopt(store: CheckpointStore, table_id: str, token: Callable[[], str], owner: Owner = NOBODY) -> tuple[ConsumerRow, ConsumerRow]:
    """Gives a copy a consumer id of its own, and the owner. Without one it belongs to the driver that comes first.

    Args:
        store: the copy.
        table_id: which table it is (`DynamoTargets.identity`).
        token: makes a random id.
        owner: whose the copy is to be.

    Returns:
        The consumer row before and after; the same row twice if the table was adopted before.

    Raises:
        Refused: it holds no consumer, or is not a copy. LeaseHeld: a driver works on it.
    """
    seen = store.consumer()
    if seen is None:
        raise Refused(f"table {store.table.name} holds no consumer: there is nothing to adopt")
    if seen.table_id is None:
        raise Refused(f"row consumer of {store.table.name} has no tableId: no driver of this version worked on it, so it is not known to be a copy")
    if seen.table_id == table_id:
        return seen, seen
    if not store.adopt(seen, owner.taking(replace(seen, consumer_id=token(), table_id=table_id, owner=None, cluster=None))):
        raise LeaseHeld(f"row consumer of {store.table.name} has moved: stop the driver that works on this table, and run this again")
    after = store.consumer()
    assert after is not None  # noqa: S101 - rows are never deleted
    return seen, after
