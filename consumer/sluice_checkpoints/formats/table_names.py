"""Names of tables: what DynamoDB allows, and which names of a target belong to the source's system. Pure."""

from __future__ import annotations

import re

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import kcl, kinsumer, nifi
from sluice_checkpoints.formats.detect import FORMATS

TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")  # DynamoDB, "Naming rules"
KEYS = (kcl.KEY, nifi.KEY, kinsumer.KEY)  # of the systems that have further tables


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
