"""Accounts for every record of a consumer whose positions were moved: once in each pass, and again only what a reset named. Pure.

Batch numbers never go back, so the last batch before each reset divides the deliveries into passes. In a pass each shard continues, record by record,
from its front. A reset puts the front where it was before its target, by the sink alone: records from there on come again, and no other. The sink
has to have what its plan says was read before it. So nothing that is lost at the end of a pass is made good by the next one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sluice_lab.scenario.account import Delivered, Record

OLDEST = "trimHorizon"
PREFIX = "reset/"  # of the rows of a plan (docs/protocol.md)


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """A reset that was carried out.

    Attributes:
        after: the last batch before it.
        batch: each shard went back to where it was in front of this batch. None: to its oldest record.
        ends: of the shards that it moved, the last record that was read before it, with its index in an aggregate, if it has one; None: all were.
    """

    id: str
    after: int
    batch: int | None = None
    ends: Mapping[str, tuple[int, int | None] | None] = field(default_factory=dict)


class Flaw(StrEnum):
    """What can be wrong with a record in a pass."""

    MISSING = "missing"
    AGAIN = "again in the same pass, or from before the reset's target"
    UNEXPECTED = "never produced"
    EARLY = "before its parent's end"


@dataclass(frozen=True)
class PassAccount:
    """What was found.

    Attributes:
        wrong: by pass, which counts from 1, and fault: the numbers of the records.
        reached: after each batch, how many records of all shards are behind their fronts.
        again: deliveries beyond a record's first.
    """

    resets: tuple[CarriedOut, ...]
    wrong: Mapping[tuple[int, Flaw], tuple[int, ...]]
    reached: Mapping[int, int]
    again: int

    @property
    def problems(self) -> list[str]:
        """One for each pass and fault."""
        return [f"pass {number}: {len(found)} {fault}, {list(found[:5])}" for (number, fault), found in sorted(self.wrong.items())]


@dataclass
class _Reading:
    """Where each shard is: the number of its records that are behind its front."""

    order: Mapping[str, Sequence[Record]]
    parents: Mapping[str, Iterable[str]]
    fronts: Counter[str] = field(default_factory=Counter)
    kept: dict[int, Counter[str]] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    wrong: defaultdict[tuple[int, Flaw], list[int]] = field(default_factory=lambda: defaultdict(list))
    number: int = 1

    def __post_init__(self) -> None:
        self.place = {record: place for records in self.order.values() for place, record in enumerate(records)}

    def keep(self, batch: int) -> None:
        """Remember where all are in front of a batch."""
        self.kept[batch] = self.fronts.copy()

    def reset(self, reset: CarriedOut) -> None:
        """Another pass begins, once the sink has all that was read in this one."""
        for shard, end in reset.ends.items():
            records = self.order.get(shard, ())
            read = sum(1 for record in records if end is None or _is_read(record, *end))
            self._note(Flaw.MISSING, *records[self.fronts[shard] : read])
        self.fronts = Counter() if reset.batch is None else self.kept[reset.batch].copy()
        self.number += 1

    def batch(self, number: int, records: Sequence[Record]) -> None:
        """The records of a batch, in the order of their delivery."""
        before = self.fronts.copy()
        for record in records:
            self._deliver(record, before)
        self.reached[number] = self.fronts.total()

    def _deliver(self, record: Record, before: Mapping[str, int]) -> None:
        place, shard = self.place.get(record), record.shard
        if place is None:
            self._note(Flaw.UNEXPECTED, record)
            return
        if place < self.fronts[shard]:
            self._note(Flaw.AGAIN, record)
            return
        self._note(Flaw.MISSING, *self.order[shard][self.fronts[shard] : place])
        if not all(self._is_over(parent, before) for parent in self.parents.get(shard, ())):
            self._note(Flaw.EARLY, record)
        self.fronts[shard] = place + 1

    def _is_over(self, shard: str, fronts: Mapping[str, int]) -> bool:
        """Whether all of a shard was delivered, and all in front of it: it may hold nothing itself."""
        parents = self.parents.get(shard, ())
        return fronts[shard] >= len(self.order.get(shard, ())) and all(self._is_over(parent, fronts) for parent in parents)

    def end(self) -> None:
        """What no shard has reached is missing."""
        for shard, records in self.order.items():
            self._note(Flaw.MISSING, *records[self.fronts[shard] :])

    def _note(self, fault: Flaw, *records: Record) -> None:
        if records:
            self.wrong[self.number, fault] += [record.n for record in records]


def compare(
    produced: Iterable[Record], delivered: Sequence[Delivered], parents: Mapping[str, Iterable[str]], resets: Iterable[CarriedOut]
) -> PassAccount:
    """Go through all deliveries, batch by batch.

    Args:
        produced: every record that was produced.
        delivered: by batch, then by row in the batch's files.
        parents: of each shard that has some.
        resets: that were carried out, in any order.
    """
    order: defaultdict[str, list[Record]] = defaultdict(list)
    for record in sorted(produced, key=lambda record: record.position):
        order[record.shard].append(record)
    reading, done = _Reading(order, parents), tuple(sorted(resets, key=lambda reset: (reset.after, reset.id)))
    for _, _, step in sorted(_steps(reading, delivered, done), key=lambda step: step[:2]):
        step()
    reading.end()
    again = len(delivered) - len({each.record for each in delivered})
    wrong = {key: tuple(sorted(numbers)) for key, numbers in reading.wrong.items()}
    return PassAccount(done, wrong, reading.reached, again)


def _steps(reading: _Reading, delivered: Sequence[Delivered], resets: Sequence[CarriedOut]) -> Iterable[tuple[int, int, Callable[[], None]]]:
    """Each batch, then the resets after it, then what is in front of the next one."""
    batches: defaultdict[int, list[Record]] = defaultdict(list)
    for each in delivered:
        batches[each.batch].append(each.record)
    for number, records in batches.items():
        yield number, 0, lambda number=number, records=records: reading.batch(number, records)  # type: ignore[misc]
    for reset in resets:
        yield reset.after, 1, lambda reset=reset: reading.reset(reset)  # type: ignore[misc]
    for target in {reset.batch for reset in resets} - {None}:
        yield target - 1, 2, lambda target=target: reading.keep(target)  # type: ignore[misc, operator]


def _is_read(record: Record, sequence: int, sub: int | None) -> bool:
    found = record.position
    return found.sequence < sequence or (found.sequence == sequence and (sub is None or found.sub <= sub))


def carried_out(rows: Iterable[Mapping[str, Any]]) -> list[CarriedOut]:
    """The resets in the rows of a checkpoint table, as DynamoDB's API gives them."""
    plans: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["id"]["S"].startswith(PREFIX):
            plans[row["id"]["S"].removeprefix(PREFIX).rpartition("/")[0]].append(row)
    return [_carried_out(id_, found) for id_, found in plans.items()]


def _carried_out(id_: str, rows: Sequence[Mapping[str, Any]]) -> CarriedOut:
    head = next(row for row in rows if row["id"]["S"].endswith("/0"))
    to = head["result"]["M"]["to"]["S"]
    batch = None if to == OLDEST else int(to.removeprefix("batch "))
    moves = [move["M"] for row in rows for move in row.get("shards", {"L": []})["L"]]
    ends = {move["id"]["S"]: _read_up_to(move["end"]["M"]) for move in moves if move["end"]["M"]["at"]["S"] in {"AFTER", "END"}}
    return CarriedOut(id_, int(head["committed"]["N"]), batch, ends)


def _read_up_to(end: Mapping[str, Any]) -> tuple[int, int | None] | None:
    """The last record in front of a position; None: it is behind all."""
    if end["at"]["S"] == "END":
        return None
    return int(end["sequence"]["S"]), int(end["sub"]["N"]) if "sub" in end else None
