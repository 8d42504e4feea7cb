"""`show`: a checkpoint table for people and programs."""

from __future__ import annotations

from rich.table import Table as Grid

from sluice_checkpoints.cli.report import Output, place
from sluice_checkpoints.cli.table import own_table
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.owners import named
from sluice_checkpoints.protocol.rows import EXPORTED, Item


def run(table: str, region: str, endpoint: str | None, output: Output) -> None:
    """Prints the table.

    Raises:
        Refused: it does not exist, or is none of ours.
    """
    found = document(own_table(table, client(Endpoint(region, endpoint))))
    if output.as_json:
        output.document(found)
        return
    output.out.print(f"[bold]{table}[/]  {_headline(found)}", soft_wrap=True)
    output.out.print(_grid(found["shards"]))
    if folded := found["folded"]["shards"]:
        output.out.print(f"and {len(folded)} shards that were read to their end and left the stream; --json names them", soft_wrap=True)


def _headline(found: Item) -> str:
    migration = found["migration"]
    origin = f"migration from {migration['source']} ({migration['format']}) {migration['state']}" if migration else ""
    if found["generation"] is None:
        return f"no consumer yet · {origin}"
    lease = "released" if found["released"] else f"held by {found['holder'] or 'an unknown holder'}"
    lease = "" if found["state"] == EXPORTED else lease  # nobody can take it any more
    owner = f"of {named(found['owner'], found['cluster'])}" if found["owner"] else ""
    parts = [found["state"], owner, f"generation {found['generation']}", f"{found['committed']} batches committed", lease, found["stream"], origin]
    return " · ".join(filter(None, parts))


def _grid(shards: Item) -> Grid:
    grid = Grid("shard", "position", "parents", "children")
    for shard_id, stands in shards.items():
        lineage = stands["lineage"]
        position = Position.from_map({key: value for key, value in stands.items() if key != "lineage"})
        grid.add_row(shard_id, place(position), "\n".join(lineage["parents"]), "\n".join(lineage["children"]))
    return grid
