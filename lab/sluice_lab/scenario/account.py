"""Accounts for every record: what was produced, what KCL had processed, what Sluice delivered. Pure.

The reply to a put is the truth about what was produced: shard, sequence number, and index within an aggregate. The content of the sink at the end is
the truth about what was delivered. Neither comes from Sluice.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class RecordPosition:
    """The position of a user record in its shard. `sub` is its index in an aggregate; 0 outside an aggregate."""

    sequence: int
    sub: int


@dataclass(frozen=True, slots=True)
class Record:
    """A user record: the number it carries, its shard and its position."""

    n: int
    shard: str
    position: RecordPosition


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record in the sink, and the batch that delivered it."""

    record: Record
    batch: int


@dataclass(frozen=True, slots=True)
class ShardAccount:
    """The counts of one shard, or of all shards.

    Attributes:
        missing: neither processed by KCL nor delivered.
        repeated: deliveries beyond a record's first.
        reprocessed: delivered although KCL had processed them.
        unexpected: delivered, but never produced.
        out_of_order: deliveries after a later record of the shard; and records of a parent and its child in one batch, or in reverse order.
    """

    produced: int = 0
    processed: int = 0
    delivered: int = 0
    missing: int = 0
    repeated: int = 0
    reprocessed: int = 0
    unexpected: int = 0
    out_of_order: int = 0

    @property
    def right(self) -> bool:
        """Nothing missing, nothing twice, everything in order."""
        return not (self.missing or self.repeated or self.reprocessed or self.unexpected or self.out_of_order)

    def __add__(self, other: "ShardAccount") -> "ShardAccount":
        return ShardAccount(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Account:
    """The account of each shard. `missing_numbers` and `repeated_numbers` name the records to search for."""

    shards: Mapping[str, ShardAccount]
    missing_numbers: tuple[int, ...] = ()
    repeated_numbers: tuple[int, ...] = ()

    @property
    def total(self) -> ShardAccount:
        """All shards together."""
        return sum(self.shards.values(), ShardAccount())

    @property
    def right(self) -> bool:
        """Whether every record was delivered once and in order. An account without deliveries is not right."""
        return self.total.right and self.total.delivered > 0


@dataclass(frozen=True)
class AccountInput:
    """What an account is made from.

    Attributes:
        produced: every record that was produced.
        checkpoints: the position of the last record that KCL had processed, of each shard that it had read.
        delivered: in the order of delivery: by batch, then by row in the batch's files.
        parents: of each shard that has some.
    """

    produced: Sequence[Record]
    checkpoints: Mapping[str, RecordPosition]
    delivered: Sequence[Delivered]
    parents: Mapping[str, Iterable[str]]

    def processed(self, record: Record) -> bool:
        """Whether KCL had processed a record."""
        checkpoint = self.checkpoints.get(record.shard)
        return checkpoint is not None and record.position <= checkpoint


def compare(found: AccountInput) -> Account:
    """Compare deliveries with what was produced, record by record."""
    known = set(found.produced)
    times = Counter(each.record for each in found.delivered)
    missing = [record for record in found.produced if not times[record] and not found.processed(record)]
    shards = {record.shard for record in known} | {record.shard for record in times}
    out_of_order = _out_of_order(found)
    counts: dict[str, Counter[str]] = {shard: Counter() for shard in shards}
    for record in known:
        counts[record.shard] += Counter(produced=1, processed=found.processed(record))
    for record, count in times.items():
        reprocessed = record in known and found.processed(record)
        counts[record.shard] += Counter(delivered=count, repeated=count - 1, reprocessed=reprocessed, unexpected=record not in known)
    for record in missing:
        counts[record.shard]["missing"] += 1
    return Account(
        shards={shard: ShardAccount(**counts[shard], out_of_order=out_of_order[shard]) for shard in sorted(shards)},
        missing_numbers=tuple(sorted(record.n for record in missing)),
        repeated_numbers=tuple(sorted(record.n for record, count in times.items() if count > 1 or (record in known and found.processed(record)))),
    )


def _out_of_order(found: AccountInput) -> Counter[str]:
    """The deliveries of each shard that are out of order."""
    counts: Counter[str] = Counter()
    furthest: dict[str, RecordPosition] = {}
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    children = _children(found.parents)
    for delivered in found.delivered:
        shard, position, batch = delivered.record.shard, delivered.record.position, delivered.batch
        begun.setdefault(shard, batch)
        ended[shard] = max(batch, ended.get(shard, batch))
        late = any(begun.get(child, batch + 1) <= batch for child in children[shard])
        early = any(ended.get(parent, batch - 1) >= batch for parent in found.parents.get(shard, ()))
        counts[shard] += late or early or position < furthest.get(shard, position)
        furthest[shard] = max(position, furthest.get(shard, position))
    return counts


def _children(parents: Mapping[str, Iterable[str]]) -> Mapping[str, list[str]]:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for shard, above in parents.items():
        for parent in above:
            children[parent].append(shard)
    return children


def behind(last: Mapping[str, RecordPosition], shown: Mapping[str, Any]) -> list[str]:
    """The shards whose checkpoint has not reached the last record produced on them.

    Args:
        last: of each shard, the position of the last record to consume.
        shown: shard → checkpoint, as in `python -m sluice_checkpoints show`.
    """
    return sorted(shard for shard, position in last.items() if not _reached(shown.get(shard, {}), position))


def _reached(checkpoint: Mapping[str, Any], position: RecordPosition) -> bool:
    match checkpoint:
        case {"at": "END"}:
            return True
        case {"at": "AFTER", "sequence": sequence, "sub": sub}:
            return RecordPosition(int(sequence), int(sub)) >= position
        case {"at": "AFTER", "sequence": sequence}:
            return int(sequence) >= position.sequence
        case _:
            return False
