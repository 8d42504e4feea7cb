"""Retention: how near it is to a shard, and what it took of a batch that an earlier epoch had begun (docs/protocol.md, "Retention").

A range that was not bound yet continues at the oldest record, and its row says what may be missing (`shards.reader`). A range that *was* bound is a
promise to the sink. An epoch that cannot keep it ends; the next one continues with what is left only if a person has named the batch.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.open_range import RangeLeft, forfeit
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import BatchPlan, TableView
from sluice_consumer.kinesis.client import KinesisClient, ShardNotFound
from sluice_consumer.shards.collect import RecordColumnSet
from sluice_consumer.shards.ranges import BoundRange, Fetched
from sluice_consumer.shards.reader import ReplayShort

NEAR = 0.8  # of the retention: with a day's, five hours are left to do something
NAMED = 5  # shards named in a message
THREADS = 16


class DataLost(Refused):
    """The open batch can no longer be read as it was bound. The message says what is lost, and how to continue without it."""


class Replays(Protocol):
    """What reads a bound range again (`shards.reader.ShardReader`)."""

    def replay(self, bound: BoundRange) -> Fetched:
        """Exactly that range, or `ReplayShort`."""
        ...


# -- about to be overtaken ---------------------------------------------------------------------------------------------------------


def used(row: ShardRow, retention_millis: int, now_millis: int, created_millis: int = 0) -> float:
    """The part of the retention that has passed since the time up to which a shard was read, or will be read. 0 if there is none.

    At 1 whatever is unread begins to expire. It grows while nothing is read, whatever the reason, which `behind` of the last range does not.
    `created_millis` is the stream's creation: no record is older.
    """
    since = _unread_since(row, created_millis)
    return max(0.0, (now_millis - since) / retention_millis) if since else 0.0


def _unread_since(row: ShardRow, created_millis: int) -> int:
    """0: unknown."""
    begins = row.end.millis and max(row.end.millis, created_millis)
    return row.read_to or begins or 0


def behind(view: TableView, now_millis: int, created_millis: int) -> int | None:
    """For how long the open shard that was read least has not been read: as far as an epoch may be behind before its first batch.

    Milliseconds; what it has not read may be nothing. None: of no open shard is it known, as none was ever read.
    """
    opened = view.opened
    known = [since for row in opened if (since := _unread_since(planner.aged(view, row), created_millis))]
    if opened and not known:
        return None
    return max((now_millis - since for since in known), default=0)


@dataclass
class ServiceTime:
    """The time by the service's clock, as `readTo` and positions have it. The driver's own clock may be an hour off.

    It advances from each listing of the shards by the monotonic clock. A listing counts from when it is first seen here, so this time may be late by
    until it is asked.
    """

    clock: Callable[[], float] = time.monotonic
    _listed: int = 0
    _seen: float = 0.0

    def now(self, listed_millis: int) -> int:
        """Epoch milliseconds; `listed_millis` is the service's time of the last listing."""
        if listed_millis != self._listed:
            self._listed, self._seen = listed_millis, self.clock()
        return listed_millis + round((self.clock() - self._seen) * 1000)


def near(view: TableView, retention_millis: int, now_millis: int, created_millis: int = 0, finished: frozenset[str] = frozenset()) -> str | None:
    """The warning (docs/interfaces.md) while any shard has used up most of the retention, but those of which a run with an end owes nothing more."""
    opened = [planner.aged(view, row) for row in view.opened if row.id not in finished]
    shares = [(used(row, retention_millis, now_millis, created_millis), row) for row in opened]
    late = sorted((share, row.id, row.read_to or row.end.millis or 0) for share, row in shares if share > NEAR)
    if not late:
        return None
    share, shard, read_to = late[-1]
    others = f" and {len(late) - 1} more" if len(late) > 1 else ""
    return (
        f"{shard}{others} read up to {iso_time(read_to)}, {share:.0%} of the {retention_millis / 3_600_000:g} h that the stream keeps "
        "records have passed since: raise its retention or the number of executors, or unread records expire"
    )


def iso_time(millis: int) -> str:
    """Epoch milliseconds as ISO 8601, in whole seconds."""
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.UTC).isoformat(timespec="seconds")


# -- overtaken ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loss:
    """A bound range that is not what it was, mostly because its oldest records have expired; `left` is what is there now."""

    row: ShardRow
    left: Fetched

    def __str__(self) -> str:
        return f"{self.row.id}: {self.what}"

    @property
    def what(self) -> str:
        """What is lost, without the shard's id."""
        row = self.row
        if not expired(row, self.left):
            were = "is" if row.records == 1 else "are"
            now = f"{were} read as {self.left.records} from {self.left.first} now"
            return f"the {counted(row.records, 'record')} from {row.first} to {row.end}, which {now}"
        return f"{row.records - self.left.records} of the {counted(row.records, 'record')} from {row.first} to {row.end}"


