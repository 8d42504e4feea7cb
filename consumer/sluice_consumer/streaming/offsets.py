"""What Spark remembers of a stream, and what that means to the table (docs/structured-streaming.md). Pure.

Spark's checkpoint directory and our table are written one after the other, and either may be restored from a backup. Which is ahead follows from the
numbers, and from the rows: a row holds the range of the last batch that had its shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_consumer.batches.planner import BatchPlan, TableView

ANEW = "give the query a new checkpoint directory: it continues from the table's positions, with empty state"


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch, as Spark stores it.

    Attributes:
        consumer: the consumer's id; a number means nothing in another table.
        batch: the batch's number over the consumer's whole life.
        first: the offset that a query begins with; it precedes the first batch, and is no batch itself.
    """

    consumer: str
    batch: int
    first: bool = False

    def to_map(self) -> dict[str, Any]:
        """The JSON object; always in this order, for Spark compares the text."""
        return {"batch": self.batch, "consumer": self.consumer} | ({"first": True} if self.first else {})

    @staticmethod
    def from_map(values: Mapping[str, Any]) -> Offset:
        """Reads the JSON object."""
        return Offset(str(values["consumer"]), int(values["batch"]), bool(values.get("first", False)))


def check(view: TableView, consumer: str, offset: Offset) -> None:
    """Refuses an offset that cannot be of this table.

    Raises:
        Refused: it is another consumer's, or of a batch that the table has not come to.
    """
    if offset.consumer != consumer:
        raise Refused(f"the checkpoint directory belongs to consumer {offset.consumer}, and the table to {consumer}; {ANEW}")
    if offset.batch > (view.committed if offset.first else view.number):
        raise Refused(
            f"the checkpoint directory is at batch {offset.batch}, but the table has committed only {view.committed}: was it restored from a backup? "
            f"Use the table that the query ran on; or {ANEW}"
        )


def seen_less(view: TableView, offset: Offset) -> BatchPlan | None:
    """What of the committed batches Spark has not stored: none, or the last, if it can still be read.

    Batches without shards are committed without Spark; they leave no row.

    Raises:
        Refused: more than the last one, or the batch after it was begun; their ranges are no longer known.
    """
    missed = any(offset.batch < row.batch <= view.committed for row in view.rows.values())
    if not missed:
        return None
    if offset.batch < view.committed - 1:
        raise _too_old(view, offset.batch)
    return of_committed(view, view.committed)


def of_committed(view: TableView, number: int) -> BatchPlan:
    """Exactly what a committed batch contained: its ranges are in the rows until a later batch has their shards.

    Raises:
        Refused: one has.
    """
    if any(row.batch > number for row in view.rows.values()):
        raise _too_old(view, number - 1)
    rows = sorted((row for row in view.rows.values() if row.batch == number), key=lambda row: row.id)
    return BatchPlan(number, tuple(rows), replay=True)


def _too_old(view: TableView, batch: int) -> Refused:
    newest = max(row.batch for row in view.rows.values())
    return Refused(
        f"the checkpoint directory knows no batch after {batch}, but the table has committed {view.committed} and begun {newest}: was the directory "
        f"restored from a backup? What came between is not in its state and cannot be read again by number. Use the newer directory; or {ANEW}"
    )
