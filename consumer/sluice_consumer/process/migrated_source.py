"""Warns if the migrated table still changes: then the old consumer still works, and both process the same records (docs/migration.md).

The driver looks once, minutes after it started. It only warns: nothing it could do would be right.
"""

from __future__ import annotations

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.snapshot import SourceTables
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_consumer.driver_report import DriverWarning, WarningReason

SECONDS = 180.0  # KCL's slowest writer, the worker metrics, writes every 30 s


def moved(tables: SourceTables, claim: MigrationClaim) -> DriverWarning | None:
    """A warning if the source is no longer as it was migrated; None if it is, or is gone, as it may be later. What was ignored may move."""
    row = claim.row
    try:
        found, snapshot = take_snapshot(tables, row.source, row.format)
    except Refused:
        return None
    if snapshot.without(claim.chosen("ignore-attribute"), claim.chosen("ignore-row")).digest == row.source_digest:
        return None
    text = f"table {row.source} ({found.name}) was written after its migration; is the consumer it belongs to still running?"
    return DriverWarning(WarningReason.SOURCE_MOVED, text)
