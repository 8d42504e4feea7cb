"""What a Delta table knows of a consumer's batches, over Delta's own library, and whether the table still holds them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks.delta import lineage
from sluice_consumer.sinks.delta.lineage import RESTORE, TableVersion
from sluice_consumer.sinks.delta.table import DeltaTable

RETENTION = "delta.setTransactionRetentionDuration"
ANEW = "sluice.anew."
LOOKS = (20, 1000, None)  # versions of the history: what was undone is among the newest, as a rule


@dataclass(frozen=True)
class KnownBatches:
    """A table's log, as it was when this was read.

    Attributes:
        properties: of the table.
        transactions: Java's map of the last `txnVersion` of each `txnAppId`.
    """

    table: DeltaTable
    properties: Any
    transactions: Any

    @staticmethod
    def read(spark: SparkSession, table: DeltaTable) -> KnownBatches:
        """Of the newest version. Delta reads it for the write anyway, and keeps it."""
        jvm: Any = spark._jvm  # noqa: SLF001 - Delta's own package for Python is not in the image
        session: Any = spark._jsparkSession  # noqa: SLF001
        path = jvm.io.delta.tables.DeltaTable.forName(session, table.place).deltaLog().dataPath().toString() if table.named else table.place
        snapshot = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(session, path)._2()  # noqa: SLF001 - of a pair in Scala
        return KnownBatches(table, snapshot.metadata().configuration(), snapshot.transactions())

    def check(self) -> None:
        """Refuses a table that forgets batches.

        Raises:
            Refused: it has the property.
        """
        if self.properties.contains(RETENTION):
            raise Refused(
                f"{self.table.field}: {self.table.place}: has the property {RETENTION}: after that time the table forgets which batches it "
                f"holds, and a batch that comes again is stored twice. Run: ALTER TABLE {self.table.identifier} UNSET TBLPROPERTIES ('{RETENTION}')"
            )

    def application(self, consumer: str) -> str:
        """The `txnAppId`: the consumer, or what the owner named after batches of it were undone."""
        anew = self.properties.get(f"{ANEW}{consumer}")
        return f"{consumer}@{anew.get()}" if anew.isDefined() else consumer

    def last(self, application: str) -> int:
        """The last batch that the log has; 0 before the first."""
        version = self.transactions.get(application)
        return int(version.get()) if version.isDefined() else 0


def marked(application: str, batch: int) -> str:
    """What `DESCRIBE HISTORY` says of a batch's version, as `userMetadata`."""
    return json.dumps({"sluice.consumer": application, "sluice.batch": batch})


def check_held(spark: SparkSession, table: DeltaTable, key: tuple[str, str, int]) -> None:
    """Makes sure that the table still holds a batch that its log has. Reads the history; not for the way of each batch.

    Args:
        spark: the session.
        table: the table.
        key: the consumer, its `txnAppId`, and the batch.

    Raises:
        Refused: the owner took it out.
    """
    consumer, application, batch = key
    for limit in LOOKS:
        history = _history(spark, table, limit)
        added = lineage.adding(history, application, batch)
        if added is not None or limit is None or len(history) < limit:
            break
    if undo := lineage.undoing(history, added):
        back = lineage.last_holding(history, added) if added is not None else undo.version - 1
        raise Refused(
            f"{table.field}: {table.place}: batch {batch} of consumer {consumer} was added, and {undo.operation} (version {undo.version}) took it "
            f"out of the table; Delta's log still has its number. "
            f"To continue with the table as it is, and add batch {batch}: ALTER TABLE {table.identifier} "
            f"SET TBLPROPERTIES ('{ANEW}{consumer}' = '{undo.version}'). "
            f"To bring back what the table held: RESTORE TABLE {table.identifier} TO VERSION AS OF {back}"
        )


def whole_history(spark: SparkSession, table: DeltaTable) -> dict[int, TableVersion]:
    """All versions that the table's log still has."""
    return _history(spark, table, None)


def _history(spark: SparkSession, table: DeltaTable, limit: int | None) -> dict[int, TableVersion]:
    described = spark.sql(f"DESCRIBE HISTORY {table.identifier}" + (f" LIMIT {limit}" if limit else ""))
    return {row.version: _commit(row) for row in described.select("version", "operation", "operationParameters", "userMetadata").collect()}


def _commit(row: Row) -> TableVersion:
    restored_to = (row.operationParameters or {}).get("version")
    restored = int(restored_to) if row.operation == RESTORE and restored_to and str(restored_to).isdigit() else None
    try:
        mark = json.loads(row.userMetadata or "{}")
        return TableVersion(row.version, row.operation, restored, mark.get("sluice.consumer"), mark.get("sluice.batch"))
    except (ValueError, AttributeError):  # somebody else's words
        return TableVersion(row.version, row.operation, restored)
