"""`diagnose`: reads a table and its stream, asks the rules, and says what is wrong."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import groupby

from rich.markup import escape
from rich.table import Table as Grid

from sluice_checkpoints.cli.report import Output, short
from sluice_checkpoints.diagnose.model import LATEST, Finding, Observation, Severity
from sluice_checkpoints.diagnose.oldest_records import BotoOldestRecords, OldestRecords
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.formats import detect, nifi
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.snapshot import SourceTables
from sluice_checkpoints.migrate.placement import FROM_START
from sluice_checkpoints.migrate.stream_check import Compared
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_checkpoints.stream.model import PositionCatalog, ShardList

INITIAL = (LATEST, FROM_START)
LOSS_EXIT = 1
SHOWN = 20  # findings of one kind for people; --json has all of them
STYLES = {Severity.LOST: "bold red", Severity.WILL_BE_LOST: "red", Severity.SUSPECTED: "magenta", Severity.WARNING: "yellow", Severity.INFO: ""}
TITLES = {
    Severity.LOST: "lost",
    Severity.WILL_BE_LOST: "will be lost",
    Severity.SUSPECTED: "suspected",
    Severity.WARNING: "look at it",
    Severity.INFO: "for your information",
}


@dataclass(frozen=True)
class DiagnoseOptions:
    """The options of the command, as click names them."""

    table: str
    stream: StreamAddress
    region: str
    format_: str
    initial_position: str | None
    records: bool
    dynamodb_endpoint: str | None


@dataclass(frozen=True)
class DiagnosePorts:
    """What a diagnosis looks through: the tables, the stream, and its records (None: they are not asked for)."""

    sources: SourceTables
    catalog: PositionCatalog
    records: OldestRecords | None


def run(options: DiagnoseOptions, output: Output) -> None:
    """Diagnoses; leaves with `LOSS_EXIT` if records are or will be lost.

    Raises:
        Refused: there is no such table or stream, or the table is of no known format.
        ServiceUnavailable: no answer in time.
    """
    observed = observe(options, _sight(options))
    findings = diagnose(observed)
    report = document(options.table, observed, findings)
    if output.as_json:
        output.document(report)
    else:
        _print(output, report, findings)
    if report["loss"]:
        sys.exit(LOSS_EXIT)


def observe(options: DiagnoseOptions, sight: DiagnosePorts) -> Observation:
    """Everything there is to see. Only reads, and the table first: a row's shard was listed when the row was made."""
    stream = sight.catalog.describe()
    chosen, snapshot = detect.take_snapshot(sight.sources, options.table, options.format_)
    shards = sight.catalog.list_shards()
    reading = chosen.read(snapshot, stream)
    stopped = nifi.interrupted(snapshot, stream) if chosen.name == nifi.Nifi.name else None
    oldest = sight.records.oldest(_begun(reading, shards)) if sight.records else {}
    compared = Compared(reading, snapshot, stream, shards)
    strange = compared.disowned(sight.catalog.disowned(compared.places())) if sight.records else []
    reading = replace(reading, problems=(*reading.problems, *compared.contradictions(), *strange))
    return Observation(reading, shards, options.initial_position, oldest, stopped)


def _begun(reading: Reading, shards: ShardList) -> list[str]:
    """Shards in which a record is the last one read: retention may have passed it."""
    listed = {shard.id for shard in shards.shards}
    return [row.id for row in reading.shards if row.id in listed and row.stored.position and row.stored.position.sequence]


def _sight(options: DiagnoseOptions) -> DiagnosePorts:
    catalog = BotoStreamCatalog(options.stream)
    sources = DynamoSources(client(Endpoint(options.region, options.dynamodb_endpoint)))
    return DiagnosePorts(sources, catalog, BotoOldestRecords(catalog) if options.records else None)


def document(table: str, observed: Observation, findings: tuple[Finding, ...]) -> Item:
    """The document of `--json` (docs/interfaces.md): the worst findings first."""
    counts = Counter(finding.severity for finding in findings)
    return {
        "table": table,
        "format": observed.reading.format,
        "rows": len(observed.rows),
        "shards": len(observed.shards),
        "loss": any(finding.severity.loss for finding in findings),
        "suspected": counts[Severity.SUSPECTED] > 0,
        "counts": {severity.value: counts[severity] for severity in Severity},
        "findings": [asdict(finding) for finding in findings],
    }


def _print(output: Output, report: Item, findings: tuple[Finding, ...]) -> None:
    doubt = "[yellow]losses are suspected[/]" if report["suspected"] else "[green]no loss was found[/]"
    state = "[red]records are or will be lost[/]" if report["loss"] else doubt
    counts = "".join(f" · {report['counts'][severity]} {TITLES[severity]}" for severity in Severity if report["counts"][severity])
    about = f"{report['format']}, {counted(report['rows'], 'row')} of shards, {counted(report['shards'], 'shard')} in the stream"
    output.out.print(f"[bold]{escape(report['table'])}[/] ({about}): {state}{counts}", soft_wrap=True)
    for severity, group in groupby(findings, key=lambda finding: finding.severity):
        output.out.print(_grid(severity, list(group)))


def _grid(severity: Severity, findings: list[Finding]) -> Grid:
    """One table a severity, what is about the whole table first. Shards of which the same is said share a row; of many rows the first are shown."""
    grid = Grid("shard", "what is wrong", "what to do next", title=TITLES[severity], title_justify="left", title_style=STYLES[severity] or "bold")
    grid.columns[0].no_wrap = True
    for kind, same in groupby(sorted(findings, key=_order), key=_order):
        rows = [(list(alike), text, advice) for (text, advice), alike in groupby(same, key=lambda finding: (finding.text, finding.advice))]
        for alike, text, advice in rows[:SHOWN]:
            grid.add_row(_shards(alike), escape(short(text)), escape(advice), style=STYLES[severity])
        if len(rows) > SHOWN:
            grid.add_row("", f"{kind[1]}: {len(rows) - SHOWN} more; --json has them all")
        grid.add_section()
    return grid


def _order(finding: Finding) -> tuple[bool, str]:
    return finding.shard is not None, finding.kind


def _shards(findings: list[Finding]) -> str:
    names = [finding.shard or "the table" for finding in findings]
    return "\n".join(names[:SHOWN]) + (f"\nand {len(names) - SHOWN} more" if len(names) > SHOWN else "")
