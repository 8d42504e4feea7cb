"""A data source for warm-up only: its rows pass executor, Python worker and Arrow as those of a batch do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pyarrow import RecordBatch
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from sluice_checkpoints.aws import role_sessions
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_consumer.columns import DDL
from sluice_consumer.config import StreamConfig
from sluice_consumer.kinesis.client import Records
from sluice_consumer.kinesis.http import connect
from sluice_consumer.shards.collect import RecordColumnSet, RecordSlice
from sluice_consumer.shards.ranges import Fetched
from sluice_consumer.spark import batch_reader
from sluice_consumer.spark.arrow import to_arrow
from sluice_consumer.spark.batch_read import freeze

TASKS, STREAM = "tasks", "stream"
RECORD = Records(sequence=["0"], partition_key=[""], data=[b""], arrival_millis=[0])


def options(stream: StreamConfig) -> dict[str, str]:
    """Where the clients that are made belong. No call is made with them, but a session is begun of the role that they will need."""
    return {STREAM: json.dumps(asdict(stream))}


class WarmUpSource(DataSource):
    """`spark.read.format("sluice-warm-up")`: a row for each of so many `tasks`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "sluice-warm-up"

    def schema(self) -> str:
        """The columns of a batch."""
        return str(DDL)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always ours
        """The reader of its rows."""
        given = self.options
        return WarmUpReader(int(given[TASKS]), StreamConfig(**json.loads(given[STREAM])))


class WarmUpReader(DataSourceReader):
    """Makes in each worker what the tasks of batches find there: modules, clients, the role's session, an Arrow batch."""

    def __init__(self, tasks: int, stream: StreamConfig) -> None:
        self._tasks, self._stream = tasks, stream

    def partitions(self) -> list[InputPartition]:
        """One a task."""
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:  # noqa: ARG002 - all are alike
        """One row."""
        stream = self._stream
        connect(stream.address)
        role_sessions.begin(stream.role, stream.region)
        batch_reader.dynamodb(stream.region, stream.dynamodb_endpoint)
        freeze("imported")
        yield from to_arrow([Fetched("", TRIM_HORIZON, TRIM_HORIZON, RecordColumnSet([RecordSlice(RECORD)]))], "")
