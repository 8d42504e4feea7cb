"""The formats that are known: chooses the one of a source, by the keys of its tables or by name. If the two disagree, it refuses.

Names of tables are checked here, too: what DynamoDB allows, and which names of a target belong to the source's system.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import kcl, kinsumer, nifi
from sluice_checkpoints.formats.kcl import KCL, Kcl
from sluice_checkpoints.formats.kinsumer import CHECKPOINTS, KINSUMER, Kinsumer
from sluice_checkpoints.formats.nifi import NIFI, Nifi
from sluice_checkpoints.formats.reader import Format
from sluice_checkpoints.formats.sluice import Sluice
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Snapshot, SourceTables
from sluice_checkpoints.formats.vmware_go_kcl import VMWARE_GO_KCL, VmwareGoKcl

AUTO = "auto"
NO_TABLE = "If it is a checkpoint table of another system, start at a time instead, by spec.start (docs/migrate/awslabs.md)"
# What a global table of 2017 has in every row, put there by DynamoDB itself: times, regions and deletions of its replication.
REPLICATION = "aws:rep:"
# The first that fits is chosen: NiFi's come before KCL's, for a KCL table beside NiFi's half-made one is NiFi's to explain.
FORMATS: tuple[Format, ...] = (Nifi(), Kcl(), VmwareGoKcl(), Kinsumer(), Sluice())
WRITERS = {writer.name: writer for writer in (KCL, NIFI, VMWARE_GO_KCL, KINSUMER)}
TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")  # DynamoDB, "Naming rules"
KEYS = (kcl.KEY, nifi.KEY, kinsumer.KEY)  # of the systems that have further tables


def choose(name: str, table: str, schemas: Mapping[str, KeySchema]) -> Format:
    """The format of tables with these keys; `schemas` has the main table, unless it is not there, and its companions.

    Raises:
        Refused: no format has such keys, or others than the one that was named.
    """
    fitting = [f for f in FORMATS if f.fits(table, schemas)]
    schema = ", ".join(map(str, schemas.get(table, ())))
    if not fitting:
        known = "; ".join(f"{f.name}: {f.keys}" for f in FORMATS)
        raise Refused(f"table {table} has the key schema ({schema}), which no known checkpoint table has ({known}). {NO_TABLE}")
    chosen = fitting[0] if name == AUTO else next((f for f in fitting if f.name == name), None)
    if chosen is None:
        raise Refused(f"table {table} has the key schema ({schema}) of format {fitting[0].name}, but format {name} was named")
    return chosen


def take_snapshot(tables: SourceTables, table: str, name: str = AUTO) -> tuple[Format, Snapshot]:
    """One consistent scan of a source, and the format it is in.

    Raises:
        Refused: there is no such table, or its format is unknown or another.
    """
    schemas = _schemas(tables, table)
    chosen = choose(name, table, schemas)
    beside = chosen.companions(table, schemas.get(table))
    keys = {name: schemas[name] for name in (table, *beside) if name in schemas}
    return chosen, Snapshot(table, keys, {name: tuple(map(_as_written, tables.scan(name))) for name in keys})


def _as_written(item: RawItem) -> RawItem:
    return {name: tagged for name, tagged in item.items() if not name.startswith(REPLICATION)}


def _schemas(tables: SourceTables, table: str) -> dict[str, KeySchema]:
    schemas = _described(tables, table) or _described(tables, table)  # NiFi may just have made the main table again and deleted the other
    if not schemas:
        hint = f"kinsumer's is called {table}{CHECKPOINTS}" if tables.key_schema(table + CHECKPOINTS) else "check its name and the region"
        raise Refused(f"there is no source table {table}; {hint}")
    return schemas


def _described(tables: SourceTables, table: str) -> dict[str, KeySchema]:
    main = tables.key_schema(table)
    names = dict.fromkeys(n for f in FORMATS for n in f.companions(table, main))
    schemas = {table: main} | {name: tables.key_schema(name) for name in names}
    return {name: keys for name, keys in schemas.items() if keys is not None}


def check_table(option: str, name: str) -> None:
    """Raises `Refused` if no table can have this name."""
    if not TABLE_NAME.fullmatch(name):
        raise Refused(f"--{option} {name!r} is not a table name: 3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.'")


def check_target(source: str, target: str) -> None:
    """Raises `Refused` if a migration of this source may not write to a table of this name, whatever format the source is in."""
    if source == target:
        raise Refused(f"--target {target} is the source itself; a target is a new table, and the source is never written")
    if target in {name for format_ in FORMATS for key in KEYS for name in format_.companions(source, key)}:
        raise Refused(f"--target {target} is a name that the system of {source} gives to a table of its own; give this migration another target")
