"""A table that takes each batch once: look, stage, publish on a condition (docs/sinks.md, "Iceberg"). No Spark: tests crash it at every step.

The table itself remembers the last batch of a consumer, as a *mark*. The mark moves in the same commit that adds the rows, and only from where this
attempt saw it. An attempt that was paused in between finds another mark, and adds nothing. A mark whose batch the table no longer holds is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.conflicts import CommitConflict, Retries
from sluice_consumer.sinks.iceberg.lineage import NONE, Mark

log = logging.getLogger(__name__)
Publish = Callable[[int], None]


class MarkMoved(CommitConflict):
    """The mark is not where this attempt saw it: nothing was added."""


class StagedLost(CommitConflict):
    """What was staged has expired: nothing was added."""


class MarkedTable(Protocol):
    """A table with marks. Every method may raise `CommitConflict`: another writer was faster, or the reply was lost."""

    def read_mark(self, consumer: str) -> Mark | None:
        """The last batch of this consumer that the table was given; None: it shows nothing of the consumer."""
        ...

    def begin(self, consumer: str, batch: int) -> None:
        """Sets a mark where there is no tag: `NONE`, or the batch that the table's other witnesses show. Does nothing if they show another one."""
        ...

    def stage(self, consumer: str, batch: int) -> Publish:
        """Writes the rows where no reader sees them; returns what publishes them.

        That takes the mark as it was seen. In one commit it removes that mark, sets the mark of this batch, and adds the rows.

        Raises:
            MarkMoved, StagedLost: of the returned function, see there.
        """
        ...

    def undone(self, consumer: str, batch: int, mark: Mark) -> Refused:
        """The error that says that the table no longer holds a batch that it was given, with the ways out."""
        ...


def add_once(table: MarkedTable, consumer: str, batch: int, retries: Retries | None = None) -> bool:
    """Adds the rows of a batch, unless the table holds it; False if it does.

    Raises:
        Refused: the table was given the consumer's last batch, and no longer holds it. SinkUnavailable: other writers were faster for too long.
        Else what the table raises.
    """
    publish: Publish | None = None
    retries = retries or Retries()
    while True:
        try:
            seen = _mark(table, consumer, batch)
            if seen >= batch:
                log.info("batch %s of %s is in the table already, as its mark %s says", batch, consumer, seen)
                return False
            publish = publish or table.stage(consumer, batch)
            publish(seen)
        except CommitConflict as error:
            log.info("batch %s of %s: %s; looking again", batch, consumer, error)
            publish = None if isinstance(error, StagedLost) else publish
            retries.pause(error)
        else:
            return True


def holds(table: MarkedTable, consumer: str, batch: int, retries: Retries | None = None) -> bool:
    """Whether the table holds a batch, asked before its rows are made: of a batch that is held, nothing can fail any more.

    Raises:
        As `add_once`.
    """
    mark = table.read_mark(consumer)
    if mark is None or (mark.lost is None and mark.batch < batch):
        return False
    retries = retries or Retries()
    while True:
        try:
            return _mark(table, consumer, batch) >= batch
        except CommitConflict as error:
            retries.pause(error)


def _mark(table: MarkedTable, consumer: str, batch: int) -> int:
    """Read again after `begin`: this attempt may be late."""
    mark = table.read_mark(consumer)
    if mark is not None and mark.lost is not None:
        raise table.undone(consumer, batch, mark)
    if mark is None or not mark.tagged:
        if mark is not None:
            log.warning("the tag of %s is gone; the table's branch and snapshots show batch %s: the tag is set again", consumer, mark.batch)
        table.begin(consumer, mark.batch if mark else NONE)
        mark = table.read_mark(consumer)
    if mark is None or not mark.tagged:
        raise MarkMoved("the mark that was just set is gone")
    if mark.lost is not None:
        raise table.undone(consumer, batch, mark)
    return mark.batch
