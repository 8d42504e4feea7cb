"""How a refused migration can continue: the options to add to the same command, for a person to decide. Pure.

Each is tried first: with it, the problem is gone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.attributes import SHARD_ID, UnknownAttribute
from sluice_checkpoints.formats.reader import LISTED, Problem
from sluice_checkpoints.migrate.overrides import SourceScan, understand
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.migrate.stream_check import Compared
from sluice_checkpoints.plurals import counted
from sluice_checkpoints.position import END, TRIM_HORIZON

PLACES = "=trim-horizon (or =END, or =SEQUENCE, the number of the last record that was read)"
NAMED = 3  # shards in one line of advice
SENTENCES = {
    "ignoreAttributes": "If no position depends on these attributes",
    "places": "To set yourself where a shard starts",
    "ignoreRows": "If these rows are no positions of this stream",
}


def for_rows(source: SourceScan, choices: Choices, problems: Sequence[Problem]) -> str:
    """For rows that were refused, the first ten of them; "" where only the source itself can be corrected."""
    found = dict.fromkeys(way for problem in problems[:LISTED] if problem.row is not None and (way := _way(source, choices, problem)))
    return "".join(_told(field, [option for kind, option in found if kind == field]) for field in SENTENCES)


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
        found = understand(source, choices)
    except Refused:
        return False
    compared = Compared(found.reading, found.snapshot, source.stream, source.shards, choices.places)
    return all((left.table, left.row) != (problem.table, problem.row) for left in (*found.reading.problems, *compared.contradictions()))


def _told(field: str, options: Sequence[str]) -> str:
    shown = [option.replace(PLACES, "=…") if number else option for number, option in enumerate(options)]
    return f". {SENTENCES[field]}, run the same command again with {' '.join(shown)} (in the resource: spec.migrateFrom.{field})" if options else ""


def placing(shards: Iterable[str]) -> str:
    """For shards whose position the source does not contain; "" for none."""
    ids = list(dict.fromkeys(shards))
    rest = [f"and so on for {len(ids) - NAMED} more"] if len(ids) > NAMED else []
    return _told("places", [*(f"--place {i}{PLACES}" for i in ids[:NAMED]), *rest])


def if_others_agree(agreeing: int, way_on: str) -> str:
    """For rows that cannot be of the stream: `agreeing` is how many others have a possible position."""
    if not agreeing:
        return ". No other row has a position that fits this stream"
    fits = "has a position that fits" if agreeing == 1 else "have positions that fit"
    return f". {counted(agreeing, 'other row')} {fits} this stream{way_on}"
