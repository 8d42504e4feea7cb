"""A take-over from end to end: the real command that migrates, then the real consumer over a real Spark. Both run in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from click.testing import CliRunner
from pyspark.sql import SparkSession
from takeover.delivered import delivered
from takeover.expected import Delivery

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.protocol.lease import Watcher, take_over
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.config import BatchConfig, CheckpointsConfig, Config, MigrateFromConfig, PipelineConfig, StreamConfig, UntilConfig
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.process.pod import Reporter
from sluice_consumer.process.session import Session, WorkLease

REGION = "us-east-1"
RECORDS = 30  # a batch and shard: most shards need more than one


def configuration(stream: StreamConfig, source: str, target: str) -> Config:
    batch = BatchConfig(interval_seconds=0, max_records_per_shard=RECORDS)
    pipeline = PipelineConfig("takeover.delivered:collect")
    return Config(
        stream, CheckpointsConfig(target), pipeline, name=target, migrate_from=MigrateFromConfig(source), batch=batch, lease_duration_seconds=3
    )


def migrate(config: Config) -> tuple[int, dict[str, Any]]:
    """Run the command of a Job, but trusting that the source is at rest; its exit code and result."""
    assert config.migrate_from is not None
    options = {
        "source": config.migrate_from.table,
        "target": config.checkpoints.table,
        "stream": config.stream.name,
        "region": config.stream.region,
        "kinesis-endpoint": config.stream.kinesis_endpoint,
        "dynamodb-endpoint": config.stream.dynamodb_endpoint,
        "quiet-seconds": 0,
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    done = CliRunner().invoke(main, ["migrate", "--json", *arguments])
    assert done.stdout, done.stderr
    return done.exit_code, json.loads(done.stdout)


@dataclass(frozen=True)
class Consumed:
    """What a consumer did up to the tip.

    Attributes:
        batches: by shard, the batch of every user record, beside the record in `delivery`.
        rows: the checkpoint rows at the end.
        warnings: what it reported.
    """

    delivery: Delivery
    batches: Mapping[str, list[int]]
    rows: Mapping[str, ShardRow]
    warnings: str


def consume(spark: SparkSession, config: Config) -> Consumed:
    config = replace(config, until=UntilConfig(tip=True))
    store, drain = wiring.store(config), threading.Event()
    supervisor.prepare(config, store, wiring.catalog(config))
    taken = take_over(store, supervisor.claim(config), Watcher(sleep=_never))
    work = Session(config, WorkLease(taken.epoch, taken.how, taken.wait_out_millis), Reporter(None), drain)
    delivered.clear()
    work.begin(in_pod=False)
    work.loop(work.engine(spark))
    drain.set()  # threads that would look at something later are told that it is over
    return _consumed(store.shards(), "; ".join(map(str, work.current_warnings())))


def _consumed(rows: Mapping[str, ShardRow], warnings: str) -> Consumed:
    delivery: Delivery = {shard: [] for shard in rows}
    batches: dict[str, list[int]] = {shard: [] for shard in rows}
    for shard, batch, sequence, sub, data in delivered:
        delivery[shard].append((sequence, sub, data))
        batches[shard].append(batch)
    return Consumed(delivery, batches, rows, warnings)


def _never(_seconds: float) -> None:
    raise AssertionError("a lease that a migration left released is taken at once")
