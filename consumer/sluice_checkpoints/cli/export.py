"""`export`: puts the ports together, runs an exporter, and says what came of it."""

from __future__ import annotations

import signal
import socket
import sys
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table as Grid

from sluice_checkpoints.cli.migrate import SIGTERM_EXIT
from sluice_checkpoints.cli.report import WARNINGS_SAID, LoggedProgress, Output, place, short
from sluice_checkpoints.cli.table import own_table
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.dynamodb.target_tables import DynamoTargetTables
from sluice_checkpoints.export.exporter import Exporter, ExportResult
from sluice_checkpoints.export.plan import KEPT, WRITTEN, ExportPlan, as_document
from sluice_checkpoints.export.ports import ExportPorts, ExportRequest
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.first_records import BotoPassedRecords


@dataclass(frozen=True)
class ExportOptions:
    """The options of the command, as click names them; see `ExportRequest`."""

    format_: str
    table: str
    to: str
    stream: StreamAddress
    region: str
    quiet_seconds: float | None
    lease_seconds: float
    dynamodb_endpoint: str | None
    dry_run: bool


def run(options: ExportOptions, output: Output) -> None:
    """Exports, or plans it.

    Raises:
        SluiceError: see `Exporter.run`.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_EXIT))  # an orderly exit: the lease is released
    request = ExportRequest(options.format_, options.to, options.quiet_seconds, round(options.lease_seconds * 1000))
    exporter = Exporter(request, _ports(options, output))
    _report(exporter.dry_run() if options.dry_run else exporter.run(), output)


def _ports(options: ExportOptions, output: Output) -> ExportPorts:
    api = client(Endpoint(options.region, options.dynamodb_endpoint))
    catalog = BotoStreamCatalog(options.stream)
    return ExportPorts(
        store=CheckpointStore(own_table(options.table, api)),
        catalog=catalog,
        targets=DynamoTargetTables(api),
        holder=f"export on {socket.gethostname()}",
        progress=LoggedProgress(output.log),
        records=BotoPassedRecords(catalog),
    )


def summary(result: ExportResult) -> Item:
    """The document of an export without its plan (docs/interfaces.md)."""
    return {
        "reason": result.state.capitalize(),
        "message": result.message,
        "state": result.state,
        "shards": len(result.plan.entries) if result.plan else None,
        "counts": result.plan.counts if result.plan else {},
        "warnings": len(result.warnings),
        "firstWarnings": list(result.warnings[:WARNINGS_SAID]),
    }


def _report(result: ExportResult, output: Output) -> None:
    document = summary(result)
    output.done(document)
    for warning in result.warnings:
        output.log.print(f"[yellow]warning[/] {escape(warning)}", soft_wrap=True)
    if output.as_json:
        output.document(document | {"plan": [as_document(entry) for entry in result.plan.entries] if result.plan else []})
        return
    if result.plan:
        output.out.print(_grid(result.plan))
    counts = "".join(f" · {number} {name}" for name, number in document["counts"].items() if number)
    output.out.print(f"[green]{result.state}[/] {escape(result.message)}{counts}", soft_wrap=True)


def _grid(plan: ExportPlan) -> Grid:
    grid = Grid("shard", "position", "written as", "was there", "why", "records", title="Plan", title_justify="left", title_style="bold")
    for entry in plan.entries:
        expressible, kept = entry.expressible, entry.outcome == KEPT
        shown = escape(short(entry.position_text) if entry.outcome == WRITTEN else f"{entry.outcome}: {short(entry.position_text)}")
        style = "yellow" if kept or expressible.warnings else ""
        risk = "come again" if expressible.again and not kept else ""
        why = "is further" if kept else expressible.why
        grid.add_row(entry.shard, place(expressible.committed), shown, escape(short(entry.was or "no row")), escape(why), risk, style=style)
    return grid
