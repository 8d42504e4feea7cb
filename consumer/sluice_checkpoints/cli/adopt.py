"""`adopt`: a restored or replicated table becomes a consumer of its own."""

from __future__ import annotations

import secrets

from sluice_checkpoints.cli.report import Output
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.store import CheckpointStore


def run(table: str, region: str, endpoint: str | None, output: Output) -> None:
    """Adopts the table, and says what that means.

    Raises:
        Refused, LeaseHeld: see `copies.adopt`; or the table does not exist.
    """
    api = client(Endpoint(region, endpoint))
    identity = DynamoTargets(api).identity(table)
    if identity is None:
        raise Refused(f"table {table} does not exist in {region}")
    before, after = copies.adopt(CheckpointStore(DynamoTable(table, api)), identity, lambda: secrets.token_hex(8))
    done = before == after
    message = (
        f"table {table} is consumer {after.consumer_id} already; nothing was written"
        if done
        else f"table {table} is consumer {after.consumer_id} now, no longer {before.consumer_id}; it goes on after batch {after.committed}, "
        "and what the original read after the copy was made comes again, under the new id"
    )
    if output.as_json:
        ids = {"consumerId": after.consumer_id, "formerConsumerId": before.consumer_id}
        place = {"generation": after.generation, "committed": after.committed}
        output.document({"reason": "Adopted", "message": message, "changed": not done, **ids, **place})
        return
    output.out.print(f"[green]Adopted[/] {message}", soft_wrap=True)
