"""What Spark remembers of a stream, and what that means to the table (docs/structured-streaming.md). Pure.

Spark's checkpoint directory and our table are written one after the other, and either may be restored from a backup. Which is ahead follows from the
numbers, and from the rows: a row holds the range of the last batch that had its shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.batch_writes import generation_of
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_consumer.batches.planner import BatchPlan, TableView

NAMED = 5  # shards named in a message
ANEW = "give the query a new checkpoint directory: it continues from the table's positions, with empty state"


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch, as Spark stores it.

    Attributes:
        consumer: the consumer's id; a number means nothing in another table.
        batch: the batch's number over the consumer's whole life.
        first: the offset that a query begins with; it precedes the first batch, and is not a batch itself.
        generation: that of the epoch which gave the batch to this checkpoint directory, 0 in the first offset.
    """

    consumer: str
    batch: int
    first: bool = False
    generation: int = 0

    def to_map(self) -> dict[str, Any]:
        """The JSON object; always in this order, for Spark compares the text. What says nothing is not in it."""
        generation = {"generation": self.generation} if self.generation else {}
        return {"batch": self.batch, "consumer": self.consumer} | generation | ({"first": True} if self.first else {})

    @staticmethod
    def from_map(values: Mapping[str, Any]) -> Offset:
        """Reads the JSON object."""
        return Offset(str(values["consumer"]), int(values["batch"]), bool(values.get("first", False)), int(values.get("generation", 0)))


def check(view: TableView, consumer: ConsumerRow, offset: Offset) -> None:
    """Refuses an offset that cannot be of this table.

    Raises:
        Refused: it is another consumer's, or of a batch that the table has not come to; or the positions were moved after it.
    """
    if offset.consumer != consumer.consumer_id:
        raise Refused(f"the checkpoint directory belongs to consumer {offset.consumer}, and the table to {consumer.consumer_id}; {ANEW}")
    if offset.batch + offset.first <= (consumer.reset_after or 0):
        raise Refused(
            f"the checkpoint directory is at batch {offset.batch}. The reset {consumer.last_reset} moved the table's positions after batch "
            f"{consumer.reset_after}, so its state has records that come again, or lacks some that were passed over; {ANEW}"
        )
    if offset.batch > (view.committed if offset.first else view.number):
        raise Refused(
            f"the checkpoint directory is at batch {offset.batch}, but the table has committed only {view.committed}: was it restored from a backup? "
            f"Use the table that the query ran on; or {ANEW}"
        )


def unread(rows: Iterable[ShardRow], done: Offset) -> tuple[ShardRow, ...]:
    """The ranges with records that nobody has read since the batch was given to this checkpoint directory.

    An earlier epoch had bound them. If Spark counts such a batch as done, its sink skipped it unread.
    """
    return tuple(row for row in rows if row.records and not any(generation_of(key) >= done.generation for key in row.readers))


def check_read(rows: Iterable[ShardRow], done: Offset) -> None:
    """Refuses to commit a batch that a new checkpoint directory's Spark counts as done and never read, as a whole or in part.

    Raises:
        Refused: naming the batch, the shards and the ways out.
    """
    left = unread(rows, done)
    if not left:
        return
    shards = ", ".join(row.id for row in left[:NAMED]) + (f" and {len(left) - NAMED} more" if len(left) > NAMED else "")
    raise Refused(
        f"batch {done.batch} was not committed: {sum(row.records for row in left)} of its records were never read in this checkpoint directory "
        f"({shards}), though Spark counts it as done. In a new directory Spark's batch ids begin at 0 again. A sink that skips the ids it knows "
        "has skipped the batch: the file sink (by its _spark_metadata), or a function of foreachBatch. Start the query with a new directory and "
        "a new output path. A function should know batches by (source.consumer, source.batch), and call source.stored() when it skips one. If your "
        f"sink holds the batch ({done.consumer}, {done.batch}), or can do without these records, set acceptLossOfBatch to {done.batch} instead"
    )


def seen_less(view: TableView, offset: Offset) -> BatchPlan | None:
    """What of the committed batches Spark has not stored: none, or the last, if it can still be read.

    Batches without shards are committed without Spark; they leave no row.

    Raises:
        Refused: more than the last one, or the batch after it was begun; their ranges are no longer known.
    """
    if offset.batch >= view.filled:
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
