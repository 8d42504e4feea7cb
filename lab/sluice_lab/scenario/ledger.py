"""What was put, what KCL had done of it, what Sluice delivered: every record accounted for. Pure.

The truth about what was put is the reply to the put: shard, sequence number, and the place within an aggregate. The
truth about what was delivered is what lies in the sink at the end. Neither asks Sluice.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a user record lies in its shard; `sub` is its index in an aggregate, 0 if it came alone."""

    sequence: int
    sub: int


@dataclass(frozen=True, slots=True)
class Record:
    """A user record: the number it carries, and where it lies."""

    n: int
    shard: str
    place: Place


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record in the sink, and the batch that brought it there."""

    record: Record
    batch: int


@dataclass(frozen=True, slots=True)
class Line:
    """The account of one shard, or of all of them.

    Attributes:
        missing: neither processed by KCL nor delivered.
        repeated: deliveries beyond a record's first.
        again: delivered although KCL had processed them.
        strange: delivered, but never put there.
        disorder: deliveries before which a later record of the shard, or of a child of it, had been delivered.
    """

    produced: int = 0
    processed: int = 0
    delivered: int = 0
    missing: int = 0
    repeated: int = 0
    again: int = 0
    strange: int = 0
    disorder: int = 0

    @property
    def right(self) -> bool:
        """Nothing lost, nothing twice, everything in order."""
        return not (self.missing or self.repeated or self.again or self.strange or self.disorder)

    def __add__(self, other: "Line") -> "Line":
        return Line(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Account:
    """A line for each shard; `lost` and `doubled` name the numbers to look for."""

    shards: Mapping[str, Line]
    lost: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()

    @property
    def total(self) -> Line:
        """All shards together."""
        return sum(self.shards.values(), Line())

    @property
    def right(self) -> bool:
        """Whether the story ended well; an account of nothing did not."""
        return self.total.right and self.total.delivered > 0


@dataclass(frozen=True)
class Books:
    """What an account is made from.

    Attributes:
        produced: every record that was put.
        checkpoints: of shards that KCL had read from, the place of the last record it had processed.
        delivered: in the order of delivery: batch by batch, and as the rows lie in the batch's files.
        parents: of each shard that has some.
    """

    produced: Sequence[Record]
    checkpoints: Mapping[str, Place]
    delivered: Sequence[Delivered]
    parents: Mapping[str, Iterable[str]]

    def processed(self, record: Record) -> bool:
        """Whether KCL had processed a record."""
        checkpoint = self.checkpoints.get(record.shard)
        return checkpoint is not None and record.place <= checkpoint


def account(books: Books) -> Account:
    """Compare, record by record, what there should be with what there is."""
    known = set(books.produced)
    times = Counter(found.record for found in books.delivered)
    missing = [record for record in books.produced if not times[record] and not books.processed(record)]
    shards = {record.shard for record in known} | {record.shard for record in times}
    disorder = _disorder(books)
    lines: dict[str, Counter[str]] = {shard: Counter() for shard in shards}
    for record in known:
        lines[record.shard] += Counter(produced=1, processed=books.processed(record))
    for record, count in times.items():
        again = record in known and books.processed(record)
        lines[record.shard] += Counter(delivered=count, repeated=count - 1, again=again, strange=record not in known)
    for record in missing:
        lines[record.shard]["missing"] += 1
    return Account(
        shards={shard: Line(**lines[shard], disorder=disorder[shard]) for shard in sorted(shards)},
        lost=tuple(sorted(record.n for record in missing)),
        doubled=tuple(sorted(record.n for record, count in times.items() if count > 1 or (record in known and books.processed(record)))),
    )


def _disorder(books: Books) -> Counter[str]:
    """Per shard, the deliveries that came too late: a later one of the shard, or one of its child, was there before."""
    found: Counter[str] = Counter()
    furthest: dict[str, Place] = {}
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    children = _children(books.parents)
    for delivered in books.delivered:
        shard, place, batch = delivered.record.shard, delivered.record.place, delivered.batch
        begun.setdefault(shard, batch)
        ended[shard] = max(batch, ended.get(shard, batch))
        late = any(begun.get(child, batch + 1) <= batch for child in children[shard])
        early = any(ended.get(parent, batch - 1) >= batch for parent in books.parents.get(shard, ()))
        found[shard] += late or early or place < furthest.get(shard, place)
        furthest[shard] = max(place, furthest.get(shard, place))
    return found


def _children(parents: Mapping[str, Iterable[str]]) -> Mapping[str, list[str]]:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for shard, above in parents.items():
        for parent in above:
            children[parent].append(shard)
    return children


def behind(last: Mapping[str, Place], shown: Mapping[str, Any]) -> list[str]:
    """The shards whose checkpoint has not reached the last record put there.

    Args:
        last: of each shard, the place of the last record that is to be consumed.
        shown: shard → position, as in `python -m sluice_checkpoints show`.
    """
    return sorted(shard for shard, place in last.items() if not _reached(shown.get(shard, {}), place))


def _reached(position: Mapping[str, Any], place: Place) -> bool:
    match position:
        case {"at": "END"}:
            return True
        case {"at": "AFTER", "sequence": sequence, "sub": sub}:
            return Place(int(sequence), int(sub)) >= place
        case {"at": "AFTER", "sequence": sequence}:
            return int(sequence) >= place.sequence
        case _:
            return False
