"""Sluice's own table as a source: to rename a consumer, or to move its table to another account or region.

A shard's position is the `end` of its last range if that batch is committed, else the `start`. An open batch comes again with another number and
under another consumer id, so a sink that skips what it has stored does not recognise it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import (
    FormatReader,
    OtherStream,
    Problem,
    Reading,
    SourceShard,
    StoredPosition,
    UnknownAttribute,
    UnrelatedRow,
    read_rows,
)
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot, TableKey
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.encoding import item_from_wire
from sluice_checkpoints.protocol.folding import EndedShards, is_late
from sluice_checkpoints.protocol.lease import MARGIN
from sluice_checkpoints.protocol.row_kinds import KINDS, check, kind_of, understood
from sluice_checkpoints.protocol.rows import ACTIVE, CONSUMER, ENDED_PREFIX, RESETTING, SHARD_PREFIX, ConsumerRow, Item, ShardRow
from sluice_checkpoints.stream.model import StreamIdentity

KEY = (TableKey("id", "HASH", "S"),)


class Sluice(FormatReader):
    """The reader. A released consumer is idle at once, any other when its lease has run out."""

    name = "sluice"
    keys = "id HASH S"
    key = KEY
    attributes = frozenset({"id"}.union(*(kind.types for kind in KINDS)))

    def quiet_seconds(self, snapshot: Snapshot) -> float:
        """What the holder promised, by the rule of a take-over; 0 if it released the lease."""
        row = _consumer(snapshot)
        return 0.0 if row is None or row.released else row.lease_millis / 1000 * MARGIN

    def read(self, snapshot: Snapshot, stream: StreamIdentity) -> Reading:
        row = _consumer(snapshot)
        folded = _folded(snapshot)
        rows = read_rows(snapshot, snapshot.table, lambda item: _shard(item, row.committed if row else 0, folded))
        over = (SourceShard(shard, StoredPosition(str(END), END)) for shard in sorted(folded - {shard.id for shard in rows.shards}))
        whole = (Problem(snapshot.table, None, why) for why in refusals(row, snapshot.table, stream))
        return Reading(self.name, (*rows.shards, *over), rows.skipped, problems=(*whole, *rows.problems))


def _consumer(snapshot: Snapshot) -> ConsumerRow | None:
    row = next((item for item in snapshot.rows if item["id"]["S"] == CONSUMER), None)
    return ConsumerRow.from_item(_plain(row)) if row else None


def _plain(item: RawItem) -> Item:
    """The row without type tags.

    Raises:
        Refused: it is not one that Sluice writes.
    """
    return understood(f"no row that Sluice writes: row {item['id']['S']}", lambda: check(item_from_wire(item))) or {}


def refusals(row: ConsumerRow | None, table: str, stream: StreamIdentity) -> Iterator[Refused]:
    """Why a table of Sluice's cannot be given up to another table, by its row `consumer`; the first reason first."""
    if row is None:
        yield Refused(f"table {table} has no consumer row: its bootstrap or migration is not complete; run `sluice migrate` again, or its consumer")
        return
    if (row.stream_arn, row.stream_created) != (stream.arn, stream.created_millis):
        yield OtherStream(
            f"table {table} is of stream {row.stream_arn} (created {row.stream_created}), not of {stream.arn} (created {stream.created_millis})"
        )
    if row.state == RESETTING:
        yield Refused(f"table {table}: the reset {row.reset} is not complete; run `sluice reset` with this id once more, or start its consumer once")
    elif row.state != ACTIVE:
        yield Refused(f"table {table} is {row.state}: its positions went back to another system, which may have moved on; migrate that one's table")
    if not row.bootstrapped:
        yield Refused(f"table {table} was never bootstrapped to its end: not every shard has a row; start its consumer once")
    if row.letters:
        yield Refused(
            f"table {table} names dead letters that are not published ({row.letters[0]}); start its consumer once with its onError.deadLetter"
        )


def _folded(snapshot: Snapshot) -> frozenset[str]:
    """Shards that are over, by the rows that can be read; the others are problems of the reading."""
    folded: set[str] = set()
    for item in snapshot.rows:
        if item["id"]["S"].startswith(ENDED_PREFIX):
            with contextlib.suppress(Refused):
                folded |= EndedShards.from_item(_plain(item)).shards
    return frozenset(folded)


def _shard(item: RawItem, committed: int, folded: frozenset[str]) -> SourceShard:
    kind = kind_of(item["id"]["S"])
    if kind is None:
        raise Refused(f"unknown row {item['id']['S']!r}")
    if unknown := kind.unknown(item):
        text = f"unknown attribute {', '.join(unknown)}: did a later version write this row? Then migrate with that version's image"
        raise UnknownAttribute(unknown, text)
    if kind.key == ENDED_PREFIX:
        _plain(item)
    if kind.key != SHARD_PREFIX:
        raise UnrelatedRow(kind.name)
    row = ShardRow.from_item(_plain(item))
    if is_late(row, folded):
        raise UnrelatedRow("its shard was folded before")
    stands = row.committed_position(committed)
    again = f"batch {row.batch} was open and not committed" if row.batch > committed else None
    children = frozenset(child.id for child in row.children or ())
    return SourceShard(row.id, StoredPosition(str(stands), stands, again=again), row.parents, children)
