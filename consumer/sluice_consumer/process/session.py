"""Runs the work of one epoch, wherever its lease and its Spark session come from: rows, batches, metrics, report and log.

The driver process (`driver`) and a session that somebody else made (`embedded`) both do it.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Fenced, Refused
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.lease import MARGIN
from sluice_checkpoints.protocol.store import Epoch
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer import logs, pipelines
from sluice_consumer.batches import bootstrap, planner, retention, versions
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.folding import Folder, FoldPorts
from sluice_consumer.batches.loop import Loop, LoopTimings
from sluice_consumer.batches.planner import BatchPlan, TableView
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import MAX_SECONDS, Config
from sluice_consumer.driver_report import DriverReport, DriverWarning, ReportPhase, WarningReason
from sluice_consumer.exits.last_words import OpenBatch
from sluice_consumer.kinesis.http import HttpKinesis, client
from sluice_consumer.letters.stores import check_former
from sluice_consumer.metrics.driver import DriverMetrics
from sluice_consumer.metrics.load import steady
from sluice_consumer.metrics.progress import Backfill, BatchProgress, spec_versions
from sluice_consumer.metrics.rows import RequestFigures, RowFigures
from sluice_consumer.metrics.warnings import Warnings
from sluice_consumer.poison.isolator import Isolator, SettlePatience
from sluice_consumer.process import migrated_source, pod, poison_ports, wiring
from sluice_consumer.process.pod import Reporter
from sluice_consumer.shards.probes import KinesisProber, ProbeLimits, ProbeScheduler
from sluice_consumer.shards.reader import ShardReader
from sluice_consumer.shards.request_counts import DYNAMODB, KINESIS
from sluice_consumer.spark import failures
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.spark.warmup import WarmUp
from sluice_consumer.watchdog import overdue
from sluice_consumer.watchdog.batch_watch import BatchWatch, WatchPorts

log = logging.getLogger(__name__)
Watching = Callable[[SparkEngine, Isolator | None, Callable[[DriverWarning], None]], WatchPorts]


@dataclass(frozen=True)
class WorkLease:
    """The lease that the work is done under: the epoch, how it was taken, and for how long everybody before may still be working."""

    epoch: Epoch
    how: str
    wait_out_millis: int = 0


class ReadSettings(Protocol):
    """What informs tasks about the stream.

    Attributes:
        identity: as the last audit found it.
    """

    identity: StreamIdentity


class Session:
    """One epoch's.

    Attributes:
        consumer: its rows; also asked when it failed, and why.
        spec: the version that the table is to name.
        queue_up: called before jobs begin, of a batch or of one that comes again, while nothing watches it; it may wait. In a group, for slots.
    """

    def __init__(self, config: Config, lease: WorkLease, reporter: Reporter, drain: threading.Event, metrics: DriverMetrics | None = None) -> None:
        """`metrics` of a driver that stood by. Without them it makes its own."""
        self._config, self._lease, self._reporter, self._drain = config, lease, reporter, drain
        self.spec = pod.spec()
        self.queue_up: Callable[[], None] = lambda: None
        self._began = time.monotonic()
        self._service_time = retention.ServiceTime()
        self._metrics = metrics or DriverMetrics()
        self._backfill: Backfill | None = None
        self._open: int | None = None
        self._watch: BatchWatch | None = None
        self._calls = RequestFigures()
        self._kinesis = self._calls.requests.listener(KINESIS)
        self._client: HttpKinesis | None = None
        store, catalog = wiring.store(config, self._calls.requests.listener(DYNAMODB)), wiring.catalog(config, self._kinesis)
        self.consumer = Consumer(store, catalog, lease.epoch, self._metrics.phase, logs.now_millis)
        self._progress = BatchProgress(self.consumer, lease.epoch.generation, Warnings(self._metrics.warned), config.batch.interval_seconds)
        self._metrics.busy(self._progress.load)
        for collector in (self._calls, RowFigures(self.consumer, finished=self._finished)):
            self._metrics.registry.register(collector)

    def begin(self, *, in_pod: bool) -> None:
        """Fences and reads the rows, and makes sure that a batch which an earlier epoch had begun can still be read.

        Raises:
            Refused, Fenced, DataLost: see `Consumer.begin` and `retention.settle`.
        """
        self._metrics.took(self._lease.how)
        if self._config.metrics:
            self._metrics.serve(self._config.metrics, in_pod)
        self._reporter.update(lambda report: replace(report, phase=ReportPhase.STARTING, generation=self._lease.epoch.generation))
        self.consumer.begin(logs.say)
        self._progress.behind = self._unread_for()
        self._suspect(self.consumer.notes)
        if planner.next_batch(self.consumer.view).replay:
            kinesis = self.kinesis()
            source = ShardReader(kinesis, self.consumer.catalog, self.consumer.identify())
            retention.settle(self.consumer, kinesis, source, self._config.accept_loss_of_batch)
        named = versions.begin(self.consumer, self.spec, logs.now_millis())
        if named[-1].generation == self._lease.epoch.generation:
            logs.say(f"a version of the spec begins with batch {named[-1].first}")
        self._progress.versions = spec_versions(named)
        if self._config.migrate_from is not None:
            threading.Thread(target=contextvars.copy_context().run, args=(self._watch_source,), name="source", daemon=True).start()

    def _unread_for(self) -> int | None:
        assert self.consumer.identity is not None  # noqa: S101 - begin() set it
        now = self._service_time.now(self.consumer.listed_millis)
        return retention.behind(self.consumer.view, now, self.consumer.identity.created_millis)

    def wait_out(self) -> None:
        """After a forced take, everybody before us may be working until the larger promise is over."""
        left = self._began + self._lease.wait_out_millis / 1000 * MARGIN - time.monotonic()
        if self._lease.wait_out_millis and left > 0:
            self._reporter.update(lambda report: replace(report, phase=ReportPhase.WAITING_OUT_LEASE, deadline=logs.in_seconds(left)))
            self._drain.wait(left)

    @property
    def registry(self) -> CollectorRegistry:
        """The metrics of this epoch."""
        return self._metrics.registry

    def engine(self, spark: SparkSession, warm_up: WarmUp | None = None, share: float = 1.0) -> SparkEngine:
        """What runs this epoch's batches in a session. `share`: of its slots, for the tasks that read a batch."""
        assert self.consumer.row is not None  # noqa: S101 - begin() set it
        owner = (self._lease.epoch.generation, self.consumer.row.consumer_id)
        engine = SparkEngine(spark, self._config, self.consumer.identify(), owner, warm_up)
        engine.share = share
        return engine

    def loop(self, engine: SparkEngine, *, watching: Watching = overdue.ports) -> None:
        """Batches, until it has to drain, or until the end of the run that the configuration names.

        Args:
            engine: what runs them.
            watching: what ends a batch that does not end.
        """
        end = engine.end = RunEnd.of(self._config.until, self.consumer.listed_millis)
        self._backfill = None if end is None else Backfill(self.consumer, end)
        isolator = self._isolator(engine)
        limits = overdue.limits(self._config.batch, engine.heartbeat())
        self._watch = BatchWatch(engine, limits, watching(engine, isolator, self._progress.warnings.say))
        probes = self.probes()
        timings = LoopTimings(
            interval=self._config.batch.interval_seconds,
            until=end,
            probe=probes,
            pause=probes.pause,
            on_progress=lambda committed, seconds: self.report_progress(engine, committed, seconds),
            rest=engine.rest,
            fold=self.folder(self._drain.is_set).fold,
            watched=lambda plan: self._watched(engine, plan),
        )
        self._report(ReportPhase.RUNNING)
        with self._watch.started():
            Loop(self.consumer, self._watch, timings, self._drain, isolator).run()

    @contextlib.contextmanager
    def _watched(self, engine: ReadSettings, plan: BatchPlan) -> Iterator[None]:
        """A batch from its begin to its end: reported, and watched. Its tasks know the retention that the last audit found."""
        assert self._watch is not None  # noqa: S101 - loop() set it
        self.queue_up()
        engine.identity = self.consumer.identity or engine.identity
        self._open = plan.number
        self._reporter.update(lambda report: replace(report, open_batch=plan.number))
        self._progress.load.begin()
        try:
            with self._watch.batch(plan):
                yield
        finally:
            self._progress.load.end()

    def _rest(self, seconds: float) -> bool:
        """A pause that counts as no batch's time; whether the driver is to drain."""
        with self._watch.resting() if self._watch else contextlib.nullcontext():
            drains = self._drain.wait(seconds)
            self.queue_up()
            return drains

    @property
    def done(self) -> str:
        """What this epoch has done, and what the start of the consumer has missed, for the exit message of a run that reached its end."""
        millis = None
        with contextlib.suppress(Exception):  # it reached its end, whether the table answers or not
            millis = bootstrap.expired_before(self.consumer.store, self.consumer.row) if self.consumer.row else None
        oldest = f"; records that arrived before {retention.iso_time(millis)} had expired at the first start" if millis else ""
        return self._progress.counts() + oldest

    def open_batch(self, *, ask: bool) -> OpenBatch | None:
        """The batch that was begun and is not committed, for the exit message; its content, if the table may be asked and answers."""
        rows = None
        if self._open is not None and ask:
            with contextlib.suppress(Exception):
                rows = [row for row in self.consumer.store.shards().values() if row.batch == self._open]
        return None if self._open is None else OpenBatch(self._open, self._config.name, self._config.stream.name, rows)

    def _isolator(self, engine: SparkEngine) -> Isolator | None:
        how = self._config.on_error
        check_former(self.consumer.store, self.consumer.view.committed, how.dead_letter if how else None)
        if how is None:
            assert self.consumer.row is not None  # noqa: S101 - begin() set it
            pipelines.LETTERS.keep(self.consumer.row.consumer_id, None)  # that of a run before, in the same process
            self._unpublished()
            return None
        source = ShardReader(self.kinesis(), self.consumer.catalog, self.consumer.identify())
        here = poison_ports.SessionParts(
            source,
            self._rest,
            self._patience(),
            state=self._failing,
            excluded=lambda text: self._progress.warnings.keep(WarningReason.POISON_EXCLUDED, text),
        )
        isolator = poison_ports.isolator(self.consumer, engine, how, here)
        self._unpublished()
        if isolator is not None:
            self._progress.dead_letters = lambda: isolator.excluded
        return isolator

    def _unpublished(self) -> None:
        """Dead letters that wait for a driver whose configuration knows their destination."""
        for entry in self.consumer.unpublished:
            logs.warn(f"dead letters of a committed batch wait at {entry}: start once with onError.deadLetter as it was, and they are published")

    def _patience(self) -> SettlePatience:
        """As long as a batch that does not move, at most: a wait that cannot be switched off."""
        return SettlePatience(self._config.lease_duration_seconds, self._config.batch.max_seconds or MAX_SECONDS)

    def _failing(self, text: str | None) -> None:
        """A batch comes again, or passed at last: said, and reported for as long as it is so."""
        self._progress.warnings.lasts(WarningReason.ISOLATING, text, again=True)
        self._reporter.update(self._progress.onto)

    def close(self) -> None:
        """Ends what a process would take with it."""
        self._metrics.close()

    def current_warnings(self) -> tuple[DriverWarning, ...]:
        """What has to be looked at even while a batch takes its time: the warnings of the report."""
        assert self.consumer.identity is not None  # noqa: S101 - begin() set it
        now = self._service_time.now(self.consumer.listed_millis)
        stream = self.consumer.identity
        view = self.consumer.view
        near = retention.near(view, stream.retention_millis, now, stream.created_millis, self._finished(view))
        self._progress.warnings.lasts(WarningReason.RETENTION_NEAR, near)
        return self._progress.warnings.reported

    def busy(self, report: DriverReport) -> DriverReport:
        """The report with how busy this epoch is now: a batch that takes its time is work, and one that does not come is none."""
        return replace(report, busy=steady(report.busy, self._progress.load.busy))

    def _finished(self, view: TableView) -> frozenset[str]:
        return self._backfill.end.finished(view) if self._backfill else frozenset()

    def kinesis(self) -> HttpKinesis:
        """The client of the stream that this epoch has; its calls are counted. It goes with the epoch: a pool's driver has thousands of them."""
        if self._client is None:
            self._client = client(self._config.stream.address, self._kinesis)
        return self._client

    def probes(self) -> ProbeScheduler:
        """Which shards are idle, within the share of their calls that the user gave."""
        kinesis = client(self._config.stream.address, self._kinesis, once=True)
        return ProbeScheduler(lambda row: KinesisProber(kinesis, row.id, row.end), limits=ProbeLimits.of(self._config.stream.probe_share))

    def folder(self, stops: Callable[[], bool]) -> Folder:
        """Folds rows of shards that are over, between two batches; whether the driver `stops` is asked before each transaction."""
        store = wiring.folding_store(self._config, self._calls.requests.listener(DYNAMODB))
        return Folder(self.consumer, FoldPorts(store, time.monotonic, stops))

    def report_progress(self, engine: ReadSettings, committed: Committed | None, seconds: float) -> None:
        """A batch was committed that took so many seconds, or there is nothing to read: lines, metrics, report."""
        self._open = None
        if committed is None and self._progress.behind is None:
            self._progress.behind = 0  # a query of Structured Streaming may find nothing to read before its first batch
        engine.identity = self.consumer.identity or engine.identity  # the last audit may have found another retention
        if committed is not None:
            self._calls.carried(committed.rows)
            self._metrics.batch(committed)
            more = f"; {self._backfill.line()}" if self._backfill else ""
            logs.say(self._progress.add(committed, seconds) + more)
            self._suspect(committed.notes)
        self.current_warnings()
        self._report(ReportPhase.DRAINING if self._drain.is_set() else ReportPhase.RUNNING if committed else ReportPhase.IDLE)

    def _report(self, phase: ReportPhase) -> None:
        self._reporter.update(lambda report: self._progress.onto(replace(report, phase=phase, deadline=None, open_batch=None)))

    def _suspect(self, notes: Iterable[str]) -> None:
        for note in notes:
            self._progress.warnings.keep(WarningReason.DATA_LOSS_SUSPECTED, note)

    def _watch_source(self) -> None:
        def positions() -> migrated_source.Positions:
            claim, stream = MigrationStore(self.consumer.store.table).claim(), self.consumer.identity
            return migrated_source.positions(wiring.sources(self._config), claim, stream) if claim and stream else {}

        migrated_source.watch(self._drain.wait, positions, self._source_moved)

    def _source_moved(self, moved: int) -> None:
        assert self._config.migrate_from is not None  # noqa: S101 - it is watched
        text = f"the consumer of table {self._config.migrate_from.table} still works: {counted(moved, 'position')} moved there between two looks"
        self._progress.warnings.lasts(WarningReason.SOURCE_MOVED, text if moved else None, again=True)


def root_cause(consumer: Consumer, error: Exception) -> Exception:
    """The reason behind Spark's exception: a later epoch took over, the stream was deleted or made again, or a task refused to read it.

    Else the exception itself.
    """
    with contextlib.suppress(Exception):
        row = consumer.store.consumer()
        if row is not None and row.generation != consumer.epoch.generation:
            return Fenced(f"a later epoch took over: {error}")
    try:
        consumer.identify()
    except Refused as refused:
        return refused
    except Exception:  # it may only be unreachable: then nothing is known
        log.exception("the stream could not be described")
    with contextlib.suppress(Exception):  # a JVM that is gone does not say what its exception was
        return failures.refusal(error) or error
    return error
