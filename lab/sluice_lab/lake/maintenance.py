"""What the owners of an Iceberg table do to it while Sluice writes: expire snapshots, and append."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

WRITER = "another-writer"
ATTEMPTS = 20
LATER = timedelta(minutes=1)


def expire(table: Table) -> int:
    """Expire every snapshot that no branch and no tag names; how many."""
    before = len(table.snapshots())
    _again(table, lambda: table.maintenance.expire_snapshots().older_than(datetime.now(UTC) + LATER).commit())
    return before - len(table.refresh().snapshots())


def append(table: Table, schema: pa.Schema) -> None:
    """Append one row, whose shard is `WRITER`."""
    row = {"data": b"{}", "shardId": WRITER, "sequenceNumber": "0", "subSequenceNumber": 0, "batch": 0}
    _again(table, lambda: table.append(pa.Table.from_pylist([row], schema=schema)))


def _again(table: Table, change: Callable[[], object]) -> None:
    """Try a change until no other writer is faster."""
    for _ in range(ATTEMPTS - 1):
        try:
            change()
        except CommitFailedException:
            table.refresh()
        else:
            return
    change()
