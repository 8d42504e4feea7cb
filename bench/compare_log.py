"""What a comparison counts: the producer's own log beside what a consumer noted that it was handed. Pure.

A record is known by its shard and sequence number. A unit is what a consumer hands over at once, a line of its notes: a batch of Sluice, a call of
KCL. A unit counts as handed over although its consumer was killed in it.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Record = tuple[str, int]
"""Shard and sequence number."""


@dataclass(frozen=True)
class Unit:
    """What was handed over at once; `at` in epoch seconds. `run`: which program of a consumer, from 0. `held`: it was killed in it."""

    run: int
    number: int
    at: float
    held: bool
    records: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Window:
    """Records that were put from `begun` to before `ended`, epoch seconds."""

    begun: float
    ended: float

    def of(self, put: Mapping[Record, float]) -> dict[Record, float]:
        return {record: at for record, at in put.items() if self.begun <= at < self.ended}


def parsed(run: int, text: str) -> Iterator[Unit]:
    for line in text.splitlines():
        found = json.loads(line)
        records = {shard: tuple(map(int, sequences)) for shard, sequences in found["records"].items()}
        yield Unit(run, found["unit"], found["at"], found["held"], records)


def handed(units: Iterable[Unit]) -> Counter[Record]:
    return Counter((shard, sequence) for unit in units for shard, sequences in unit.records.items() for sequence in sequences)


def first_times(units: Iterable[Unit]) -> dict[Record, float]:
    found: dict[Record, float] = {}
    for unit in sorted(units, key=lambda unit: unit.at):
        for shard, sequences in unit.records.items():
            for sequence in sequences:
                found.setdefault((shard, sequence), unit.at)
    return found


def account(put: Mapping[Record, float], units: Sequence[Unit]) -> dict[str, int]:
    """Of the records of a log: how many there are, how many were never handed over, and how many more than once."""
    counts = handed(units)
    return {"put": len(put), "missing": sum(record not in counts for record in put), "twice": sum(counts[record] > 1 for record in put)}


def waits(put: Mapping[Record, float], units: Sequence[Unit]) -> list[float]:
    """Seconds from put to handed over, of each record that was."""
    times = first_times(units)
    return [times[record] - at for record, at in put.items() if record in times]


def before_parents(units: Sequence[Unit], parents: Mapping[str, Sequence[str]]) -> int:
    """How many records of children were handed over before the last record of their parents was. `parents` of each child."""
    times = first_times(units)
    ended = {shard: max(at for _, at in found) for shard, found in itertools.groupby(sorted((s, at) for (s, _), at in times.items()), lambda e: e[0])}
    return sum(at < ended.get(parent, at) for (shard, _), at in times.items() for parent in parents.get(shard, ()))


def out_of_order(units: Sequence[Unit]) -> int:
    """How many records were handed over, for the first time, after a later one of their shard."""
    last: dict[str, int] = {}
    seen: set[Record] = set()
    late = 0
    for unit in sorted(units, key=lambda unit: unit.at):
        for shard, sequences in unit.records.items():
            for sequence in (one for one in sequences if (shard, one) not in seen):
                late += sequence < last.get(shard, sequence)
                last[shard] = max(sequence, last.get(shard, sequence))
                seen.add((shard, sequence))
    return late


def replays(units: Sequence[Unit]) -> dict[str, int]:
    """Of the shards whose unit was killed: how many there are, and of how many the next program's first unit has the very same records."""
    held = {shard: records for unit in units if unit.held for shard, records in unit.records.items()}
    again: dict[str, Sequence[int]] = {}
    for unit in sorted((unit for unit in units if unit.run > 0), key=lambda unit: unit.at):
        for shard, records in unit.records.items():
            again.setdefault(shard, records)
    return {"killed": len(held), "same": sum(again.get(shard) == records for shard, records in held.items())}
