"""An Iceberg table as `once.MarkedTable`, over Iceberg's Java API.

The mark is a tag, `sluice-<consumer>-<batch>`: snapshots that a tag names do not expire. Rows are staged on a branch, on top of `main`.
A transaction of references alone publishes them: it moves `main` to the staged snapshot, and the mark. Iceberg does not apply it again if anybody
committed since it began, so the mark is looked at in it. And there is no file that it deletes when it fails: the catalog may have carried it out,
and refused it when Iceberg's client sent it again (apache/iceberg#12818). A plain append recognises its own snapshot then.

What the table shows of its past is read the same way, and how its owner gets out of a doubt is said here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.conflicts import CommitConflict
from sluice_consumer.sinks.edge import chain
from sluice_consumer.sinks.iceberg import lineage
from sluice_consumer.sinks.iceberg.lineage import LineageSnapshot, Mark
from sluice_consumer.sinks.iceberg.once import MarkMoved, Publish, StagedLost

CONSUMER, BATCH, ATTEMPT = "sluice.consumer", "sluice.batch", "sluice.attempt"
FOR_EVER = 2**63 - 1
MAIN = "main"
FASTER = frozenset({"CommitFailedException", "CommitStateUnknownException"})
"""Iceberg's words for another writer that was faster, and for a lost reply."""
OF_REFS = FASTER | {"ValidationException", "IllegalArgumentException"}
"""And for a tag or branch that is gone, or there already."""


class TableHistory:
    """`lineage.SnapshotLineage` of a table as it was when this was made."""

    def __init__(self, table: Any) -> None:
        self._table, self._known = table, dict[int, LineageSnapshot | None]()
        current = table.currentSnapshot()
        self.main: int | None = current.snapshotId() if current is not None else None

    def snapshot(self, number: int) -> LineageSnapshot | None:
        if number not in self._known:
            java = self._table.snapshot(number)
            self._known[number] = _read(java) if java is not None else None
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


def _read(java: Any) -> LineageSnapshot:
    summary = java.summary()
    consumer, batch = summary.get(CONSUMER), summary.get(BATCH)
    number = int(batch) if batch and str(batch).isdigit() else None
    return LineageSnapshot(java.snapshotId(), java.parentId(), java.sequenceNumber(), consumer, number)


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


