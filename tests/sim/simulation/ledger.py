"""The observer: sees every row written, every record emitted and every batch kept by the sink, and says which invariant broke.

It shares no code with what it judges: positions are compared as the stored maps are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_checkpoints.memory import MemoryTable

Rank = tuple[int, int]
Content = Mapping[str, tuple[str, ...]]
INVARIANTS = (
    "no_record_lost",
    "no_record_twice_in_an_idempotent_sink",
    "order_within_shard",
    "silent_before_next",
    "positions_only_grow",
    "batch_content_is_fixed",
    "nothing_deleted",
    "progress",
)


def rank(position: Mapping[str, Any]) -> Rank:
    """Where a stored position is in its shard, to compare."""
    kind = ("TRIM_HORIZON", "TIMESTAMP", "AFTER", "END").index(position["at"])
    return kind, int(position.get("sequence", position.get("millis", 0)))


@dataclass(frozen=True, slots=True)
class Emission:
    """A task hands the records of a shard over. `paused`: it stood still for longer than the claim of silence bears."""

    generation: int
    batch: int
    shard: str
    key: str
    attempt: int
    records: tuple[str, ...]
    paused: bool = False


@dataclass
class Sink:
    """A sink that is idempotent by (consumer, batch): what it kept of each batch."""

    batches: dict[tuple[str, int], Content] = field(default_factory=dict)

    def has(self, pair: tuple[str, int]) -> bool:
        """Whether the batch was kept."""
        return pair in self.batches


class Ledger:
    """Everything that became visible outside a process, and the claims about it."""

    def __init__(self, table: MemoryTable, parents: Mapping[str, tuple[str, ...]], owed: Mapping[str, list[str]]) -> None:
        self.table, self.parents, self.owed = table, parents, owed
        self.broken: list[tuple[str, str]] = []
        self.sink = Sink()
        self.bound: dict[tuple[str, int], Mapping[str, Any]] = {}
        self.emitted: dict[tuple[str, int], tuple[str, ...]] = {}
        self._last: dict[str, dict[str, Any]] = {}
        self._speakers: dict[str, list[Emission]] = defaultdict(list)

    def breaks(self, invariant: str, how: str) -> None:
        """Writes a violation down."""
        self.broken.append((invariant, how))

    def of(self, invariant: str) -> list[str]:
        """The violations of one invariant."""
        return [how for name, how in self.broken if name == invariant]

    # -- rows ----------------------------------------------------------------------------------------------------------------------

    def wrote(self, keys: list[str]) -> None:
        """Some rows were written, in one step."""
        if gone := self._last.keys() - self.table.rows.keys():
            self.breaks("nothing_deleted", f"rows {sorted(gone)} are gone")
        for key in sorted(keys):
            row, former = self.table.rows[key], self._last.get(key)
            self._last[key] = row
            if key == "consumer":
                self._consumer(row, former or {})
            elif key.startswith("shard/"):
                self._shard(key.removeprefix("shard/"), row, former)
            elif former is not None and former != row:
                self.breaks("nothing_deleted", f"{key} was written over")

    def _consumer(self, row: Mapping[str, Any], former: Mapping[str, Any]) -> None:
        if former.get("consumerId", row["consumerId"]) != row["consumerId"]:
            self.breaks("nothing_deleted", "the consumer's id changed")
        for name in ("generation", "committed"):
            if row[name] < former.get(name, 0):
                self.breaks("positions_only_grow", f"{name} {former[name]} -> {row[name]}")
        for number in range(former.get("committed", 0) + 1, row["committed"] + 1):
            self._committed(row["consumerId"], number)

    def _committed(self, consumer: str, number: int) -> None:
        kept = self.sink.batches.get((consumer, number), {})
        for (shard, batch), row in self.bound.items():
            if batch == number and row["records"] != len(kept.get(shard, ())):
                self.breaks("no_record_lost", f"batch {number} is committed; {shard}: {row['records']} bound, the sink has {kept.get(shard)}")

    @property
    def committed(self) -> int:
        """The last committed batch."""
        return int(self._last.get("consumer", {}).get("committed", 0))

    def _shard(self, shard: str, row: dict[str, Any], former: dict[str, Any] | None) -> None:
        if former is None:
            return
        content = {name: row.get(name) for name in ("start", "end", "first", "records", "children")}
        before = {name: former.get(name) for name in content}
        if row["generation"] < former["generation"] or row["batch"] < former["batch"]:
            self.breaks("positions_only_grow", f"{shard} went back: {former} -> {row}")
        if row["batch"] == former["batch"]:
            if content != before:
                self.breaks("batch_content_is_fixed", f"{shard} in batch {row['batch']}: {before} -> {content}")
            return
        if row["start"] != former["end"] or rank(row["end"]) < rank(row["start"]):
            self.breaks("positions_only_grow", f"{shard}: {former['end']} -> ({row['start']}, {row['end']}]")
        if row["batch"] <= self.committed:
            self.breaks("batch_content_is_fixed", f"{shard} was bound in batch {row['batch']}, which is committed")
        self.bound[shard, row["batch"]] = row

    # -- records -------------------------------------------------------------------------------------------------------------------

    def emit(self, emission: Emission) -> None:
        """A task handed records over."""
        where = emission.shard, emission.batch
        first = self.emitted.setdefault(where, emission.records)
        if where not in self.bound or self.bound[where]["records"] != len(emission.records) or first != emission.records:
            self.breaks("batch_content_is_fixed", f"{emission}: bound {self.bound.get(where)}, emitted before {first}")
        if emission.paused:
            return
        speakers = self._speakers[emission.shard]
        for other in speakers:
            same_task = (other.generation, other.key) == (emission.generation, emission.key)
            if other.generation > emission.generation or (same_task and other.attempt > emission.attempt):
                self.breaks("silent_before_next", f"{emission} after {other}")
        speakers.append(emission)

    def keep(self, pair: tuple[str, int], content: Content) -> None:
        """The sink keeps a batch, if it has none of this number."""
        if self.sink.has(pair):
            return
        have = {sequence for shards in self.sink.batches.values() for sequences in shards.values() for sequence in sequences}
        if twice := have & {sequence for sequences in content.values() for sequence in sequences}:
            self.breaks("no_record_twice_in_an_idempotent_sink", f"batch {pair[1]} brings {sorted(twice)} again")
        for shard, sequences in content.items():
            self._in_order(shard, sequences, have)
        self.sink.batches[pair] = content

    def _in_order(self, shard: str, sequences: tuple[str, ...], have: set[str]) -> None:
        before = [s for s in have if s in set(self.owed.get(shard, ()))]
        numbers = [*([max(map(int, before))] if before else []), *map(int, sequences)]
        if numbers != sorted(numbers):
            self.breaks("order_within_shard", f"{shard}: {numbers}")
        for parent in self.parents.get(shard, ()) if sequences else ():
            if missing := [s for s in self.owed.get(parent, ()) if s not in have]:
                self.breaks("order_within_shard", f"records of {shard} before {missing} of its parent {parent}")

    def missing(self) -> dict[str, list[str]]:
        """What is owed and not in the sink, by shard."""
        have = {sequence for shards in self.sink.batches.values() for sequences in shards.values() for sequence in sequences}
        return {shard: left for shard, owed in self.owed.items() if (left := [s for s in owed if s not in have])}
