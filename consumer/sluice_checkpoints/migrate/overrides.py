"""What a user says of a source beside its rows: attributes and rows to leave out of account, and where a shard starts. Pure.

It is the way on where a row is refused, for the source itself is never written. A word that no source can mean is refused here, too.

If a source is refused, these options are how its migration can continue. Which ones is for a person to decide; each is tried first: with it, the
problem is gone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import lease_expiry
from sluice_checkpoints.formats.reader import LISTED, SHARD_ID, Format, Problem, Reading, SourceShard, StoredPosition, UnknownAttribute
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate.placement import Choices, contradiction, place_text, problem_with
from sluice_checkpoints.migrate.stream_check import Compared, row_labels
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import ShardList, ShardPlace, StreamIdentity

PLACES = "=trim-horizon (or =END, or =SEQUENCE, the number of the last record that was read)"
NAMED = 3  # shards in one line of advice
SENTENCES = {
    "ignoreAttributes": "If no position depends on these attributes",
    "places": "To set yourself where a shard starts",
    "ignoreRows": "If these rows are no positions of this stream",
}


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

    A row of a shard that the user placed still counts, because it informs about other shards as well. If it was refused, it proves nothing.

    Raises:
        Refused: the user's word cannot be: an attribute that the format reads, the row of a listed shard, a shard that is not there, a position
            outside its shard.
    """
    _check_attributes(source, choices.ignored)
    _check_rows(source, choices.rows)
    snapshot = source.snapshot.without(choices.ignored, choices.rows)
    reading = source.format.read(snapshot, source.stream)
    reading = replace(reading, problems=(*reading.problems, *lease_expiry.unreadable(snapshot)))
    contradictions = Compared(reading, snapshot, source.stream, source.shards).contradictions() if choices.places else []
    for shard_id in sorted(choices.places):
        reading = _placed(reading, source, shard_id, contradictions, choices.places[shard_id])
    replaced = frozenset(label for shard_id in choices.places for label in row_labels(shard_id, source.stream))
    notes = (*reading.notes, *_left_out(source.snapshot, choices))
    return Understood(replace(reading, notes=notes), snapshot.without(frozenset(), replaced))


def _check_attributes(source: SourceScan, ignored: AbstractSet[str]) -> None:
    if read := sorted(ignored & source.format.attributes):
        raise Refused(f"--ignore-attribute {read[0]}: format {source.format.name} reads it; only attributes that it does not know can be ignored")


def _check_rows(source: SourceScan, ignored: AbstractSet[str]) -> None:
    for shard in source.shards.shards:
        if rows := sorted(ignored & {*row_labels(shard.id, source.stream)}):
            raise Refused(f"--ignore-row {rows[0]}: it is the row of a shard that stream {source.stream.name} lists; use --place {shard.id}=")


def _left_out(snapshot: Snapshot, choices: Choices) -> Iterator[str]:
    for name in sorted(choices.ignored):
        rows = sum(name in item for items in snapshot.tables.values() for item in items)
        yield f"attribute {name} of {counted(rows, 'row')} was ignored (--ignore-attribute)" if rows else f"--ignore-attribute {name}: no row has it"
    labels = {label for _, label in snapshot.by_label}
    for row in sorted(choices.rows):
        yield f"row {row} was ignored (--ignore-row)" if row in labels else f"--ignore-row {row}: there is no such row"


def _placed(reading: Reading, source: SourceScan, shard_id: str, contradictions: Sequence[Problem], place: Position) -> Reading:
    """The reading without what was refused of this shard's row, and with a note of the user's word."""
    rows, labels = {row.id: row for row in reading.shards}, row_labels(shard_id, source.stream)
    unread = [problem for problem in reading.problems if problem.row in labels]
    _check_place(source, shard_id, place, known=shard_id in rows or bool(unread))
    wrong = refused(reading, source, shard_id, contradictions)
    was = rows.get(shard_id) or SourceShard(shard_id, StoredPosition(""))
    if wrong:
        rows[shard_id] = was = replace(was, stored=StoredPosition(f"what was refused: {'; '.join(wrong)}", refused=True), children=frozenset())
    stored = was.stored.text or "nothing: it has no row"
    note = f"{shard_id}: starts at {place}, as --place says; the source says {stored}"
    problems = tuple(p for p in reading.problems if p not in unread)
    return replace(reading, shards=tuple(rows[i] for i in sorted(rows)), problems=problems, notes=(*reading.notes, note))


