"""The in-memory fake of other systems' tables that are written, in memory: refuses exactly what DynamoDB refuses."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.changes import RowChange, same_rows
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem
from sluice_checkpoints.memory.migration import MemorySources
from sluice_checkpoints.protocol.table import MAX_TRANSACTION


@dataclass
class MemoryTargetTables(MemorySources):
    """`TargetTables` in this process.

    Attributes:
        hook: also called before and after every write; one that raises after it is a lost reply.
        warnings: what `create` reports.
    """

    warnings: tuple[str, ...] = ()

    def create(self, table: str, keys: KeySchema) -> tuple[str, ...]:
        self.hook("before", "create target", table)
        if table not in self.tables:
            self.tables[table] = (keys, [])
            self.hook("after", "create target", table)
        if self.tables[table][0] != keys:
            raise Refused(f"table {table} has another key")
        return self.warnings

    def write(self, table: str, changes: Sequence[RowChange]) -> Mapping[int, RawItem | None]:
        self.hook("before", "write target", changes)
        if not 0 < len(changes) <= MAX_TRANSACTION:
            raise ValueError("a transaction has 1 to 100 members")
        if any(change.before is not None and same_rows(change.before, change.after) for change in changes):
            raise ValueError("an update may not be empty")
        rows = self.tables[table][1]
        found = [self._find(table, change) for change in changes]
        refused = {i: copy.deepcopy(row) for i, (change, row) in enumerate(zip(changes, found, strict=True)) if not change.holds(row)}
        if refused:
            return refused
        for change, row in zip(changes, found, strict=True):
            if row is not None:
                rows.remove(row)
            rows.append(_changed(change, row))
        self.hook("after", "write target", changes)
        return {}

    def _find(self, table: str, change: RowChange) -> RawItem | None:
        return next((row for row in self.tables[table][1] if all(row[n] == tagged for n, tagged in change.key.items())), None)


def _changed(change: RowChange, row: RawItem | None) -> RawItem:
    """Attributes that the format does not know stay as they are."""
    kept = {name: tagged for name, tagged in (row or {}).items() if name not in change.known}
    return copy.deepcopy({**kept, **change.after})
