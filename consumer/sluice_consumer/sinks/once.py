"""A table that takes each batch once: look, stage, publish on a condition (docs/sinks.md, "Iceberg"). No Spark: tests crash it at every step.

The table itself remembers the last batch of a consumer, as a *mark*. The mark moves in the same commit that adds the rows, and only from where this
attempt saw it: an attempt that stood still meanwhile finds another mark, and adds nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from sluice_checkpoints.errors import SluiceError

log = logging.getLogger(__name__)
NONE = 0  # batches are numbered from 1


class MarkMoved(SluiceError):
    """The mark is not where this attempt saw it: nothing was added. Or a reply was lost, and the mark moved."""


class MarkedTable(Protocol):
    """A table with marks."""

    def mark(self, consumer: str) -> int | None:
        """The last batch of this consumer that the table holds; `NONE` before its first; None if it never began."""
        ...

    def begin(self, consumer: str) -> None:
        """Sets the mark `NONE`, unless there is such a mark.

        A late attempt may set it beside a later one: `mark` answers with the latest.
        """
        ...

    def stage(self, consumer: str, batch: int) -> Callable[[int], None]:
        """Writes the rows where no reader sees them; returns what publishes them.

        That takes the mark as it was seen. In one commit it removes that mark, sets the mark of this batch, and adds the rows.

        Raises:
            MarkMoved: of the returned function, see there.
        """
        ...


def add_once(table: MarkedTable, consumer: str, batch: int) -> bool:
    """Adds the rows of a batch, unless the table holds it; False if it does.

    Raises:
        MarkMoved: the mark moved, but not to this batch or a later one. Else what the table raises.
    """
    seen = _mark(table, consumer)
    if seen >= batch:
        log.info("batch %s of %s is in the table already, as its mark %s says", batch, consumer, seen)
        return False
    publish = table.stage(consumer, batch)
    try:
        publish(seen)
    except MarkMoved:
        if (table.mark(consumer) or NONE) < batch:
            raise
        log.info("batch %s of %s: what another attempt wrote counts", batch, consumer)
        return False
    return True


def _mark(table: MarkedTable, consumer: str) -> int:
    """Read again after `begin`: this attempt may be late."""
    seen = table.mark(consumer)
    if seen is None:
        table.begin(consumer)
        seen = table.mark(consumer)
    return seen or NONE
