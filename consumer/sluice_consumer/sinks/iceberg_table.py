"""An Iceberg table as `once.MarkedTable`, over Iceberg's Java API.

The mark is a tag, `sluice-<consumer>-<batch>`: snapshots that a tag names do not expire, and to remove a tag that is gone fails. Iceberg applies all
changes of a transaction again when another writer was faster, so the condition is looked at again, too. Rows are staged on a branch.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sluice_consumer.sinks.once import NONE, MarkMoved

CONSUMER, BATCH, ATTEMPT = "sluice.consumer", "sluice.batch", "sluice.attempt"
FOR_EVER = 2**63 - 1
MOVED = ("ValidationException", "IllegalArgumentException", "CommitStateUnknownException", "CommitFailedException")
"""Iceberg's words for a tag that is gone, for one that exists, for a lost reply, and for too many faster writers."""


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

    def mark(self, consumer: str) -> int | None:
        """See `MarkedTable`."""
        self._table.refresh()
        return max((batch for batch, _ in self._marks(consumer)), default=None)

    def begin(self, consumer: str) -> None:
        """See `MarkedTable`. A tag names a snapshot, so a table without any gets an empty one."""
        work = self._table.newTransaction()
        if work.table().currentSnapshot() is None:
            work.newAppend().commit()
        self._tag(work.manageSnapshots(), tag(consumer, NONE), work.table().currentSnapshot().snapshotId()).commit()
        try:
            work.commitTransaction()
        except (Py4JJavaError, PySparkException) as error:
            if self.mark(consumer) is None:
                raise
            del error  # another attempt began

    def stage(self, consumer: str, batch: int) -> Callable[[int], None]:
        """See `MarkedTable`."""
        branch, attempt = f"sluice-{consumer}", uuid.uuid4().hex
        self._table.refresh()
        if branch not in self._table.refs():
            self._table.manageSnapshots().createBranch(branch).commit()
        writer = self.frame.writeTo(f"{self._name}.`branch_{branch}`")
        for name, value in ((CONSUMER, consumer), (BATCH, str(batch)), (ATTEMPT, attempt)):
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()
        self._table.refresh()
        staged = next(s for s in self._table.snapshots() if s.summary().get(ATTEMPT) == attempt)
        return lambda seen: self._publish(staged, (consumer, batch), seen)

    def _publish(self, staged: Any, key: tuple[str, int], seen: int) -> None:
        consumer, batch = key
        work = self._table.newTransaction()
        append = work.newAppend()
        for file in staged.addedDataFiles(self._table.io()):
            append.appendFile(file)
        append.set(CONSUMER, consumer).set(BATCH, str(batch)).commit()
        try:
            self._move(work, key, seen)
            work.commitTransaction()
        except (Py4JJavaError, PySparkException) as error:
            if name_of(error) in MOVED:
                raise MarkMoved(f"{self._name}: batch {batch} of {consumer} was not added after mark {seen}: {cause(error)}") from error
            raise

    def _move(self, work: Any, key: tuple[str, int], seen: int) -> None:
        """The mark, and the branch, which must not keep old files alive."""
        consumer, batch = key
        snapshot = work.table().currentSnapshot().snapshotId()
        refs = work.manageSnapshots().removeTag(tag(consumer, seen))
        for other in [found for found, _ in self._marks(consumer) if found < seen]:
            refs = refs.removeTag(tag(consumer, other))
        self._tag(refs, tag(consumer, batch), snapshot).replaceBranch(f"sluice-{consumer}", snapshot).commit()

    def _tag(self, refs: Any, name: str, snapshot: int) -> Any:
        return refs.createTag(name, snapshot).setMaxRefAgeMs(name, FOR_EVER)

    def _marks(self, consumer: str) -> Iterator[tuple[int, str]]:
        head = f"sluice-{consumer}-"
        for name, ref in self._table.refs().items():
            if name.startswith(head) and name[len(head) :].isdigit() and ref.isTag():
                yield int(name[len(head) :]), name


def tag(consumer: str, batch: int) -> str:
    """The name of a mark."""
    return f"sluice-{consumer}-{batch}"


def name_of(error: Exception) -> str:
    """The class of Java's exception; PySpark gives some of them classes of its own, by the same name."""
    return str(error.java_exception.getClass().getSimpleName()) if isinstance(error, Py4JJavaError) else type(error).__name__


def cause(error: Exception) -> str:
    """The first line of what Java or Spark says."""
    told = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return told.splitlines()[0] if told else type(error).__name__
