"""`reset`: puts the ports together, runs a resetter, and says what came of it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table as Grid

from sluice_checkpoints.cli.migrate import PATIENCE, SIGTERM_EXIT
from sluice_checkpoints.cli.report import LoggedProgress, Output, place
from sluice_checkpoints.cli.table import own_table
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.positions.model import BACK, FORWARD, ResetPlan, ShardMove
from sluice_checkpoints.positions.ports import ResetPorts
from sluice_checkpoints.positions.resetter import ResetResult, Resetter
from sluice_checkpoints.positions.target import FILE, PositionsFile, ResetRequest, ResetTarget
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_records import BotoRecentRecords

STYLES = {BACK: "yellow", FORWARD: "red"}  # what is passed over is never delivered


@dataclass(frozen=True)
class ResetOptions:
    """The options of the command, as click names them; see `ResetRequest`."""

    id_: str | None
    table: str
    stream: StreamAddress
    region: str
    to: ResetTarget | None
    to_batch: int | None
    from_file: str | None
    shard: tuple[str, ...]
    give_up_batch: int | None
    accept_expired: bool
    lease_seconds: float
    dynamodb_endpoint: str | None
    dry_run: bool
    yes: bool


def parse_target(_context: click.Context, _parameter: click.Parameter, value: str | None) -> ResetTarget | None:
    """A target of a reset."""
    if value is None:
        return None
    try:
        return ResetTarget.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def run(options: ResetOptions, output: Output) -> None:
    """Moves positions, or plans it.

    Raises:
        SluiceError: see `Resetter.run`.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_EXIT))  # an orderly exit: the lease is released
    now = datetime.now(UTC)
    resetter = Resetter(_request(options, now), _ports(options, now, output))
    _report(resetter.dry_run() if options.dry_run else resetter.run(), output)


def _request(options: ResetOptions, now: datetime) -> ResetRequest:
    made = f"{now:%Y-%m-%dT%H%M%SZ}-{secrets.token_hex(2)}"
    lease = round(options.lease_seconds * 1000)
    file = None if options.from_file is None else PositionsFile.parse(_text(options.from_file))
    to = options.to or (ResetTarget(FILE) if file else ResetTarget(batch=options.to_batch))
    named = made if options.id_ is None else options.id_
    return ResetRequest(named, to, frozenset(options.shard), options.give_up_batch, options.accept_expired, lease, file)


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Refused(f"--from-file {file} cannot be read: {error}") from error


def _ports(options: ResetOptions, now: datetime, output: Output) -> ResetPorts:
    api = client(Endpoint(options.region, options.dynamodb_endpoint))
    catalog = BotoStreamCatalog(options.stream, PATIENCE)
    return ResetPorts(
        store=CheckpointStore(own_table(options.table, api)),
        catalog=catalog,
        records=BotoRecentRecords(catalog),
        holder=f"reset on {socket.gethostname()}",
        at=now.isoformat(timespec="seconds"),
        owner=owner(os.environ),
        table_id=DynamoTargets(api).identity(options.table),
        progress=LoggedProgress(output.log),
    )


def owner(environment: Mapping[str, str]) -> Owner | None:
    """Whose table it has to be, as the operator names it. None: nobody is named, and a person names the table."""
    name, clusters = environment.get("SLUICE_OWNER", ""), tuple(environment.get("SLUICE_CLUSTER", "").split())
    return Owner(name, clusters, writes=False) if name else None


def _report(result: ResetResult, output: Output) -> None:
    output.done(result.document)
    for warning in result.warnings:
        output.log.print(f"[yellow]warning[/] {escape(warning)}", soft_wrap=True)
    if output.as_json:
        output.document(result.document | {"plan": [as_document(shard) for shard in result.plan.shards] if result.plan else None})
        return
    if result.plan:
        output.out.print(_grid(result.plan))
    document = result.document
    output.out.print(f"[green]{document['state']}[/] {escape(document['message'])}", soft_wrap=True)
    output.out.print(f"id {document['id']} · to {document['to']} · digest {document['digest']}", soft_wrap=True)


def as_document(shard: ShardMove) -> Item:
    """One line of the plan (docs/interfaces.md)."""
    return {
        "shard": shard.row.id,
        "from": shard.at.to_map(),
        "to": shard.placed.to.to_map(),
        "move": shard.move,
        "why": shard.placed.why,
        "recordsAgain": shard.again,
        "recordsPassedOver": shard.passed,
    }


def _grid(plan: ResetPlan) -> Grid:
    grid = Grid(title="Plan", title_justify="left", title_style="bold")
    grid.add_column("shard", overflow="fold")
    for title in ("position", "moves to", "begins with"):
        grid.add_column(title, overflow="fold")
    grid.add_column("records")
    for shard in plan.shards:
        to = place(shard.placed.to) if shard.write else "stays"
        grid.add_row(shard.row.id, place(shard.at), to, escape(shard.placed.why), _records(shard), style=STYLES.get(shard.move, ""))
    return grid


def _records(shard: ShardMove) -> str:
    """What happens to records, as far as the row says."""
    if shard.write is None:
        return ""
    if shard.move == FORWARD:
        return "are passed over"
    return "come again" if shard.again is None else f"{shard.again} come again"
