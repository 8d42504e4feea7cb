"""How much travels to each task of a batch: what Spark's planning worker sends to the JVM, without a JVM."""

from __future__ import annotations

import io
import struct
from dataclasses import replace

import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType
from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions

from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.batches import planner
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.spark import stream_reader
from sluice_consumer.spark.batch_reader import BatchRead, Group
from sluice_consumer.spark.data_source import OPTION, SluiceDataSource
from sluice_lab.fakes.stream import MemoryStream

IDENTITY = MemoryStream("s").describe()
BATCH = BatchRead(StreamAddress("s", "eu-west-1"), None, "t", IDENTITY, 3, 7, 20.0, Limits(1000, 1_000_000), ())
CORES, SHARDS_A_TASK = 2, 32


def batch_of(shards: int) -> BatchRead:
    groups = planner.deal([f"shardId-{number:012}" for number in range(shards)], CORES, SHARDS_A_TASK)
    return replace(BATCH, groups=groups)


def planned(batch: BatchRead) -> tuple[bytes, list[bytes]]:
    """What the planning worker sends: the function of every task, and the partition of each. It gets the data source as the JVM keeps it."""
    pickled = CPickleSerializer().dumps(SluiceDataSource({OPTION: batch.to_json()}))
    source = CPickleSerializer().loads(pickled)
    out = io.BytesIO()
    schema = StructType()
    write_read_func_and_partitions(
        out, reader=source.reader(schema), data_source=source, schema=schema, max_arrow_batch_size=10_000, binary_as_bytes=True
    )
    out.seek(0)
    command = part(out)
    return command, [part(out) for _ in range(struct.unpack("!i", out.read(4))[0])]


def part(sent: io.BytesIO) -> bytes:
    return sent.read(struct.unpack("!i", sent.read(4))[0])


def shards_in(partition: InputPartition) -> tuple[str, ...]:
    assert isinstance(partition, Group)
    return partition.shard_ids


@pytest.mark.parametrize("shards", [1, 64, 1000, 4000])
def test_a_task_is_sent_its_own_shards_and_no_others(shards: int) -> None:
    """So what travels grows with the shards, and not with their square: 12 MB a batch at 4,000 shards it was."""
    command, partitions = planned(batch_of(shards))
    assert command.count(b"shardId-") == 0
    assert sum(partition.count(b"shardId-") for partition in partitions) == shards
    assert max(len(command) + len(partition) for partition in partitions) < 6_000
    assert [shards_in(CPickleSerializer().loads(partition)) for partition in partitions] == list(batch_of(shards).groups)


def test_a_data_source_that_has_planned_plans_again() -> None:
    """Spark may ask the same object twice."""
    batch = batch_of(64)
    source = SluiceDataSource({OPTION: batch.to_json()})
    assert [[shards_in(one) for one in source.reader(StructType()).partitions()] for _ in range(2)] == [list(batch.groups)] * 2
    again = CPickleSerializer().loads(CPickleSerializer().dumps(SluiceDataSource({OPTION: batch.to_json()})))
    assert [shards_in(partition) for partition in again.reader(StructType()).partitions()] == list(batch.groups)


def test_a_task_of_a_stream_is_sent_its_own_shards_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(1000)
    monkeypatch.setattr(stream_reader.ChannelClient, "ask", lambda *_: batch.to_json())
    partitions = stream_reader.StreamReader("address").partitions({}, {})
    sent = [CPickleSerializer().dumps(partition) for partition in partitions]
    assert sum(one.count(b"shardId-") for one in sent) == 1000
    assert [shards_in(partition) for partition in partitions] == list(batch.groups)
