"""What a streaming query of Spark knows of its source, and how it is ended, over py4j: for lines that do not inform the source (`features`)."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_consumer.spark.status import each
from sluice_consumer.spark.stream_reader import OPTION

log = logging.getLogger(__name__)
SOURCE = "StreamingDataSourceV2ScanRelation"  # a source's leaf in the plan of a streaming query
AVAILABLE_NOW = "AvailableNowTrigger"
OURS = ("StreamingRelationV2", "sluice")  # the leaf and the format of our sources in the plan of a frame


def stands(query: StreamingQuery, address: str) -> dict[str, Any] | None:
    """The offset up to which Spark's commit log holds the source with this planner address, as a JSON object; None: it holds nothing of it.

    Where the query's next batch begins. Spark raises it when it has written its commit log, or read it at the start. Until the source has answered
    what its latest offset is, Spark's thread waits, and the offset stays.

    Raises:
        Refused: the query is over, or does not read this source exactly once.
    """
    if not query.isActive:
        raise Refused("the query that source.start(writer) started is over, and another one asks: open another source for another query")
    execution: Any = query._jsq.streamingQuery()  # noqa: SLF001 - PySpark shows none of this
    streams = [leaf.stream() for leaf in each(execution.logicalPlan().collectLeaves()) if _address(leaf) == address]
    if len(streams) != 1:
        raise Refused(
            f"the query that source.start(writer) started reads this source {counted(len(streams), 'time')}; a query may read this source once"
        )
    offset = execution.committedOffsets().get(streams[0])
    return dict[str, Any](json.loads(str(offset.get().json()))) if offset.isDefined() else None


def _address(leaf: Any) -> str | None:
    if str(leaf.getClass().getSimpleName()) != SOURCE:
        return None
    address = leaf.relation().options().get(OPTION)
    return None if address is None else str(address)


def is_available_now(writer: DataStreamWriter) -> bool:
    """Whether the query is to end when everything is processed that had arrived before."""
    builder: Any = writer._jwrite  # noqa: SLF001 - PySpark keeps no trigger
    trigger = builder.getClass().getDeclaredField("trigger")
    trigger.setAccessible(True)
    return str(trigger.get(builder).toString()) == AVAILABLE_NOW


def end_by_itself(writer: DataStreamWriter) -> DataStreamWriter:
    """The writer of a query that `stop_at_rest` is to end: its batches follow each other at once.

    Raises:
        Refused: another streaming source is in the query, and would bring new data without end.
    """
    frame: Any = writer._df  # noqa: SLF001 - PySpark keeps what it writes there
    leaves = [leaf for leaf in each(frame._jdf.queryExecution().analyzed().collectLeaves()) if leaf.isStreaming()]  # noqa: SLF001
    if not all(str(leaf.getClass().getSimpleName()) == OURS[0] and str(leaf.sourceName()) == OURS[1] for leaf in leaves):
        raise Refused(
            "trigger(availableNow=True) beside another streaming source needs Spark 4.2; on this one let a trigger by time run, and stop the query"
        )
    return writer.trigger(processingTime="0 seconds")


def stop_at_rest(query: StreamingQuery) -> None:
    """Stops the query, from a thread, as soon as Spark has asked its source for a batch, got none, and has no batch of its own to run."""

    def watch() -> None:
        try:
            query.processAllAvailable()
        except Exception:  # the query has failed, and says so to whoever waits for it; or the session is gone
            log.debug("the query ended before all was processed", exc_info=True)
        else:
            query.stop()

    threading.Thread(target=watch, name="available-now", daemon=True).start()
