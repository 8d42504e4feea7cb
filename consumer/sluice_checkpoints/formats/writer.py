"""What Sluice knows of a format to write its rows. Pure.

A writer gets a shard's position and the row that was there ({}: none). It returns the whole row as its system would leave it after a clean stop:
without an owner, so that a worker may take it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluice_checkpoints.formats.attributes import Types
from sluice_checkpoints.formats.changes import RowChange, same_rows
from sluice_checkpoints.formats.reader import Format
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem
from sluice_checkpoints.position import Position
from sluice_checkpoints.stream.model import Shard


@dataclass(frozen=True, slots=True)
class RowContent:
    """What a row is to say.

    Attributes:
        shard: as ListShards returns it.
        children: ids of the shards that follow it; known to the stream, whether it has ended or not.
        position: None: it was not started, and the format has no word for that.
        stream: the stream's name.
        millis: the time of the export, epoch milliseconds, for attributes that say when a row was written.
        last: the sequence number to store beside the end of a shard; None: none is known, or wanted.
    """

    shard: Shard
    children: tuple[str, ...]
    position: Position | None
    stream: str
    millis: int
    last: str | None = None


@dataclass(frozen=True)
class FormatWriter:
    """What is to be known of a format to write it.

    Attributes:
        reader: reads what this writes.
        keys: the key of a table that is made.
        types: every attribute that a shard's row may have.
        row: the whole row, but for what `stamp` says; a row that is equal is not written again.
        stamp: attributes that change with every write.
        supports_subsequence: it stores positions inside an aggregate.
        supports_shard_end: it has a value for a shard that is finished.
        reads_past_ends: some of its workers go by the number of a finished shard, and not by that word.
        unstarted: the setting its consumers need so that a shard that was not started begins at its beginning; None: the format has a word for it.
        conflicting_suffixes: endings of names of tables that must not exist, with the reason.
        table_suffix: what the name of a table that is made must end with.
    """

    reader: Format
    keys: KeySchema
    types: Types
    row: Callable[[RowContent, RawItem], RawItem]
    stamp: Callable[[RowContent, RawItem], RawItem]
    supports_subsequence: bool = False
    supports_shard_end: bool = True
    reads_past_ends: bool = False
    unstarted: str | None = None
    conflicting_suffixes: tuple[tuple[str, str], ...] = ()
    table_suffix: str = ""

    @property
    def name(self) -> str:
        """The format's name."""
        return self.reader.name

    def change(self, place: RowContent, before: RawItem | None, *, anew: bool = False) -> RowChange | None:
        """What has to be written so that the row says `place`; None: it does. `anew`: nothing of what it says counts."""
        had = {} if anew else before or {}
        wanted = self.row(place, had)
        if before is not None and same_rows(wanted, before):
            return None
        return RowChange(self.keys, before, {**wanted, **self.stamp(place, had)}, frozenset(self.types))
