"""A consumer as a source of Spark's Structured Streaming: for state, watermarks and streaming sinks (docs/structured-streaming.md).

The lease is held here, as in `embedded`, and Spark's planner asks here. The rows, their rules and what a task does are those of the batch loop.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sluice_checkpoints.errors import AccessDenied, Refused
from sluice_checkpoints.protocol.lease import TakenLease, Watcher, take_over
from sluice_consumer import config as configs
from sluice_consumer import embedded, logs
from sluice_consumer.batches.consumer import Committed
from sluice_consumer.batches.loop import AUDIT_SECONDS
from sluice_consumer.config import Config
from sluice_consumer.process import pod, supervisor, wiring
from sluice_consumer.process.session import Session, WorkLease, root_cause
from sluice_consumer.process.supervisor import Heartbeats
from sluice_consumer.shards.probes import PROBE_SECONDS, Every
from sluice_consumer.spark import failures, features, stream_query
from sluice_consumer.spark.data_source import SluiceDataSource, register
from sluice_consumer.spark.engine import reading
from sluice_consumer.spark.status import SparkStatus, heartbeat
from sluice_consumer.spark.stream_reader import OPTION, ChannelHandler, serving
from sluice_consumer.streaming.jobs import QueryJobs
from sluice_consumer.streaming.offsets import Offset
from sluice_consumer.streaming.planner import StreamPlanner, Surroundings
from sluice_consumer.watchdog import overdue
from sluice_consumer.watchdog.query_watch import QueryPorts, QueryWatch

NO_FUNCTION = {"entrypoint": "sluice_consumer.streaming:source"}  # the query is the pipeline


class Source:
    """A stream whose lease is held, for one query.

    Attributes:
        consumer: the consumer's id.
        query: the query, once it was started.
        identity: the stream, in the form given to tasks.
        denied: the call of ours that AWS denied while the query ran, if one was.
    """

    def __init__(self, spark: SparkSession, config: Config, work: Session, heart: Heartbeats) -> None:
        assert work.consumer.row is not None  # noqa: S101 - it began
        self._spark, self._config, self._work, self._heart = spark, config, work, heart
        self.consumer = work.consumer.row.consumer_id
        self.identity = work.consumer.identify()
        self.query: StreamingQuery | None = None
        self.address = ""
        self.denied: AccessDenied | None = None
        self._stopping = False
        self._jobs = QueryJobs(spark)
        self._idle, self._handed = Every(PROBE_SECONDS), time.monotonic()
        self.planner = StreamPlanner(
            work.consumer,
            Surroundings(
                alive=lambda: embedded.raise_if_lost(heart),
                probe=work.probes(),
                audit_due=Every(AUDIT_SECONDS, last=time.monotonic()),
                engine=self._jobs,
                on_progress=self._report_progress,
                stands=self._stands,
                fold=work.folder(lambda: self._stopping).fold,
            ),
            config.accept_loss_of_batch,
        )

    @property
    def batch(self) -> int:
        """Number of the batch that Spark was given last. In foreachBatch (`consumer`, `batch`) names what it read, in any checkpoint directory."""
        return self.planner.handed

    def stored(self) -> None:
        """Says that the sink holds (`consumer`, `batch`): call it in foreachBatch before you skip a batch, which is then committed unread.

        Without this call, skipping a batch that an earlier epoch had begun ends a query with a new checkpoint directory (`Refused`).

        Raises:
            Fenced, LostRace: the lease was taken.
        """
        self.planner.stored()

    def load(self) -> DataFrame:
        """The stream; columns as in a batch read."""
        return self._spark.readStream.format("sluice").option(OPTION, self.address).load()

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Starts the query. To be used instead of `writer.start()`, for the query's jobs are watched, and stopped when the lease is lost.

        Raises:
            Refused: there was one already, or it cannot be ended at this moment's data (`stream_query.end_by_itself`).
        """
        if self.query is not None:
            raise Refused("this source has its query; open another source for another query, on a table of its own")
        by_us = not features.ends_by_itself() and stream_query.is_available_now(writer)
        if by_us:
            writer = stream_query.end_by_itself(writer)
            self.planner.until_now()
        self.query = writer.start()
        self._jobs.of(self.query)
        if by_us:
            stream_query.stop_at_rest(self.query)
        return self.query

    def watch(self) -> QueryWatch:
        """What ends a batch of the query that does not end."""
        planner, status = self.planner, SparkStatus(self._spark)
        ports = QueryPorts(
            open=lambda: planner.handed if planner.open is not None and planner.open.number == planner.handed else None,
            working=lambda: self.query is not None and bool(self.query.status["isTriggerActive"]),
            progress=status.moved,
            stop=self.stop,
            give_up=self._heart.give_up,
        )
        return QueryWatch(overdue.limits(self._config.batch, heartbeat(self._spark)), ports)

    def stop(self) -> bool:
        """Stops the query, if there is one: at the end, and when the lease is lost. Whether it stopped in time."""
        self._stopping = True
        if self.query is None:
            return True
        stopping = threading.Thread(target=self.query.stop, name="stop", daemon=True)
        stopping.start()
        stopping.join(self._config.drain_timeout_seconds + supervisor.STOP_SECONDS)
        if stopping.is_alive():  # a function of foreachBatch does not return
            logs.warn("the query did not stop in time: its lease is not released, and its batch comes again in the next run")
        return not stopping.is_alive()

    def quiet(self) -> bool:
        """Whether no task of this epoch can still be working, now that the query was stopped. One that `start` did not start cannot be stopped."""
        if self.query is None:
            return self.planner.handed == 0
        self._jobs.observe()
        return not self.query.isActive and self.query.exception() is None and self._jobs.quiet(self._config.lease_duration_seconds)

    def answers(self) -> Mapping[str, ChannelHandler]:
        """What Spark's planner may ask; offsets as JSON objects."""
        planner = self.planner
        answers: dict[str, ChannelHandler] = {
            "initial": lambda: planner.initial().to_map(),
            "latest": lambda start: planner.latest(start and Offset.from_map(start)).to_map(),
            "partitions": self._partitions,
            "finish": lambda end: planner.finish(Offset.from_map(end)),
            "until_now": planner.until_now,
        }
        return {call: functools.partial(self._answered, answer) for call, answer in answers.items()}

    def refused(self) -> Refused | None:
        """What AWS refused while the query ran, to an answer of ours or to a task. Spark has the words of both, and the classes of neither."""
        refusal = None
        with contextlib.suppress(Exception):  # a JVM that is gone does not say what became of its jobs
            refusal = self._jobs.refused()
        return self.denied or (failures.named(refusal) if refusal else None)

    def _answered(self, answer: ChannelHandler, *values: Any) -> Any:
        try:
            return answer(*values)
        except AccessDenied as error:
            self.denied = error
            raise

    def _stands(self) -> Offset | None:
        offset = stream_query.stands(self._jobs.query(), self.address)
        return None if offset is None else Offset.from_map(offset)

    def _partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> str | None:
        self._handed = time.monotonic()
        plan = self.planner.partitions(Offset.from_map(start), Offset.from_map(end))
        if plan is None:
            return None
        cores = self._spark.sparkContext.defaultParallelism
        self.identity = self._work.consumer.identity or self.identity  # the last audit may have found another retention
        return reading(self._config, self.identity, self._work.consumer.epoch.generation, plan, cores, self.planner.end).to_json()

    def _report_progress(self, committed: Committed | None) -> None:
        if committed is not None or self._idle():
            self._work.report_progress(self, committed, time.monotonic() - self._handed)


