"""What an Iceberg table shows of its past, over Iceberg's Java API, and how its owner gets out of a doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.lineage import LineageSnapshot, Mark

CONSUMER, BATCH, ATTEMPT = "sluice.consumer", "sluice.batch", "sluice.attempt"


class TableHistory:
    """`lineage.SnapshotLineage` of a table as it was when this was made."""

    def __init__(self, table: Any) -> None:
        self._table, self._known = table, dict[int, LineageSnapshot | None]()
        current = table.currentSnapshot()
        self.main: int | None = current.snapshotId() if current is not None else None

    def snapshot(self, number: int) -> LineageSnapshot | None:
        if number not in self._known:
            found = self._table.snapshot(number)
            self._known[number] = _read(found) if found is not None else None
        return self._known[number]

    def tags(self, consumer: str) -> Mapping[int, int]:
        return {batch: self.refs[tag(consumer, batch)][0] for batch in self._marks(consumer)}

    def branch(self, consumer: str) -> int | None:
        number, is_tag = self.refs.get(branch(consumer), (None, False))
        return None if is_tag else number

    def _marks(self, consumer: str) -> Iterator[int]:
        head = tag(consumer, "")
        for name, (_, is_tag) in self.refs.items():
            if is_tag and name.startswith(head) and name[len(head) :].isdigit():
                yield int(name[len(head) :])

    @cached_property
    def refs(self) -> dict[str, tuple[int, bool]]:
        """Snapshots of all tags and branches by name, and whether each is a tag."""
        return {str(name): (ref.snapshotId(), bool(ref.isTag())) for name, ref in self._table.refs().items()}


def _read(found: Any) -> LineageSnapshot:
    summary = found.summary()
    consumer, batch = summary.get(CONSUMER), summary.get(BATCH)
    number = int(batch) if batch and str(batch).isdigit() else None
    return LineageSnapshot(found.snapshotId(), found.parentId(), found.sequenceNumber(), consumer, number)


def tag(consumer: str, batch: int | str) -> str:
    """The name of a mark."""
    return f"sluice-{consumer}-{batch}"


def branch(consumer: str) -> str:
    """The name of the branch that moves with the mark."""
    return f"sluice-{consumer}"


def staging(consumer: str) -> str:
    """The name of the branch on which a consumer stages. It is no other consumer's `branch` or `tag`."""
    return f"sluice_{consumer}"


def undone(name: str, history: TableHistory, key: tuple[str, int], mark: Mark) -> Refused:
    """The refusal of a table that no longer holds a batch it was given, with both ways out (statements of Iceberg's SQL extensions)."""
    consumer, batch = key
    tags = "".join(f"ALTER TABLE {name} DROP TAG IF EXISTS `{tag(consumer, each)}`; " for each in sorted(history.tags(consumer)))
    catalog, _, table = name.partition(".")
    return Refused(
        f"pipeline.args.table: {name}: batch {mark.batch} of consumer {consumer} was added in snapshot {mark.lost}, and the table no longer holds "
        f"it: main was moved back, or the table was replaced. To continue with the table as it is, and add batch {batch}: "
        f"{tags}ALTER TABLE {name} DROP BRANCH IF EXISTS `{branch(consumer)}`. "
        f"To bring back what the table held: CALL {catalog}.system.set_current_snapshot('{table}', {mark.lost})"
    )
