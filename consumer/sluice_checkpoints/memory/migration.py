"""The in-memory fakes of a migrator's world: another system's tables and the tables that become targets, with faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sluice_checkpoints.errors import SourceActive
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem
from sluice_checkpoints.memory.table import Hook, MemoryTable, copied
from sluice_checkpoints.migrate.ports import PreparedTarget
from sluice_checkpoints.protocol.table import Table


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
