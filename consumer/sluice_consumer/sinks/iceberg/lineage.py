"""Which batch of a consumer an Iceberg table holds last, by what the table itself shows (docs/sinks.md, "Iceberg"). Pure.

Three witnesses: a tag for the last batch, a branch, and the properties of snapshots. Each says that a batch was added. Whether the table still holds
it depends on its snapshot: the table's owner may have moved `main` back, or replaced the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

NONE = 0  # batches are numbered from 1


@dataclass(frozen=True)
class LineageSnapshot:
    """One of a table's snapshots.

    Attributes:
        parent: the one that it was made from; None: it is the first of its line.
        order: grows with every commit to the table; 0 in a table of format 1.
        consumer: whose batch it adds, if it adds one.
        batch: that batch, else None.
    """

    id: int
    parent: int | None
    order: int = 0
    consumer: str | None = None
    batch: int | None = None


class SnapshotLineage(Protocol):
    """A table's snapshots, and the names that it has for them.

    Attributes:
        main: the snapshot that readers see; None: the table has none.
    """

    main: int | None

    def snapshot(self, number: int) -> LineageSnapshot | None:
        """One of them; None: it has expired."""
        ...

    def tags(self, consumer: str) -> Mapping[int, int]:
        """Snapshots of the consumer's tags, by the batch that each tag names."""
        ...

    def branch(self, consumer: str) -> int | None:
        """The head of the branch that moves with the consumer's mark; None: there is none."""
        ...


@dataclass(frozen=True)
class Mark:
    """The last batch of a consumer that a table was given.

    Attributes:
        batch: its number, or `NONE`.
        tagged: a tag says so.
        lost: a snapshot that is no longer part of what readers see, and shows that this batch was added; None: the table holds the batch.
    """

    batch: int
    tagged: bool
    lost: int | None = None


def mark(history: SnapshotLineage, consumer: str) -> Mark | None:
    """What the table shows of a consumer; None: nothing, so the consumer is new to it."""
    tags, head = history.tags(consumer), history.branch(consumer)
    last, shown = max(tags, default=None), _published(history, head, consumer)
    branched = shown.batch if shown and shown.batch else NONE
    if last is not None and last >= branched:
        return Mark(last, tagged=True, lost=_lost(history, tags[last]) if last else None)
    if shown is not None:
        return Mark(branched, tagged=False, lost=_lost(history, shown.id))
    published = _published(history, history.main, consumer)
    return Mark(published.batch or NONE, tagged=False) if published else None


def without_tag(seen: Mark | None, batch: int) -> bool:
    """Whether a table shows that its last batch is this one, or `NONE`, and only the tag is missing."""
    shown = seen or Mark(NONE, tagged=False)
    return not shown.tagged and shown.lost is None and shown.batch == batch


def _lost(history: SnapshotLineage, snapshot: int) -> int | None:
    return snapshot if descends(history, snapshot) is False else None


def descends(history: SnapshotLineage, ancestor: int) -> bool | None:
    """Whether `main` is a snapshot or was made from it; None: snapshots in between have expired, and nothing shows that it was not."""
    wanted = history.snapshot(ancestor)
    at = history.main
    while at is not None:
        if at == ancestor:
            return True
        here = history.snapshot(at)
        if here is None:
            return False if at in _ids(history, ancestor) else None
        if wanted and here.order < wanted.order:
            return False
        at = here.parent
    return False


def _published(history: SnapshotLineage, start: int | None, consumer: str) -> LineageSnapshot | None:
    snapshots = (each for each in _line(history, start) if each and each.consumer == consumer and each.batch is not None)
    return next(snapshots, None)


def _line(history: SnapshotLineage, start: int | None) -> Iterator[LineageSnapshot | None]:
    """A snapshot and those that it was made from; None, last, for one that has expired."""
    at = start
    while at is not None:
        here = history.snapshot(at)
        yield here
        at = here.parent if here else None


def _ids(history: SnapshotLineage, start: int) -> set[int]:
    """Those of a line, and of the first in it that has expired."""
    ids, at = set[int](), start if history.snapshot(start) else None
    while at is not None:
        ids.add(at)
        here = history.snapshot(at)
        at = here.parent if here else None
    return ids
