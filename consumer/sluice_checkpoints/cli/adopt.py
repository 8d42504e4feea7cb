"""`adopt`: a restored or replicated table becomes a consumer of its own, or a table gets another owner."""

from __future__ import annotations

import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from botocore.exceptions import BotoCoreError, ClientError
from rich.markup import escape

from sluice_checkpoints.cli.report import LoggedProgress, Output
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.table import Api, DynamoTable, Endpoint, client
from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, hand_over
from sluice_checkpoints.protocol.owners import NOBODY, Owner, named
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore

OF_TABLE = re.compile(r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/(?P<name>[A-Za-z0-9_.-]+)@.+")
LEASE_MILLIS = 20_000  # promised for the moment between two writes


@dataclass(frozen=True)
class AdoptOptions:
    """The options of the command, as click names them."""

    table: str
    region: str
    dynamodb_endpoint: str | None
    owner: str | None
    cluster: str | None

    @property
    def wanted(self) -> Owner:
        """Whose the table is to be."""
        return Owner(self.owner, (self.cluster,) if self.cluster else ()) if self.owner else NOBODY


def run(options: AdoptOptions, output: Output) -> None:
    """Adopts the table or hands it over, and says what that means.

    Raises:
        Refused, LeaseHeld: see `copies.adopt` and `lease.hand_over`; or the table does not exist.
    """
    api = client(Endpoint(options.region, options.dynamodb_endpoint))
    identity = DynamoTargets(api).identity(options.table)
    if identity is None:
        raise Refused(f"table {options.table} does not exist in {options.region}; check --table and --region")
    store = CheckpointStore(DynamoTable(options.table, api))
    before, after = changed(store, identity, options.wanted, output)
    adopted = before.consumer_id != after.consumer_id
    again = copies.batches_again(before, _original(api, before.table_id or "")) if adopted else None
    _report(options.table, before, after, again, output)


def _original(api: Api, table_id: str) -> ConsumerRow | None:
    """The consumer row of the table that a copy was made of; None: it is not there, in another region, or must not be read."""
    match = OF_TABLE.fullmatch(table_id)
    if match is None:
        return None
    with suppress(SluiceError, BotoCoreError, ClientError):
        if DynamoTargets(api).identity(match["name"]) == table_id:
            return CheckpointStore(DynamoTable(match["name"], api)).consumer()
    return None


def changed(store: CheckpointStore, identity: str, owner: Owner, output: Output) -> tuple[ConsumerRow, ConsumerRow]:
    """The consumer row before and after; the same row twice if it was so before."""
    seen = store.consumer()
    copy = seen is not None and seen.table_id not in {None, identity}
    if seen is None or copy or not owner.name:
        return copies.adopt(store, identity, lambda: secrets.token_hex(8), owner)
    if owner.given(seen) == seen:
        return seen, seen
    watcher = Watcher(notify=lambda seconds: LoggedProgress(output.log).waiting(seconds, "the consumer's lease runs out"))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return seen, hand_over(store, LeaseRequest(LEASE_MILLIS, f"adopt on {socket.gethostname()}", now, owner=owner), watcher)


def _report(table: str, before: ConsumerRow, after: ConsumerRow, again: int | None, output: Output) -> None:
    message = f"table {table} {_outcome(before, after, again)}"
    if output.as_json:
        ids = {"consumerId": after.consumer_id, "formerConsumerId": before.consumer_id}
        owners = {"owner": after.owner, "cluster": after.cluster, "formerOwner": before.owner, "formerCluster": before.cluster}
        place = {"generation": after.generation, "committed": after.committed, "batchesAgain": again}
        output.document({"reason": "Adopted", "message": message, "changed": before != after, **ids, **owners, **place})
        return
    output.out.print(f"[green]Adopted[/] {escape(message)}", soft_wrap=True)


def _outcome(before: ConsumerRow, after: ConsumerRow, again: int | None) -> str:
    owner = f" of {named(after.owner, after.cluster)}" if after.owner else ""
    if before == after:
        return f"is consumer {after.consumer_id}{owner} already; nothing was written"
    if before.consumer_id != after.consumer_id:
        whose = owner or (", of the driver that comes first," if before.owner else "")
        return (
            f"is consumer {after.consumer_id}{whose} now, no longer {before.consumer_id}; it continues after batch {after.committed}, "
            f"and what the original read after the copy was made comes again, under the new id: {_again(again)}"
        )
    former = f", no longer to {named(before.owner, before.cluster)}" if before.owner else ""
    return f"belongs to {named(after.owner or '', after.cluster)} now{former}; consumer {after.consumer_id} continues after batch {after.committed}"


def _again(batches: int | None) -> str:
    return "how many batches is not known, because the original is not there to be asked" if batches is None else counted(batches, "batch")
