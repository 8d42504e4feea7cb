"""The Spark side of Sluice: the data source, the shard reader, the driver's batch loop and its supervisor.

Attributes:
    DDL: the columns of a batch, as text that Spark takes for a schema.
    SCHEMA: the same as a `pyspark.sql.types.StructType`. PySpark is imported when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from sluice_consumer.columns import DDL

if TYPE_CHECKING:
    from sluice_consumer.spark.schema import SCHEMA

__all__ = ["DDL", "SCHEMA"]


def __getattr__(name: str) -> Any:
    if name != "SCHEMA":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sluice_consumer.spark.schema import SCHEMA  # noqa: PLC0415 - `import sluice_consumer` works without PySpark, and at once

    return SCHEMA


def __dir__() -> list[str]:
    return [*__all__]  # what a person completes, without the modules behind it
