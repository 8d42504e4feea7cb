"""From another system's rows to one row of ours a shard. Pure: same input, same plan; `--dry-run` prints it (docs/migration.md, step 4).

Every shard of the source and of the stream gets a position with a reason (`placement`). If one has none, the whole plan is refused and names it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sluice_checkpoints.formats.reader import Reading, SourceShard, refuse_all
from sluice_checkpoints.migrate.lineage import Lineage
from sluice_checkpoints.migrate.overrides import if_others_agree, placing
from sluice_checkpoints.migrate.placement import RULES, Choices, Placement, PlacementCase, problem_with
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.rows import Child, Item, ShardRow
from sluice_checkpoints.stream.model import Shard, ShardList


@dataclass(frozen=True, slots=True)
class Planned:
    """One shard of the plan: what the source stores (None: it has no row), the verdict on it, and the row to write."""

    stored: str | None
    verdict: Placement
    row: ShardRow

    @property
    def id(self) -> str:
        """The shard's id."""
        return self.row.id


@dataclass(frozen=True)
class MigrationPlan:
    """All shards in the order of their ids, and the warnings."""

    shards: tuple[Planned, ...]
    warnings: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the rows."""
        return digest_of(planned.row for planned in self.shards)

    @property
    def counts(self) -> dict[str, int]:
        """How many shards start where, and how many may have lost records."""
        by_kind = Counter(planned.row.start.at for planned in self.shards)
        names = {"AFTER": "after", "END": "end", "TRIM_HORIZON": "trimHorizon", "TIMESTAMP": "timestamp"}
        return {name: by_kind[at] for at, name in names.items()} | self.risks

    @property
    def risks(self) -> dict[str, int]:
        """How many shards are read again from an earlier position, and how many may have lost records."""
        return {"readAgain": sum(p.verdict.again for p in self.shards), "possiblyLost": sum(p.verdict.lost for p in self.shards)}


def digest_of(rows: Iterable[ShardRow]) -> str:
    """SHA-256 (hex) of rows, in the order of their ids."""
    lines = (json.dumps(_plain(row.to_item()), sort_keys=True) for row in sorted(rows, key=lambda row: row.id))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _plain(value: object) -> object:
    match value:
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case frozenset():
            return sorted(value)
        case _:
            return value


@dataclass(frozen=True)
class PlanInput:
    """What is planned for: the source's rows, the shards of the stream (listed *after* the rows were read), and what an earlier try has written."""

    reading: Reading
    stream: ShardList
    source: str
    earlier: frozenset[str] = field(default_factory=frozenset)


def plan(observed: PlanInput, choices: Choices) -> MigrationPlan:
    """The plan.

    Raises:
        Refused: a row cannot be of this stream, or a shard has no row and nothing says where it starts. All of them are named.
    """
    rows = {row.id: row for row in observed.reading.shards}
    shards = {shard.id: shard for shard in observed.stream.shards}
    lineage = Lineage(rows, shards)
    cases = list(_cases(observed, choices, rows, shards, lineage))
    verdicts, problems = _judge(cases)
    refuse_all(f"table {observed.source} does not say where every shard of the stream starts", problems, _way_on(cases))
    planned = tuple(_planned(i, rows.get(i), verdict, lineage) for i, verdict in verdicts.items())
    return MigrationPlan(planned, (*observed.reading.notes, *_warnings(planned, rows)))


def _cases(
    observed: PlanInput, choices: Choices, rows: Mapping[str, SourceShard], shards: Mapping[str, Shard], lineage: Lineage
) -> Iterable[PlacementCase]:
    below = lineage.below(rows)
    above = lineage.above(i for i, row in rows.items() if row.stored.progress or row.stored.refused)
    missing = lineage.missing_rows(rows, shards)
    for i in sorted(rows.keys() | shards.keys() | observed.earlier):
        reading = observed.reading
        yield PlacementCase(i, rows.get(i), shards.get(i), choices, reading.finished_rows_vanish, reading.rowless, i in below, i in above, missing)


def _judge(cases: Iterable[PlacementCase]) -> tuple[dict[str, Placement], list[str]]:
    verdicts: dict[str, Placement] = {}
    problems: list[str] = []
    for case in cases:
        verdict = next((v for rule in RULES if (v := rule(case))), None)
        if problem := problem_with(case.row, case.shard):
            problems.append(f"row {case.id}: {problem}")
        elif verdict is None:
            problems.append(f"{case.id} has no row and follows no shard that has one; give --unstarted trim-horizon or --unstarted now")
        else:
            verdicts[case.id] = verdict
    return verdicts, problems


def _way_on(cases: Iterable[PlacementCase]) -> str:
    """For numbers that cannot be of the stream: do the others fit?"""
    places = [case for case in cases if case.row and case.shard and case.row.stored.progress]
    wrong = [case.id for case in places if problem_with(case.row, case.shard)]
    numbers = [case.id for case in places if case.row and case.row.stored.position != END]
    return if_others_agree(len({*numbers} - {*wrong}), placing(wrong)) if wrong else ""


def _planned(shard_id: str, row: SourceShard | None, verdict: Placement, lineage: Lineage) -> Planned:
    followers = sorted(lineage.children.get(shard_id, ()))
    children = tuple(Child(i, lineage.parents[i]) for i in followers) if verdict.position == END else None
    parents = lineage.parents.get(shard_id, frozenset())
    return Planned(
        stored=row.stored.text if row else None,
        verdict=verdict,
        row=ShardRow(shard_id, start=verdict.position, end=verdict.position, parents=parents, children=children),
    )


def _warnings(planned: Iterable[Planned], rows: Mapping[str, SourceShard]) -> Iterable[str]:
    known = set()
    for shard in planned:
        known.add(shard.id)
        if shard.verdict.warning:
            yield f"{shard.id}: {shard.verdict.warning}"
        yield from (f"{shard.id}: {note}" for note in (rows[shard.id].notes if shard.id in rows else ()))
    for row in rows.values():
        for child in sorted(row.children - known):
            yield f"{child}: follows {row.id} in the source, but has no row there and is not in the stream: its records, if it had any, are lost"


def as_document(planned: Planned) -> Item:
    """One line of `--dry-run --json`."""
    return {
        "shard": planned.id,
        "stored": planned.stored,
        "planned": planned.row.start.to_map(),
        "why": planned.verdict.why,
        "readAgain": planned.verdict.again,
        "possiblyLost": planned.verdict.lost,
    }
