"""Warns if the migrated table still changes: then the old consumer still works, and both process the same records (docs/migration.md).

The driver looks minutes after it started, and then hourly: a Deployment comes back whenever its git repository says so. It only warns: nothing it
could do would be right.
"""

from __future__ import annotations

from collections.abc import Callable

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.snapshot import SourceTables
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_consumer.driver_report import DriverWarning, WarningReason
from sluice_consumer.logs import log

SECONDS = 180.0  # KCL's slowest writer, the worker metrics, writes every 30 s
AGAIN_SECONDS = 3600.0


def watch(ended: Callable[[float], bool], look: Callable[[], DriverWarning | None]) -> DriverWarning | None:
    """Looks until there is a warning, which it returns, or the driver ends.

    Args:
        ended: waits for so many seconds; True: the driver ends.
        look: looks once. What it raises is logged: only a warning hangs on it.
    """
    pause = SECONDS
    while not ended(pause):
        pause = AGAIN_SECONDS
        try:
            if warning := look():
                return warning
        except Exception:  # noqa: BLE001 - whatever it is
            log.exception("the source of the migration could not be compared")
    return None


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
