"""The columns of a batch for Spark. Needs no session, unlike Spark's own reading of DDL."""

from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from sluice_consumer.columns import DDL

TYPES = {"STRING": StringType(), "BINARY": BinaryType(), "BIGINT": LongType(), "TIMESTAMP_LTZ": TimestampType()}
SCHEMA = StructType()
for _column in DDL.split(", "):
    SCHEMA.add(_column.split()[0], TYPES[_column.split()[1]])
