"""A real Spark in local mode over emulated AWS: what the driver believes about Spark, tried."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import boto3
import pytest
from pyspark.sql import SparkSession

from sluice_checkpoints.protocol.lease import Watcher, take_over
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.config import BatchConfig, CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.spark.engine import SparkEngine

SHARDS, RECORDS = 3, 60
SLOW_SHARDS, SLOW_RECORDS = 2, 48


@pytest.fixture(scope="session")
def aws(credentials: None, dynamodb_endpoint: str, kinesis_local_endpoint: str) -> Iterator[StreamConfig]:  # noqa: ARG001 - set for all
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client = boto3.client("kinesis", endpoint_url=kinesis_local_endpoint)
        name = f"spark-{uuid4()}"
        client.create_stream(StreamName=name, ShardCount=SHARDS)
        client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
        client.put_records(StreamName=name, Records=[{"Data": str(n).encode(), "PartitionKey": f"k{n}"} for n in range(RECORDS)])
        yield StreamConfig(name, "us-east-1", kinesis_local_endpoint, dynamodb_endpoint)


@pytest.fixture(scope="session")
def slow_stream(aws: StreamConfig) -> StreamConfig:
    """Numbered records, each of a time of its own: the emulator takes one of the newest's moment for the tip."""
    client = boto3.client("kinesis", endpoint_url=aws.kinesis_endpoint, region_name=aws.region)
    name = f"slow-{uuid4()}"
    client.create_stream(StreamName=name, ShardCount=SLOW_SHARDS)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    moment = threading.Event()
    for n in range(SLOW_RECORDS):
        client.put_record(StreamName=name, Data=str(n).encode(), ExplicitHashKey=str(n % SLOW_SHARDS * 2**127), PartitionKey="k")
        moment.wait(0.002)
    return replace(aws, name=name)


def stream_document(stream: StreamConfig) -> dict[str, str | None]:
    names = {"name": stream.name, "region": stream.region}
    return names | {"kinesisEndpoint": stream.kinesis_endpoint, "dynamodbEndpoint": stream.dynamodb_endpoint}


def configuration(aws: StreamConfig, entrypoint: str, **batch: Any) -> Config:
    table = CheckpointsConfig(f"spark-{uuid4()}")
    return Config(aws, table, PipelineConfig(entrypoint), name="spark", batch=BatchConfig(**batch), lease_duration_seconds=3)


@dataclass
class Epoch:
    spark: SparkSession
    config: Config
    consumer: Consumer = field(init=False)
    engine: SparkEngine = field(init=False)

    def __post_init__(self) -> None:
        store, catalog = wiring.store(self.config), wiring.catalog(self.config)
        wiring.targets(self.config).ensure(self.config.checkpoints.table)
        supervisor.prepare(self.config, store, catalog)
        epoch = take_over(store, supervisor.claim(self.config), Watcher(sleep=lambda _: None, clock=iter(range(0, 10**6, 100)).__next__)).epoch
        self.consumer = Consumer(store, catalog, epoch)
        self.consumer.begin()
        assert self.consumer.row is not None
        self.engine = SparkEngine(self.spark, self.config, catalog.describe(), (epoch.generation, self.consumer.row.consumer_id))

    def batch(self) -> tuple[ShardRow, ...]:
        plan = self.consumer.plan()
        assert plan is not None
        return self.consumer.run(plan, self.engine).rows
