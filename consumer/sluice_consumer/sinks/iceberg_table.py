"""An Iceberg table as `once.MarkedTable`, over Iceberg's Java API.

The mark is a tag, `sluice-<consumer>-<batch>`: snapshots that a tag names do not expire. Rows are staged on a branch, on top of `main`.
A transaction of references alone publishes them: it moves `main` to the staged snapshot, and the mark. Iceberg does not apply it again if anybody
committed since it began, so the mark is looked at in it. And there is no file that it deletes when it fails: the catalog may have carried it out,
and refused it when Iceberg's client sent it again (apache/iceberg#12818). A plain append recognises its own snapshot then.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import lineage
from sluice_consumer.sinks.conflicts import CommitConflict
from sluice_consumer.sinks.edge import chain
from sluice_consumer.sinks.iceberg_history import ATTEMPT, BATCH, CONSUMER, TableHistory, branch, staging, tag, undone
from sluice_consumer.sinks.lineage import Mark
from sluice_consumer.sinks.once import MarkMoved, Publish, StagedLost

FOR_EVER = 2**63 - 1
MAIN = "main"
FASTER = frozenset({"CommitFailedException", "CommitStateUnknownException"})
"""Iceberg's words for another writer that was faster, and for a lost reply."""
OF_REFS = FASTER | {"ValidationException", "IllegalArgumentException"}
"""And for a tag or branch that is gone, or there already."""


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

    def look(self, consumer: str) -> Mark | None:
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
        """Moves the branch for staging to `main`."""
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
            found = lineage.mark(history, consumer)
            if found is None or found.batch != seen or not found.tagged or found.lost is not None:
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
        found = next((each for each in chain(error) if each.name in names), None)
        if found is None:
            raise
        raise CommitConflict(f"{found.name}: {(found.message.splitlines() or [''])[0]}") from error
