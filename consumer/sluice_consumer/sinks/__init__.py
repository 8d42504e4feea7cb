"""Sinks that hold each record once: Iceberg, Delta, Parquet files, and a function of the user's (docs/sinks.md).

A batch has one key, `(info.consumer, info.batch)`, and always the same content. A sink stores the key in the same write as the rows, on the condition
that the key is not there yet. No sink may decide what a batch contains, or commit it.
"""

from sluice_consumer.sinks.delta import delta
from sluice_consumer.sinks.files import committed_files
from sluice_consumer.sinks.foreach import Part, foreach
from sluice_consumer.sinks.iceberg import iceberg
from sluice_consumer.sinks.parquet import parquet

__all__ = ["Part", "committed_files", "delta", "foreach", "iceberg", "parquet"]