def expired(row: ShardRow, left: Fetched) -> bool:
    """Whether a range has lost its oldest records and nothing else."""
    return left.first != row.first and left.records < row.records


def settle(consumer: Consumer, client: KinesisClient, source: Replays, accepted: int | None) -> tuple[Loss, ...]:
    """Looks whether a batch that an earlier epoch had begun can still be read, before it is issued.

    Args:
        consumer: ready, and before its first batch.
        client: the stream, for small looks.
        source: reads a range again.
        accepted: the number of the batch whose loss a person has accepted, if any.

    Raises:
        DataLost: it cannot, and the loss was not accepted.
    """
    plan = planner.next_batch(consumer.view)
    lost = tuple(losses(plan.rows, client, source)) if plan.replay else ()
    if lost and accepted != plan.number:
        raise DataLost(_procedure(consumer, plan, lost))
    if plan.replay and accepted == plan.number:
        looked_at = {loss.row.id for loss in lost}
        lost += tuple(differing([row for row in plan.rows if row.id not in looked_at], source))
    consumer.know(*(_forfeited(consumer, plan, loss) for loss in lost))
    return lost


def _forfeited(consumer: Consumer, plan: BatchPlan, loss: Loss) -> ShardRow:
    why = "expired before" if expired(loss.row, loss.left) else "otherwise than before"
    note = f"accepted as lost, {why} batch {plan.number} was processed: {loss.what}"
    left = RangeLeft(loss.left.first, loss.left.records, loss.left.size, note)
    return forfeit(consumer.store, consumer.epoch, loss.row, left)


def _procedure(consumer: Consumer, plan: BatchPlan, lost: tuple[Loss, ...]) -> str:
    named = "; ".join(str(loss) for loss in lost[:NAMED]) + (f"; and {counted(len(lost) - NAMED, 'more shard')}" if len(lost) > NAMED else "")
    key = f"({consumer.row.consumer_id if consumer.row else ''}, {plan.number})"
    return (
        f"batch {plan.number} was begun and never finished, and since then a part of it has gone from the stream, mostly because it expired: "
        f"{named}. "
        f"If your sink has stored the batch {key}, or you can do without these records, continue with what is left. "
        f"To do so, set acceptLossOfBatch to {plan.number} in the driver's configuration (on Kubernetes: kubectl annotate the KinesisConsumer with "
        f"sluice.dev/accept-loss={plan.number}). It is good for this batch only. Nothing was changed so far"
    )


def losses(rows: Iterable[ShardRow], client: KinesisClient, source: Replays) -> Iterator[Loss]:
    """The ranges whose first record is gone. One or two small calls a shard; a range is read only when its first record is missing.

    Raises:
        ReplayShort: a range was not read to its end, though its first record is there after all.
    """
    bound = [row for row in rows if row.first is not None]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="retention") as threads:
        there = threads.map(lambda row: holds_first(client, row), bound)
        for row in [row for row, first in zip(bound, there, strict=True) if not first]:
            if (left := _left(source, row)) is not None:
                yield Loss(row, left)


def differing(rows: Iterable[ShardRow], source: Replays) -> Iterator[Loss]:
    """The ranges that are not read as they were bound. Every range is read: to be asked for where a person has accepted that.

    The oldest records expire first. So a range that differs although its first record is there was counted in another way, by another version.

    Raises:
        ReplayShort: a range was not read to its end.
    """
    for row in rows:
        if row.first is not None and (left := _left(source, row)) is not None:
            yield Loss(row, left)


def holds_first(client: KinesisClient, row: ShardRow) -> bool:
    """Whether the first record of a bound range is still in the stream: then all of it is, for the oldest expire first."""
    try:
        iterator: str | None = client.get_iterator(row.id, Position("AFTER", sequence=row.first, sub=-1))
        while iterator is not None:
            page = client.get_records(row.id, iterator, 1)
            if len(page.records):
                return page.records.sequence[0] == row.first
            if not page.behind_millis:
                return False
            iterator = page.next_iterator
    except ShardNotFound:
        return False
    return False


def _left(source: Replays, row: ShardRow) -> Fetched | None:
    """What is left of a range, or None when all of it is there after all."""
    try:
        source.replay(BoundRange.of(row))
    except ReplayShort as short:
        left = short.left
        if left is not None and not (short.met or expired(row, left)):
            raise
        return left or Fetched(row.id, row.start, row.end, columns=RecordColumnSet())
    return None
