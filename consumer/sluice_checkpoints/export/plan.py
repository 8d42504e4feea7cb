"""From Sluice's rows to another system's, on the way back. Pure: same input, same plan; `--dry-run` prints it (docs/migration.md, "The way back").

Reading a record twice is safe, skipping one is not. A position that a format cannot store becomes an earlier one with a warning, or is refused. A row
that is ahead of Sluice is never set back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sluice_checkpoints.formats.reader import SourceShard, refuse_all
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot
from sluice_checkpoints.formats.writer import FormatWriter, RowChange, RowContent
from sluice_checkpoints.migrate.placement import problem_with
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Item, ShardRow
from sluice_checkpoints.stream.model import Shard, ShardList, ShardPlace, StreamIdentity

WRITTEN, UNCHANGED, KEPT = "written", "unchanged", "kept"


@dataclass(frozen=True)
class SluiceSide:
    """Sluice's side.

    Attributes:
        rows: by shard id.
        committed: the last batch that was committed.
        passed: positions whose records are no longer in the stream.
    """

    rows: Mapping[str, ShardRow]
    committed: int
    passed: frozenset[ShardPlace] = frozenset()

    def inside(self, shards: ShardList) -> list[ShardPlace]:
        """The records that a shard is inside of."""
        stands = ((shard.id, self.rows[shard.id].committed_position(self.committed)) for shard in shards.shards if shard.id in self.rows)
        return [(i, position.sequence) for i, position in stands if position.sequence and position.sub is not None]


@dataclass(frozen=True)
class TargetSide:
    """The other side: who writes it, all its rows, what those of this stream say, and warnings about the table as a whole.

    `refused`: shards whose rows a migration would refuse, and that were placed instead. Nothing of their rows stays.
    """

    writer: FormatWriter
    snapshot: Snapshot
    shards: Mapping[str, SourceShard]
    notes: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Expressible:
    """What the other system can store of a shard.

    Attributes:
        committed: the position of the shard in Sluice's table.
        position: what the format can store of that; None: it has no value for a shard that was not started.
        why: for people.
        last: of a finished shard, the number from which nothing is left to read; None: not known, or not wanted.
        warnings: what a person should look at.
        again: records that were processed are processed again.
        problem: why nothing may be said at all.
    """

    committed: Position
    position: Position | None
    why: str
    warnings: tuple[str, ...] = ()
    again: bool = False
    problem: str | None = None
    last: str | None = None

    def but(self, position: Position | None, why: str, warning: str, *, again: bool) -> Expressible:
        """Something else, with one warning more."""
        return replace(self, position=position, why=why, warnings=(*self.warnings, warning), again=self.again or again)


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """One shard of the plan.

    Attributes:
        was: what the other table stores; None: it has no row.
        outcome: WRITTEN, UNCHANGED (it says so already) or KEPT (it is further).
        change: for WRITTEN, the write.
    """

    shard: str
    expressible: Expressible
    was: str | None
    outcome: str
    change: RowChange | None = None

    @property
    def position_text(self) -> str:
        """What the other table says in the end, for people."""
        if self.outcome == KEPT:
            return str(self.was)
        return str(self.expressible.position) if self.expressible.position else "not started"


@dataclass(frozen=True)
class ExportPlan:
    """All shards of the stream in the order of their ids, and the warnings."""

    entries: tuple[PlannedShard, ...]
    warnings: tuple[str, ...]

    @property
    def changes(self) -> tuple[RowChange, ...]:
        """What has to be written."""
        return tuple(entry.change for entry in self.entries if entry.change)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are written, unchanged and kept, and for how many shards records come again."""
        outcomes = Counter(entry.outcome for entry in self.entries)
        again = sum(entry.expressible.again for entry in self.entries if entry.outcome != KEPT)
        return {name: outcomes[name] for name in (WRITTEN, UNCHANGED, KEPT)} | {"readAgain": again}


def plan(sluice: SluiceSide, target: TargetSide, stream: StreamIdentity, shards: ShardList) -> ExportPlan:
    """The plan.

    Raises:
        Refused: a row of the other table cannot be of this stream, or its format cannot store a position. All of them are named.
    """
    refuse_all(f"table {target.snapshot.table} cannot be written", list(_strange(target, shards)))
    rows = _by_shard(target, stream)
    stored = [(shard, _expressible(sluice, shard, target.writer)) for shard in shards.shards]
    places = {shard.id: _place(shard, expressible, stream, shards) for shard, expressible in stored}
    entries = tuple(_entry(expressible, target, places[shard.id], rows.get(shard.id)) for shard, expressible in stored)
    problems = [f"{e.shard}: {e.expressible.problem}" for e in entries if e.expressible.problem and e.outcome != KEPT]
    refuse_all(f"positions cannot be written in the format {target.writer.name}", problems)
    return ExportPlan(entries, (*target.notes, *_warnings(entries), *_gone(sluice, shards)))


def _strange(target: TargetSide, shards: ShardList) -> Iterable[str]:
    for row in target.shards.values():
        if problem := problem_with(row, shards.get(row.id)):
            yield f"row {row.id}: {problem}"


def _place(shard: Shard, expressible: Expressible, stream: StreamIdentity, shards: ShardList) -> RowContent:
    children = tuple(child.id for child in shards.children_of(shard.id))
    return RowContent(shard, children, expressible.position, stream.name, shards.date_millis, expressible.last)


def _by_shard(target: TargetSide, stream: StreamIdentity) -> dict[str, RawItem]:
    key = {"streamName": stream.name}
    *first, last = [name.name for name in target.writer.keys]
    rows = (row for row in target.snapshot.rows if all(row[name].get("S") == key[name] for name in first))
    return {row[last]["S"]: row for row in rows}


