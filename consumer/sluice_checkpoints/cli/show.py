"""`show`: a checkpoint table for people and programs."""

from __future__ import annotations

from datetime import UTC, datetime

from sluice_checkpoints.cli.report import Output
from sluice_checkpoints.cli.table import own_table
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.cli.table_screen import screen
from sluice_checkpoints.dynamodb.table import Endpoint, client


def run(table: str, region: str, endpoint: str | None, output: Output) -> None:
    """Prints the table.

    Raises:
        Refused: it does not exist, or is none of ours.
    """
    found = document(own_table(table, client(Endpoint(region, endpoint))))
    if output.as_json:
        output.document(found)
    else:
        output.out.print(screen(table, found, datetime.now(UTC), output.out.width))
