"""`migrate`: puts the ports together and runs a migrator."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.cli.report import LoggedProgress, Output
from sluice_checkpoints.dynamodb.create import DynamoTargets, TableSettings
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.ports import MigrationPorts, MigrationRequest
from sluice_checkpoints.position import Position
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog

SIGTERM_EXIT = 143
PATIENCE = Patience(limit=120.0)  # a migration outlives a minute of throttling; no caller waits for its answer


@dataclass(frozen=True)
class MigrateOptions:
    """The options of the command, as click names them; `timestamp` is in epoch milliseconds, the rest as in `MigrationRequest`."""

    source: str
    stream: StreamAddress
    target: str
    region: str
    format_: str
    unstarted: str | None
    quiet_seconds: float | None
    lease_seconds: float
    timestamp: int | None
    dynamodb_endpoint: str | None
    dry_run: bool
    ignore_attribute: tuple[str, ...] = ()
    ignore_row: tuple[str, ...] = ()
    place: Mapping[str, Position] = field(default_factory=dict)
    tag: Mapping[str, str] = field(default_factory=dict)
    kms_key: str | None = None


def run(options: MigrateOptions, output: Output) -> None:
    """Migrates, or plans it.

    Raises:
        SluiceError: see `Migrator.run`.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_EXIT))  # an orderly exit: the claim is released
    migrator = Migrator(_request(options), _ports(options, output))
    output.migrated(migrator.dry_run() if options.dry_run else migrator.run())


def _request(options: MigrateOptions) -> MigrationRequest:
    return MigrationRequest(
        source=options.source,
        target=options.target,
        format=options.format_,
        unstarted=options.unstarted,
        timestamp_millis=options.timestamp,
        ignored=options.ignore_attribute,
        rows=options.ignore_row,
        places=options.place,
        quiet_seconds=options.quiet_seconds,
        lease_millis=round(options.lease_seconds * 1000),
    )


def _ports(options: MigrateOptions, output: Output) -> MigrationPorts:
    api = client(Endpoint(options.region, options.dynamodb_endpoint))
    return MigrationPorts(
        sources=DynamoSources(api, PATIENCE),
        catalog=BotoStreamCatalog(options.stream, PATIENCE),
        targets=DynamoTargets(api, PATIENCE, settings=TableSettings(options.tag, options.kms_key)),
        progress=LoggedProgress(output.log),
    )