# -- what a format can store ------------------------------------------------------------------------------------------------------


def _expressible(sluice: SluiceSide, shard: Shard, writer: FormatWriter) -> Expressible:
    row = sluice.rows.get(shard.id)
    if row is None:
        return _in_words(Expressible(TRIM_HORIZON, TRIM_HORIZON, "no row yet: its parents are not finished"), writer)
    stands = row.committed_position(sluice.committed)
    expressible = Expressible(stands, stands, "its position")
    if row.batch > sluice.committed and row.start != row.end:
        warning = f"batch {row.batch} is open: its records come again"
        expressible = expressible.but(stands, f"where open batch {row.batch} starts", warning, again=True)
    if stands == END:
        return _ended(replace(expressible, why="finished"), row, shard, writer)
    if not writer.supports_subsequence and (shard.id, stands.sequence) in sluice.passed and stands.sequence:
        why, warning = "behind its record: that is no longer in the stream", f"is inside a record ({stands}) that is no longer in the stream"
        expressible = expressible.but(Position.after(stands.sequence), why, warning, again=False)
    return _in_words(expressible, writer)


def _in_words(expressible: Expressible, writer: FormatWriter) -> Expressible:
    """Everything but the end of a shard."""
    if expressible.position and expressible.position.sub is not None and not writer.supports_subsequence:
        inside = f"its position is inside an aggregate ({expressible.committed}), which {writer.name} cannot store"
        return replace(expressible, problem=f"{inside}; let the consumer finish that record first")
    if expressible.committed.at == "TIMESTAMP":
        why = f"{writer.name} cannot store a start time ({expressible.committed}); the shard starts at TRIM_HORIZON and reads earlier records as well"
        expressible = expressible.but(TRIM_HORIZON, "not started", why, again=True)
    if expressible.position == TRIM_HORIZON and writer.unstarted:
        expressible = expressible.but(None, "not started", f"was not started, which {writer.name} cannot store: {writer.unstarted}", again=False)
    return expressible


def _ended(expressible: Expressible, row: ShardRow, shard: Shard, writer: FormatWriter) -> Expressible:
    """The shard's last sequence number, instead of the end or beside it. Emulators give one below the first, which is none."""
    if writer.supports_shard_end and not writer.reads_past_ends:
        return expressible
    if shard.ending_sequence and int(shard.ending_sequence) >= int(shard.starting_sequence):
        return _by_number(expressible, Position.after(shard.ending_sequence), writer, "finished: its last sequence number")
    if row.start.at == "AFTER" and row.start.sub is None:
        expressible = _by_number(expressible, row.start, writer, "finished: the start of its last range")
        return expressible.but(expressible.position, expressible.why, f"its last sequence number is unknown: {_again(row.start)}", again=True)
    warning = f"is finished, which {writer.name} cannot store, and its last sequence number is unknown: all its records come again"
    return expressible.but(END if writer.supports_shard_end else None, "finished", f"{warning}; {writer.unstarted}", again=True)


def _by_number(expressible: Expressible, position: Position, writer: FormatWriter, why: str) -> Expressible:
    return replace(expressible, position=END if writer.supports_shard_end else position, why=why, last=position.sequence)


def _again(start: Position) -> str:
    return f"records after {start.sequence} come again"


# -- against what is there ---------------------------------------------------------------------------------------------------------


def _entry(expressible: Expressible, target: TargetSide, place: RowContent, before: RawItem | None) -> PlannedShard:
    row = target.shards.get(place.shard.id)
    was = row.stored.text if row else None
    if row and row.stored.position and _rank(row.stored.position) > _rank(expressible.position):
        return PlannedShard(place.shard.id, expressible, was, KEPT)
    if row and expressible.problem and row.stored.position == expressible.committed:
        return PlannedShard(place.shard.id, replace(expressible, problem=None, why="that row says so in its own words"), was, UNCHANGED)
    change = target.writer.change(place, before, anew=place.shard.id in target.refused)
    if change is None and expressible.position == END:
        expressible = replace(expressible, warnings=(), again=False, why="finished: that row says so already")
    return PlannedShard(place.shard.id, expressible, was, WRITTEN if change else UNCHANGED, change)


def _rank(position: Position | None) -> tuple[int, int, float]:
    """Positions of one shard in their order; a position inside a record is before the end of that record."""
    if position is None or position.sequence is None:
        return (2 if position == END else 0), 0, 0
    return 1, int(position.sequence), float("inf") if position.sub is None else position.sub


def _warnings(entries: Iterable[PlannedShard]) -> Iterable[str]:
    for entry in entries:
        if entry.outcome == KEPT:
            yield f"{entry.shard}: is at {entry.was} there, which is further than Sluice's {entry.expressible.committed}: that row is kept"
        else:
            yield from (f"{entry.shard}: {warning}" for warning in entry.expressible.warnings)


def _gone(sluice: SluiceSide, shards: ShardList) -> Iterable[str]:
    for row in sorted(sluice.rows.values(), key=lambda row: row.id):
        if shards.get(row.id) is None and row.committed_position(sluice.committed) != END:
            yield f"{row.id}: is no longer in the stream, so it is left out; what came after {row.committed_position(sluice.committed)} is lost"


def as_document(entry: PlannedShard) -> Item:
    """One line of `--json`."""
    return {
        "shard": entry.shard,
        "stands": entry.expressible.committed.to_map(),
        "said": entry.position_text,
        "was": entry.was,
        "outcome": entry.outcome,
        "why": entry.expressible.why,
        "readAgain": entry.expressible.again and entry.outcome != KEPT,
    }
