"""Runs a batch with Spark: the data source's options, the user's function, the check of its jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.letters.letter import Place
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer import pipelines
from sluice_consumer.batches import planner
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import Config
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.poison.isolator import BatchInterrupt, BatchOverdue
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.spark.batch_read import BatchRead
from sluice_consumer.spark.data_source import OPTION, SluiceDataSource, register
from sluice_consumer.spark.entrypoint import Process, load
from sluice_consumer.spark.job_tags import tag_of, tagged
from sluice_consumer.spark.jobs import Jobs, Remembered
from sluice_consumer.spark.status import SparkStatus, heartbeat
from sluice_consumer.spark.warmup import WarmUp


class ProcessExited(SluiceError):
    """The function ended by `sys.exit` instead of returning: its batch is not committed."""


def prepare(process: Process, spark: SparkSession, args: Mapping[str, Any]) -> None:
    """Calls the function's own `prepare`, if it has one (docs/interfaces.md)."""
    getattr(process, "prepare", lambda *_: None)(spark, args)


def reading(config: Config, identity: StreamIdentity, generation: int, plan: BatchPlan, cores: int, end: RunEnd | None) -> BatchRead:
    """What the tasks of a batch get, its shards dealt to them."""
    batch = config.batch
    groups = planner.deal(plan.rows, cores, batch.shards_per_task)
    return BatchRead(
        stream=config.stream.address,
        dynamodb_endpoint=config.stream.dynamodb_endpoint,
        table=config.checkpoints.table,
        identity=identity,
        generation=generation,
        number=plan.number,
        lease_seconds=config.lease_duration_seconds,
        limits=Limits(
            min(plan.limit or batch.max_records_per_shard, batch.max_records_per_shard),
            batch.max_bytes_per_shard,
            end.millis if end else None,
        ),
        groups=tuple(tuple(row.id for row in group) for group in groups),
    )


def without(batch: DataFrame, rejected: frozenset[Place]) -> DataFrame:
    """A batch without some of its records."""
    if not rejected:
        return batch
    place = functions.concat_ws("/", "shardId", "sequenceNumber", "subSequenceNumber")
    return batch.filter(~place.isin([f"{shard}/{sequence}/{sub}" for shard, sequence, sub in sorted(rejected)]))


class SparkEngine:
    """Runs batches of one epoch in one SparkSession.

    Attributes:
        spark: the session.
        stream: where the stream and its services are.
        identity: the stream, in the form given to tasks; it also brings them a changed retention.
        called: whether `process` was called with the batch that was given out last.
        tag: of the jobs of its batches, and of `prepare`.
        share: of the slots, for the tasks that read a batch.
        end: of the run; None: it has none.
    """

    def __init__(self, spark: SparkSession, config: Config, identity: StreamIdentity, owner: tuple[int, str], warm_up: WarmUp | None = None) -> None:
        """`owner`: generation and consumer id. Without a `warm_up`, a new executor's first task is one of a batch.

        Raises:
            Refused: there is no such function, or it does not take its arguments.
        """
        self.spark, self._config, self.identity, self._warm_up = spark, config, identity, warm_up
        self.stream = config.stream
        self._generation, self._consumer_id = owner
        self.called, self.share = False, 1.0
        self.end: RunEnd | None = None
        self._process = load(config.pipeline.entrypoint)
        self.tag = tag_of(self._consumer_id, self._generation)
        with tagged(spark.sparkContext, self.tag):  # a failed job of it says nothing about batches of other consumers
            prepare(self._process, spark, config.pipeline.args)
        self._jobs = Jobs(SparkStatus(spark), tag=self.tag)
        register(spark, SluiceDataSource)

    def run(self, plan: BatchPlan) -> None:
        """Reads and processes one batch; an empty replay has nothing to process, and starts no job.

        Raises:
            JobsNotDone: `process` returned although a job of the batch failed. ProcessExited: it called `sys.exit`. Else whatever `process` raised.
        """
        if plan.is_empty_replay:
            return
        self.called = False
        if self._warm_up:
            self._warm_up.before_batch()
        self._jobs.issue()
        try:
            with tagged(self.spark.sparkContext, self.tag):
                self._call(self._frame(plan), self._info(plan))
            self._jobs.check()
        finally:
            self._jobs.observe()

    def _call(self, batch: DataFrame, info: BatchInfo) -> None:
        """An interrupt (Ctrl-C, a notebook's stop button) passes: it is not an answer of the function."""
        self.called = True
        pipelines.LETTERS.begin(info.consumer)
        try:
            self._process(batch, info)
        except Exception:
            pipelines.LETTERS.raised(info.consumer)
            raise
        except BatchInterrupt as error:
            raise BatchOverdue from error
        except SystemExit as error:
            raise ProcessExited(
                f"pipeline.entrypoint: {self._config.pipeline.entrypoint} called sys.exit({error.code!r}) in batch {info.batch}, which is not "
                "committed and comes again; return to commit a batch, raise an error to refuse it"
            ) from error

    def remember(self, memory: Remembered | None) -> None:
        """From now on this is asked for jobs that Spark may have forgotten."""
        self._jobs.memory = memory

    def moved(self) -> tuple[int, ...]:
        """Numbers that change when something of the batch moves."""
        return self._jobs.moved()

    def heartbeat(self) -> float:
        """Seconds between two reports of executors on the tasks that run."""
        return heartbeat(self.spark)

    def rest(self) -> None:
        """What can be done while there is no batch."""
        if self._warm_up:
            self._warm_up.while_waiting()

    def observe(self) -> None:
        """Notes what became of the last batch's jobs, those included that were cancelled after it (`quiet`)."""
        self._jobs.observe()

    def quiet(self) -> bool:
        """Whether no task of this epoch can still be working (`Jobs.quiet`). True where a batch was refused before any."""
        return self._jobs.quiet(self._config.lease_duration_seconds)

    def cancel(self) -> None:
        """Cancels the jobs of a batch that failed; `quiet` a lease duration later."""
        self._jobs.cancel()

    def _frame(self, plan: BatchPlan) -> DataFrame:
        warm = self._warm_up.slots if self._warm_up else 0
        cores = max(1, math.ceil((warm or self.spark.sparkContext.defaultParallelism) * self.share))
        read = reading(self._config, self.identity, self._generation, plan, cores, self.end)
        return without(self.spark.read.format("sluice").option(OPTION, read.to_json()).load(), plan.without)

    def _info(self, plan: BatchPlan) -> BatchInfo:
        return BatchInfo(
            consumer=self._consumer_id,
            batch=plan.number,
            replay=plan.replay,
            stream=self.identity.name,
            shards=tuple(row.id for row in plan.rows),
            args=self._config.pipeline.args,
        )
