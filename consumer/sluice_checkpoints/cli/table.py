"""A table of Sluice by its name on a command line."""

from __future__ import annotations

from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import Api, DynamoTable
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import check_table
from sluice_checkpoints.formats.sluice import KEY
from sluice_checkpoints.protocol.row_kinds import OwnTable


def own_table(name: str, api: Api) -> OwnTable:
    """The table, if its key is that of Sluice's tables.

    Raises:
        Refused: there is no such table, or it is another system's.
        ServiceUnavailable: no answer in time.
    """
    check_table("table", name)
    keys = DynamoSources(api).key_schema(name)
    if keys is None:
        raise Refused(f"there is no table {name}; check its name and the region")
    if keys != KEY:
        schema = ", ".join(map(str, keys))
        raise Refused(f"table {name} has the key schema ({schema}), not (id HASH S): it is another system's; name a table of Sluice")
    return OwnTable(DynamoTable(name, api))