class IcebergTable:
    """See the module.

    Attributes:
        frame: the rows that `stage` writes.
    """

    frame: DataFrame

    def __init__(self, spark: SparkSession, name: str, table: Any) -> None:
        self._spark, self._name, self._table = spark, name, table

    @staticmethod
    def load(spark: SparkSession, name: str) -> IcebergTable:
        """A table by the name of its catalog, namespace and its own.

        Raises:
            Py4JJavaError, AnalysisException: there is no such table, or the catalog cannot be asked.
        """
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no such call
        return IcebergTable(spark, name, jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name))  # noqa: SLF001

    @property
    def java(self) -> Any:
        """Iceberg's own object."""
        return self._table

    def read_mark(self, consumer: str) -> Mark | None:
        self._table.refresh()
        return lineage.mark(TableHistory(self._table), consumer)

    def undone(self, consumer: str, batch: int, mark: Mark) -> Refused:
        return undone(self._name, TableHistory(self._table), (consumer, batch), mark)

    def begin(self, consumer: str, batch: int) -> None:
        """See `MarkedTable`. A tag names a snapshot, so a table without any gets an empty one."""
        with _conflicts(OF_REFS):
            if self._table.currentSnapshot() is None:
                self._table.newAppend().commit()
            work = self._table.newTransaction()
            if not lineage.without_tag(lineage.mark(TableHistory(work.table()), consumer), batch):
                return
            _tag(work.manageSnapshots(), tag(consumer, batch), work.table().currentSnapshot().snapshotId()).commit()
            work.commitTransaction()

    def stage(self, consumer: str, batch: int) -> Publish:
        attempt = uuid.uuid4().hex
        self._clear(consumer)
        try:
            with _conflicts(FASTER):
                self._append(consumer, batch, attempt)
            staged = self._staged(consumer, attempt)
        except CommitConflict:
            staged = self._staged(consumer, attempt)  # the reply was lost
            if staged is None:
                raise
        if staged is None:
            raise CommitConflict("the rows that were just staged are gone")

        def publish(seen: int) -> None:
            nonlocal staged
            staged = self._on_main(staged, (consumer, batch))
            self._publish(staged, (consumer, batch), seen)

        return publish

    def _clear(self, consumer: str) -> None:
        with _conflicts(OF_REFS):
            self._table.refresh()
            main, head = TableHistory(self._table).main, self._table.snapshot(staging(consumer))
            if main is None:
                raise CommitConflict(f"{self._name}: it has no snapshot any more")
            if head is None or head.snapshotId() != main:
                refs = self._table.manageSnapshots()
                (refs.createBranch if head is None else refs.replaceBranch)(staging(consumer), main).commit()

    def _append(self, consumer: str, batch: int, attempt: str) -> None:
        writer = self.frame.writeTo(f"{self._name}.`branch_{staging(consumer)}`")
        for name, value in ((CONSUMER, consumer), (BATCH, str(batch)), (ATTEMPT, attempt)):
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()

    def _staged(self, consumer: str, attempt: str) -> Any:
        """The snapshot: the head of the branch, unless another attempt has moved that."""
        self._table.refresh()
        head = self._table.snapshot(staging(consumer))
        if head is not None and head.summary().get(ATTEMPT) == attempt:
            return head
        return next((each for each in self._table.snapshots() if each.summary().get(ATTEMPT) == attempt), None)

    def _on_main(self, staged: Any, key: tuple[str, int]) -> Any:
        """The staged snapshot; if somebody has committed by the last look, another one with the same files on top of that."""
        consumer, batch = key
        if self._table.snapshot(staged.snapshotId()) is None:
            raise StagedLost(f"{self._name}: the staged rows of batch {batch} have expired")
        if staged.parentId() == TableHistory(self._table).main:
            return staged
        files, attempt = list(staged.addedDataFiles(self._table.io())), uuid.uuid4().hex
        self._clear(consumer)
        with _conflicts(OF_REFS):
            append = self._table.newAppend().toBranch(staging(consumer))
            for file in files:
                append.appendFile(file)
            append.set(CONSUMER, consumer).set(BATCH, str(batch)).set(ATTEMPT, attempt).commit()
        return self._staged(consumer, attempt) or staged

    def _publish(self, staged: Any, key: tuple[str, int], seen: int) -> None:
        """In one commit, which no other writer's commit may precede: look at the mark, and move it and `main`."""
        consumer, batch = key
        with _conflicts(OF_REFS):
            work = self._table.newTransaction()
            history = TableHistory(work.table())
            mark = lineage.mark(history, consumer)
            if mark is None or mark.batch != seen or not mark.tagged or mark.lost is not None:
                raise MarkMoved(f"{self._name}: the mark {seen} of {consumer} has moved")
            if history.main != staged.parentId():
                raise CommitConflict(f"{self._name}: another writer has committed since batch {batch} was staged")
            snapshot, refs = staged.snapshotId(), work.manageSnapshots()
            for each in history.tags(consumer):
                refs = refs.removeTag(tag(consumer, each))
            refs = _tag(refs, tag(consumer, batch), snapshot)
            refs = (refs.createBranch if history.branch(consumer) is None else refs.replaceBranch)(branch(consumer), snapshot)
            refs.replaceBranch(MAIN, snapshot).commit()
            work.commitTransaction()


def _tag(refs: Any, name: str, snapshot: int) -> Any:
    return refs.createTag(name, snapshot).setMaxRefAgeMs(name, FOR_EVER)


@contextmanager
def _conflicts(names: frozenset[str]) -> Iterator[None]:
    """Makes a `CommitConflict` of Java's exceptions of these names."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        conflict = next((each for each in chain(error) if each.name in names), None)
        if conflict is None:
            raise
        raise CommitConflict(f"{conflict.name}: {(conflict.message.splitlines() or [''])[0]}") from error
