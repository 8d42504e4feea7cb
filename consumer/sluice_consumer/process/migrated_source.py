"""Warns while the consumer that was replaced still works: then both process the same records (docs/migration.md).

The driver looks minutes after it started, and then hourly: a Deployment comes back whenever its git repository says so. It only warns: nothing it
could do would be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.reader import StoredPosition
from sluice_checkpoints.formats.snapshot import SourceTables
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.logs import log

SECONDS = 180.0  # before the first two looks
AGAIN_SECONDS = 3600.0
Positions = Mapping[str, StoredPosition]


def watch(ended: Callable[[float], bool], read: Callable[[], Positions], tell: Callable[[int], None]) -> None:
    """Looks until the driver ends.

    Args:
        ended: waits for so many seconds; True: the driver ends.
        read: positions by shard. What it raises is logged, once for as long as it is the same: only a warning hangs on it.
        tell: called with the number of positions that have moved since the look before.
    """
    seen: Positions | None = None
    pause, logged = SECONDS, ""
    while not ended(pause):
        try:
            positions = read()
        except Exception as error:  # noqa: BLE001 - whatever it is
            pause = AGAIN_SECONDS if isinstance(error, Refused) else SECONDS
            if logged != str(error):
                logged = str(error)
                log.warning("whether the consumer that was replaced still works is not known: %s", logged)
            continue
        if seen is not None:
            tell(sum(positions.get(shard) != seen.get(shard) for shard in positions.keys() | seen.keys()))
        pause = SECONDS if seen is None else AGAIN_SECONDS
        seen = positions


def positions(tables: SourceTables, claim: MigrationClaim, stream: StreamIdentity) -> Positions:
    """What the source stores of this stream's shards. What the migration ignored is left out, and so are other streams, which may still be read.

    Raises:
        Refused: the table is gone or in another format, or it may not be read.
    """
    source, snapshot = take_snapshot(tables, claim.row.source, claim.row.format)
    left = snapshot.without(claim.chosen("ignore-attribute"), claim.chosen("ignore-row"))
    return {shard.id: shard.stored for shard in source.read(left, stream).shards}
