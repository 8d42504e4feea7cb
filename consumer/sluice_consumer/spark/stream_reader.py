"""The streaming side of the data source: what Spark's planner process and its tasks run (docs/structured-streaming.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from sluice_checkpoints.errors import Refused
from sluice_consumer.spark import features
from sluice_consumer.spark.batch_read import BatchRead, Group, read
from sluice_consumer.spark.stream_channel import ChannelClient

if TYPE_CHECKING:
    from pyarrow import RecordBatch

OPTION = "planner"


class StreamGroup(Group):
    """The shards of one task, and the batch they are of."""

    def __init__(self, batch: BatchRead, shard_ids: tuple[str, ...]) -> None:
        super().__init__(shard_ids)
        self.batch = batch


@features.supports_available_now
class StreamReader(DataSourceStreamReader):
    """Asks the driver's process about offsets. Pickled to every task, without its connection."""

    def __init__(self, address: str) -> None:
        self._address, self._caller = address, ChannelClient(address)

    def __reduce__(self) -> tuple[type[StreamReader], tuple[str]]:
        return type(self), (self._address,)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names
        """Where a query without checkpoint begins; asked twice."""
        return self._offset("initial")

    def latestOffset(self, start: dict[str, Any] | None = None, limit: object = None) -> dict[str, Any]:  # noqa: ARG002, N802 - the batch's own limits hold
        """The end of the next batch, or `start`; None: Spark did not say where the batch begins (`features.names_the_start`)."""
        return self._offset("latest", start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch."""
        answer = self._caller.ask("partitions", start, end)
        if answer is None:
            return []
        batch = BatchRead.from_json(answer)
        return [StreamGroup(batch.for_tasks(), group) for group in batch.groups]

    def commit(self, end: dict[str, Any]) -> None:
        """Spark will not ask for this batch again."""
        self._caller.ask("finish", end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends when everything is processed that had arrived by now."""
        self._caller.ask("until_now")

    def stop(self) -> None:
        """The query is over."""
        self._caller.close()

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """A task, as in a batch read."""
        assert isinstance(partition, StreamGroup)  # noqa: S101 - Spark gives back what partitions() made
        return read(partition.batch, partition)

    def _offset(self, call: str, *values: dict[str, Any] | None) -> dict[str, Any]:
        offset: dict[str, Any] = self._caller.ask(call, *values)
        return offset


def from_options(options: Mapping[str, str]) -> StreamReader:
    """The reader of a source.

    Raises:
        Refused: there is none.
    """
    if OPTION not in options:
        raise Refused("readStream needs a source that holds the lease: see sluice_consumer.streaming.source")
    return StreamReader(options[OPTION])
