"""What the driver passes on about a batch, and the tasks that Spark's planning workers make of it.

Planning workers import this and nothing that reads: numpy, Arrow, the clients and their libraries are half a second of CPU in each of a driver's two.
"""

from __future__ import annotations

import functools
import gc
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.spark import python_workers

if TYPE_CHECKING:
    from pyarrow import RecordBatch


@dataclass(frozen=True)
class BatchRead:
    """What the driver passes to every task of a batch; travels as JSON in one option.

    Attributes:
        stream: no key of a session: each worker begins its own.
        groups: shard ids, one tuple a task.
    """

    stream: StreamAddress
    dynamodb_endpoint: str | None
    table: str
    identity: StreamIdentity
    generation: int
    number: int
    lease_seconds: float
    limits: Limits
    groups: tuple[tuple[str, ...], ...]

    def to_json(self) -> str:
        """The option's value."""
        return json.dumps(asdict(self))

    def for_tasks(self) -> BatchRead:
        """Without the groups: a task has its own with its partition, and thousands of ids travelled to each of a hundred tasks otherwise."""
        return replace(self, groups=())

    @staticmethod
    def from_json(text: str) -> BatchRead:
        """Reads the option's value."""
        values: dict[str, Any] = json.loads(text)
        return BatchRead(
            **values
            | {
                "stream": _address(values["stream"]),
                "identity": StreamIdentity(**values["identity"]),
                "limits": Limits(**values["limits"]),
                "groups": tuple(tuple(group) for group in values["groups"]),
            }
        )


def _address(values: dict[str, Any]) -> StreamAddress:
    return StreamAddress(**values | {"role": AssumedRole(**values["role"]) if values["role"] else None})


class Group(InputPartition):
    """The shards of one task."""

    def __init__(self, shard_ids: tuple[str, ...]) -> None:
        super().__init__(shard_ids)
        self.shard_ids = shard_ids


class PlannedBatch(DataSourceReader):
    """One micro-batch; the object itself is pickled to every task, without the groups of all tasks."""

    def __init__(self, batch: BatchRead) -> None:
        self.batch = batch

    def __reduce__(self) -> tuple[type[PlannedBatch], tuple[BatchRead]]:
        return type(self), (self.batch.for_tasks(),)

    def partitions(self) -> list[InputPartition]:
        """One a task."""
        python_workers.forget_archives()
        return [Group(group) for group in self.batch.groups]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, Group)  # noqa: S101 - Spark gives back what partitions() made
        return read(self.batch, partition)


def read(batch: BatchRead, group: Group) -> Iterator[RecordBatch]:
    """The rows of a task."""
    from sluice_consumer.spark.batch_reader import BatchReader  # noqa: PLC0415 - only tasks need it

    try:
        yield from BatchReader(batch).read(group)
    finally:
        python_workers.forget_archives()


@functools.cache
def freeze(what: str) -> None:  # noqa: ARG001 - once for each
    """Takes what there is out of the garbage collector's sight: PySpark collects after every task, which costs 20 ms otherwise.

    Once when everything is "imported" and once more when the first range was "read", because the first calls create what stays as well. These are
    models of services, and modules that Arrow and PySpark import late. There is no third time: what the user's code drops later is still found.
    """
    gc.collect()
    gc.freeze()