@contextlib.contextmanager
def source(spark: SparkSession, config: Mapping[str, Any] | str | Config, *, tell: Callable[[str], object] = print) -> Iterator[Source]:
    """Holds the consumer's lease and gives its stream to one streaming query, which is stopped in the end.

    Args:
        spark: a classic session, with the package on its driver and executors.
        config: docs/interfaces.md, as a mapping, as JSON or parsed; `pipeline` is not needed.
        tell: gets a line for every batch and every warning.

    Raises:
        Refused: the configuration, the stream, the table or the session's settings cannot be used; the message says what to change.
        AccessDenied: AWS denied a call to the driver or to a task; the message has the statement that is missing.
        LeaseHeld: another driver or query works on this table. LeaseLost, Fenced: the lease was lost while the query ran; the query was stopped.
        BatchOverdue: a batch did not end within `batch.maxSeconds`; the query was stopped.
    """
    parsed = config if isinstance(config, Config) else _parsed(config)
    if parsed.until is not None:
        raise Refused("until: a streaming query ends by its trigger; leave until out, and start the query with trigger(availableNow=True)")
    with logs.told_to(tell):
        embedded.check_session(spark, parsed)
        store = supervisor.open_table(parsed)
        taken = take_over(store, supervisor.claim(parsed), Watcher(notify=embedded.notify))
        heart = Heartbeats.of(taken, parsed, wiring.beating_store(parsed))
        with _working(spark, parsed, taken, heart) as made:
            yield made
        if made.quiet() and heart.clock() >= heart.keep_promise_until:
            store.release(taken.epoch)


def _parsed(config: Mapping[str, Any] | str) -> Config:
    if isinstance(config, str):
        return configs.parse(config)
    return configs.parse(json.dumps({"pipeline": NO_FUNCTION, **config}))


@contextlib.contextmanager
def _working(spark: SparkSession, config: Config, taken: TakenLease, heart: Heartbeats) -> Iterator[Source]:
    made: list[Source] = []

    def lost() -> None:
        for source in made:
            source.stop()

    work = Session(config, WorkLease(taken.epoch, taken.how, taken.wait_out_millis), pod.Reporter(None), threading.Event())
    with contextlib.closing(work), embedded.beating(heart, lost):
        work.begin(in_pod=False)
        work.wait_out()
        register(spark, SluiceDataSource)
        source = Source(spark, config, work, heart)
        made.append(source)
        with serving(source.answers()) as source.address:
            watch = source.watch()
            try:
                with watch.started():
                    yield source
            except Exception as error:
                if watch.error is not None:
                    raise watch.error from error
                embedded.raise_if_lost(heart, error)
                why = root_cause(work.consumer, error)
                if why is error:
                    why = source.refused() or error
                if why is error:
                    raise
                raise why from error
            finally:
                source.stop()
        if watch.error is not None:
            raise watch.error
    embedded.raise_if_lost(heart)
