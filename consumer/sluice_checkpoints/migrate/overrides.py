"""What a user says of a source beside its rows: attributes to leave out of account, and where a shard starts. Pure.

It is the way on where a row is refused, for the source itself is never written. A word that no source can mean is refused here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import Format, Reading, SourceShard, StoredPosition
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate.placement import Choices, contradiction, place_text
from sluice_checkpoints.migrate.stream_check import row_labels
from sluice_checkpoints.position import Position
from sluice_checkpoints.stream.model import ShardList, ShardPlace, StreamIdentity


@dataclass(frozen=True, slots=True)
class SourceScan:
    """A source as it was scanned, its format, and the stream that it is said to be of."""

    format: Format
    snapshot: Snapshot
    stream: StreamIdentity
    shards: ShardList


@dataclass(frozen=True, slots=True)
class Understood:
    """What a source says together with its user. `snapshot` has only the rows and attributes that still count."""

    reading: Reading
    snapshot: Snapshot


def understand(source: SourceScan, choices: Choices) -> Understood:
    """Reads a source. What it refuses are problems of the reading.

    Raises:
        Refused: the user's word cannot be: an attribute that the format reads, a shard that is not there, a place outside its shard.
    """
    _check_attributes(source, choices.ignored)
    snapshot = source.snapshot.without(choices.ignored)
    reading = source.format.read(snapshot, source.stream)
    for shard_id in sorted(choices.places):
        reading = _placed(reading, source, shard_id, choices.places[shard_id])
    replaced = frozenset(label for shard_id in choices.places for label in row_labels(shard_id, source.stream))
    notes = (*reading.notes, *_left_out(source.snapshot, choices.ignored))
    return Understood(replace(reading, notes=notes), snapshot.without(frozenset(), replaced))


def _check_attributes(source: SourceScan, ignored: AbstractSet[str]) -> None:
    if read := sorted(ignored & source.format.attributes):
        raise Refused(f"--ignore-attribute {read[0]}: format {source.format.name} reads it; only attributes that it does not know can be ignored")


def _left_out(snapshot: Snapshot, ignored: AbstractSet[str]) -> Iterator[str]:
    for name in sorted(ignored):
        rows = sum(name in item for items in snapshot.tables.values() for item in items)
        yield f"attribute {name} of {rows} rows was ignored (--ignore-attribute)" if rows else f"--ignore-attribute {name}: no row has it"


def _placed(reading: Reading, source: SourceScan, shard_id: str, place: Position) -> Reading:
    """The reading with one shard where the user says that it starts, whether its row was understood or not."""
    rows, labels = {row.id: row for row in reading.shards}, row_labels(shard_id, source.stream)
    refused = [problem for problem in reading.problems if problem.row in labels]
    _check_place(source, shard_id, place, known=shard_id in rows or bool(refused))
    said = [f"what was refused: {problem.why}" for problem in refused] or ["nothing: it has no row"]
    was = rows.get(shard_id) or SourceShard(shard_id, StoredPosition(said[0]))
    told = "; ".join(said) if refused else was.stored.text
    note = f"starts at {place}, as --place says; the source says {told}"
    rows[shard_id] = replace(was, stored=StoredPosition(was.stored.text, place), notes=(*was.notes, note))
    return replace(reading, shards=tuple(rows[i] for i in sorted(rows)), problems=tuple(p for p in reading.problems if p not in refused))


def _check_place(source: SourceScan, shard_id: str, place: Position, *, known: bool) -> None:
    option, shard = f"--place {shard_id}={place_text(place)}", source.shards.get(shard_id)
    if shard is None and not known:
        raise Refused(f"{option}: stream {source.stream.name} has no such shard, and the source has no row of it")
    if problem := contradiction(place, shard):
        raise Refused(f"{option}: {problem}")


def check_chosen(choices: Choices, answers: Mapping[ShardPlace, str]) -> None:
    """Raises `Refused` if Kinesis did not accept a number that the user chose; `answers` is why, for each place it did not accept."""
    for (shard_id, number), why in answers.items():
        if shard_id in choices.places:
            raise Refused(f"--place {shard_id}={number}: Kinesis does not accept this number in this shard: {why}")
