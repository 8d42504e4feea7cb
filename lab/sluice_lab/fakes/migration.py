"""The in-memory fakes of a migrator's and an exporter's world: other systems' tables, and tables that become targets. With faults.

They refuse exactly what DynamoDB refuses.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluice_checkpoints.errors import Refused, SourceActive
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem
from sluice_checkpoints.formats.writer import RowChange, same_rows
from sluice_checkpoints.migrate.ports import PreparedTarget
from sluice_checkpoints.protocol.table import MAX_TRANSACTION, Table
from sluice_lab.fakes.table import Hook, MemoryTable, copied


def _no_hook(_when: str, _operation: str, _argument: object) -> None:
    """Injects nothing."""


@dataclass
class MemorySources:
    """`SourceTables` in this process; `tables` may be changed at any time, as a consumer that still works would.

    Attributes:
        tables: key schema and rows by table name.
        hook: called before every read; may raise, or change the tables.
    """

    tables: dict[str, tuple[KeySchema, list[RawItem]]]
    hook: Hook = _no_hook

    def key_schema(self, table: str) -> KeySchema | None:
        self.hook("before", "describe source", table)
        return self.tables[table][0] if table in self.tables else None

    def scan(self, table: str) -> Sequence[RawItem]:
        self.hook("before", "scan source", table)
        if table not in self.tables:
            raise SourceActive(f"source table {table} was deleted while it was read; stop its consumer and run this again")
        return [copied(row) for row in self.tables[table][1]]


@dataclass
class MemoryTargets:
    """`Targets` in this process.

    Attributes:
        tables: the tables there are, by name.
        hook: given to every table that is made, and called before and after making one.
        warnings: what `ensure` reports.
    """

    tables: dict[str, MemoryTable] = field(default_factory=dict)
    hook: Hook = _no_hook
    warnings: tuple[str, ...] = ()

    def find(self, name: str) -> Table | None:
        self.hook("before", "find", name)
        return self.tables.get(name)

    def ensure(self, name: str) -> PreparedTarget:
        self.hook("before", "create", name)
        if name not in self.tables:
            self.tables[name] = MemoryTable(name, self.hook)
            self.hook("after", "create", name)
        return PreparedTarget(self.tables[name], self.warnings)


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