def refused(reading: Reading, source: SourceScan, shard_id: str, contradictions: Sequence[Problem]) -> list[str]:
    """What speaks against a shard's row. `contradictions`: what no table of the stream can hold (`Compared`)."""
    labels = row_labels(shard_id, source.stream)
    row = next((row for row in reading.shards if row.id == shard_id), None)
    problem = row and problem_with(row, source.shards.get(shard_id))
    return [str(each.why) for each in (*reading.problems, *contradictions) if each.row in labels] or ([problem] if problem else [])


def _check_place(source: SourceScan, shard_id: str, place: Position, *, known: bool) -> None:
    option, shard = f"--place {shard_id}={place_text(place)}", source.shards.get(shard_id)
    if shard_id > (youngest := max((shard.id for shard in source.shards.shards), default="")):
        raise Refused(
            f"{option}: the newest shard of stream {source.stream.name} is {youngest}, and with a row a later one of this id would not be read; leave"
            " the row out (--ignore-row)"
        )
    if shard is None and not known:
        raise Refused(f"{option}: stream {source.stream.name} has no such shard, and the source has no row of it")
    if shard is None and place != END:
        raise Refused(
            f"{option}: stream {source.stream.name} does not list this shard any more, so none of its records can be read. Run the same command again"
            f" with --place {shard_id}=END, or without this --place (in the resource: spec.migrateFrom.places)"
        )
    if problem := contradiction(place, shard):
        raise Refused(f"{option}: {problem}")


def check_chosen(choices: Choices, answers: Mapping[ShardPlace, str]) -> None:
    """Raises `Refused` if Kinesis did not accept a number that the user chose; `answers` has the reason for each position it did not accept."""
    for (shard_id, number), why in answers.items():
        if shard_id in choices.places:
            raise Refused(f"--place {shard_id}={number}: Kinesis does not accept this number in this shard: {why}")


def for_rows(source: SourceScan, choices: Choices, problems: Sequence[Problem]) -> str:
    """For rows that were refused, the first ten of them; "" where only the source itself can be corrected."""
    ways = dict.fromkeys(way for problem in problems[:LISTED] if problem.row is not None and (way := _way(source, choices, problem)))
    return "".join(_way_on(field, [option for kind, option in ways if kind == field]) for field in SENTENCES)


def _way(source: SourceScan, choices: Choices, problem: Problem) -> tuple[str, str] | None:
    return next(((field, option) for field, option, tried in _ways(choices, problem) if _leads_on(source, tried, problem)), None)


def _ways(choices: Choices, problem: Problem) -> Iterator[tuple[str, str, Choices]]:
    """What may lead on, the mildest first: field of the resource, options of the command, and the choices with them."""
    row = str(problem.row)
    if isinstance(problem.why, UnknownAttribute):
        names = problem.why.names
        option = " ".join(f"--ignore-attribute {shlex.quote(name)}" for name in names)
        yield "ignoreAttributes", option, replace(choices, ignored=choices.ignored | {*names})
    for shard in SHARD_ID.findall(row)[-1:]:
        for place, option in ((TRIM_HORIZON, f"--place {shard}{PLACES}"), (END, f"--place {shard}=END")):
            yield "places", option, replace(choices, places={**choices.places, shard: place})
    yield "ignoreRows", f"--ignore-row {shlex.quote(row)}", replace(choices, rows=choices.rows | {row})


def _leads_on(source: SourceScan, choices: Choices, problem: Problem) -> bool:
    try:
        understood = understand(source, choices)
    except Refused:
        return False
    compared = Compared(understood.reading, understood.snapshot, source.stream, source.shards, choices.places)
    return all((left.table, left.row) != (problem.table, problem.row) for left in (*understood.reading.problems, *compared.contradictions()))


def _way_on(field: str, options: Sequence[str]) -> str:
    shown = [option.replace(PLACES, "=…") if number else option for number, option in enumerate(options)]
    return f". {SENTENCES[field]}, run the same command again with {' '.join(shown)} (in the resource: spec.migrateFrom.{field})" if options else ""


def placing(shards: Iterable[str]) -> str:
    """For shards whose position the source does not contain; "" for none."""
    ids = list(dict.fromkeys(shards))
    rest = [f"and so on for {len(ids) - NAMED} more"] if len(ids) > NAMED else []
    return _way_on("places", [*(f"--place {i}{PLACES}" for i in ids[:NAMED]), *rest])


def if_others_agree(agreeing: int, way_on: str) -> str:
    """For rows that cannot be of the stream: `agreeing` is how many others have a possible position."""
    if not agreeing:
        return ". No other row has a position that fits this stream"
    fits = "has a position that fits" if agreeing == 1 else "have positions that fit"
    return f". {counted(agreeing, 'other row')} {fits} this stream{way_on}"
