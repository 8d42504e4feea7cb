"""Which reader a table needs: by its key schema, or by name; when the two disagree, neither."""

from __future__ import annotations

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.kcl import Kcl
from sluice_checkpoints.source import Format, KeySchema, Snapshot, SourceTables

AUTO = "auto"
FORMATS: tuple[Format, ...] = (Kcl(),)


def choose(name: str, table: str, keys: KeySchema) -> Format:
    """The format of a table with this key schema.

    Raises:
        Refused: no format has such a key, or another than the one that was named.
    """
    schema = ", ".join(map(str, keys))
    fitting = next((f for f in FORMATS if f.fits(keys)), None)
    if fitting is None:
        known = "; ".join(f"{f.name}: {f.keys}" for f in FORMATS)
        raise Refused(f"table {table} has the key schema ({schema}), which no known checkpoint table has ({known})")
    if name not in {AUTO, fitting.name}:
        raise Refused(f"table {table} has the key schema ({schema}) of format {fitting.name}, but format {name} was named")
    return fitting


def take_snapshot(tables: SourceTables, table: str, name: str = AUTO) -> tuple[Format, Snapshot]:
    """One consistent scan of a source, and the format it is in.

    Raises:
        Refused: there is no such table, or its format is unknown or another.
    """
    keys = tables.key_schema(table)
    if keys is None:
        raise Refused(f"there is no source table {table}")
    chosen = choose(name, table, keys)
    beside = {other: found for other in chosen.companions(table) if (found := tables.key_schema(other)) is not None}
    schemas = {table: keys} | beside
    return chosen, Snapshot(table, schemas, {name: tuple(tables.scan(name)) for name in schemas})
