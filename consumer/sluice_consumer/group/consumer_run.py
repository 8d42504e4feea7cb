"""One epoch of one consumer in the driver of a group: its thread, and how that is ended (docs/groups.md)."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.store import Epoch
from sluice_consumer import logs, sinks
from sluice_consumer.config import Config
from sluice_consumer.driver_report import DriverWarning
from sluice_consumer.exits import stacks
from sluice_consumer.exits.ending import END_REACHED, STOPPED, Ending, Interrupted, ending_of
from sluice_consumer.group.ends import ends_for_good
from sluice_consumer.group.messages import Begin, Over, shortened
from sluice_consumer.group.prepare_watch import PrepareControls, PrepareWatch, StartOverdue
from sluice_consumer.group.turns import SlotQueue, StartTurns
from sluice_consumer.pipelines import NotNow
from sluice_consumer.poison.isolator import BatchInterrupt, BatchOverdue, Isolator
from sluice_consumer.process import pod
from sluice_consumer.process.session import Session, WorkLease, root_cause
from sluice_consumer.process.supervisor import STOP_SECONDS
from sluice_consumer.spark import threads
from sluice_consumer.spark.conf import EXTENSIONS
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.spark.job_tags import PREFIX, TaggedWork, tag_of
from sluice_consumer.spark.jobs import Remembered
from sluice_consumer.watchdog import overdue
from sluice_consumer.watchdog.armed_timer import PROCESS, ArmedTimer
from sluice_consumer.watchdog.batch_watch import WatchPorts
from sluice_consumer.watchdog.overdue_here import RunControls, RunWatch, raise_in

log = logging.getLogger(__name__)
POOL = "spark.scheduler.pool"
SETTLE_SECONDS = 0.2
NOTE_SECONDS = 10.0  # between two looks at the jobs of a run that continues: Spark keeps 10,000 stages, which is 1,000 a second
LOST = Ending(1, "LeaseLost", "the work of this consumer was ended, because its lease was lost; the open batch comes again")
JVM_SECONDS = 20.0  # for the JVM to answer, after a run that failed


@dataclass(frozen=True)
class RunPorts:
    """What a run is given.

    Attributes:
        spark: the group's session; a run makes one of its own over the same Spark.
        share: of the slots, for the tasks that read a batch.
        doing: hears where the batch is. stuck: ends the driver, because a batch does not end.
        began: hears of the session, whose metrics are served.
        gone: ends the driver, because Spark has ended or does not answer: no consumer would ever get on.
        reporter: hears what the operator is to know.
        memory: of the jobs of all consumers.
        turns: of runs that begin. queue: of batches for slots.
    """

    spark: SparkSession
    share: float
    doing: Callable[[ArmedTimer | None], None]
    stuck: Callable[[str, str], None]
    began: Callable[[Session], None] = lambda _session: None
    gone: Callable[[], None] = lambda: None
    reporter: pod.Reporter = field(default_factory=lambda: pod.Reporter(None))
    memory: Remembered | None = None
    turns: StartTurns = field(default_factory=lambda: StartTurns(time.monotonic))
    queue: SlotQueue = field(default_factory=lambda: SlotQueue(time.monotonic))


class ConsumerRun:
    """One run. `start` it, `look` once in a while; `end` ends it sooner.

    Attributes:
        drain: to be set when the open batch is to be the last one.
        result: how it ended, once it is proven that nothing of it works.
    """

    def __init__(self, config: Config, begin: Begin, ports: RunPorts) -> None:
        self.drain = threading.Event()
        self._config, self._begin, self._ports = config, begin, ports
        self._thread = threading.Thread(target=self._run, name=f"consumer {config.name}", daemon=True)
        self._work: TaggedWork | None = None
        self._engine: SparkEngine | None = None
        self._session: Session | None = None
        self._ending = Ending(1, "BatchOverdue", "the run was interrupted; its batch comes again")
        self._interrupted = self._left = self._lost = False
        self._leaving = threading.Lock()
        self.result: Over | None = None

    @property
    def name(self) -> str:
        """Of the consumer."""
        return self._config.name

    def report(self, executors: int) -> None:
        """Reports what changes while a batch takes its time. `executors`: those that Spark knows."""
        warnings = self._session.current_warnings() if self._session else ()
        self._ports.reporter.update(lambda report: replace(report, executors=executors, warnings=warnings))
        if self._session:
            self._ports.reporter.update(self._session.busy)

    def start(self) -> None:
        """Begins.

        Raises:
            RuntimeError: this process may have no more threads; nothing of the run works.
        """
        threading.Thread(target=self._settle, name=f"end of {self._config.name}", daemon=True).start()

    def end(self) -> None:
        """One step towards its end, if it still works. Called about once a second, and waits for nothing."""
        self._lost = True
        self.drains()
        if self._work is not None:
            with contextlib.suppress(RuntimeError):  # this process may have no more threads; the next step tries again
                overdue.aside(self._work.cancel)
        self._interrupt(again=stacks.in_process)

    def drains(self) -> None:
        """The open batch is to be the last one. Once that is so, nothing is locked here that an interrupted thread may have kept."""
        if not self.drain.is_set():
            self.drain.set()

    def _interrupt(self, again: Callable[[int], bool]) -> None:
        """Raises in the thread. `again`: whether one that was interrupted before, by its number, is interrupted once more."""
        with self._leaving:  # the number of a thread that has ended may be another's
            ident = self._thread.ident
            if not self._left and self._thread.is_alive() and ident and (not self._interrupted or again(ident)):
                self._interrupted = True
                raise_in(ident, BatchInterrupt)

    def _settle(self) -> None:
        """Starts its thread, and waits, in one of its own, until nothing of it works. Jobs that its thread has left are cancelled.

        If Spark cannot prove it for a whole lease, the lease is left to run out, which takes another one. A lease that is lost ends the driver
        before.
        """
        try:
            self._thread.start()
        except RuntimeError as error:  # this process may have no more threads
            self.result = self._over(ending_of(error), quiet=True)
            return
        while self._thread.is_alive():
            self._thread.join(NOTE_SECONDS)
            if self._work is not None:
                self._work.is_over()  # which remembers what is
        with contextlib.suppress(RuntimeError):  # no thread to ask in; while this run ends, others may have ended
            if not ends_for_good(self._ending) and not threads.can_work(self._ports.spark, JVM_SECONDS):
                self._ports.gone()
        until = time.monotonic() + self._config.lease_duration_seconds
        while self._work is not None and not self._work.is_over():
            if time.monotonic() > until:
                logs.warn(f"Spark did not report that the tasks of {self._config.name} are over: its lease is not released")
                self._interrupted = True
                break
            with contextlib.suppress(RuntimeError):
                overdue.aside(self._work.cancel).join(overdue.CANCEL_SECONDS)
            time.sleep(SETTLE_SECONDS)
        end = LOST if self._lost and self._ending.code == 0 else self._ending  # `end` made it drain, and nobody had asked for that
        self.result = self._over(end, quiet=self._quiet())

    def _over(self, end: Ending, *, quiet: bool) -> Over:
        return Over(self._begin.name, self._begin.generation, end.code, end.reason, shortened(end.message), quiet)

    def _quiet(self) -> bool:
        """Whether the lease may be released: it may not after an interrupt, nor while a lost executor may work."""
        if self._interrupted or self._engine is None:
            return not self._interrupted
        try:
            self._engine.observe()
            return self._engine.quiet()
        except Exception:  # of a context that was stopped
            log.exception("Spark did not report whether tasks of %s work", self._config.name)
            return False

    # -- the thread ----------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._worked()
        finally:
            with self._leaving:
                self._left = True

    def _worked(self) -> None:
        with logs.of(self._config.name):
            try:
                self._ending = self._ran()
            except BatchInterrupt:
                log.debug("interrupted")
            except SystemExit as error:
                self._ending = Ending(1, "SystemExit", f"the consumer's own code called for an exit: {error.code}")
            except Exception as error:
                log.debug("the run failed", exc_info=True)
                self._ending = ending_of(error)

    def _ran(self) -> Ending:
        begin, config = self._begin, self._config
        lease = WorkLease(Epoch(begin.generation, begin.token), begin.how, begin.wait_out_millis)
        work = Session(replace(config, metrics=None), lease, self._ports.reporter, self.drain)
        if begin.spec_hash:
            work.spec = replace(work.spec, hash=begin.spec_hash)
        self._ports.began(work)
        controls = RunControls(self._cancel, self.drain.set, self._stuck, self.drain.is_set, config.drain_timeout_seconds + STOP_SECONDS)
        watch = RunWatch(controls)
        try:
            self._batches(work, watch)
        except (Exception, BatchInterrupt) as error:
            if watch.error is not None:
                raise watch.error from error
            if isinstance(error, (NotNow, Refused, BatchInterrupt, StartOverdue)):
                raise
            raise root_cause(work.consumer, error) from error
        finally:
            self._ports.turns.end(self)
            self._ports.queue.leave(self)
            work.close()
        if watch.error is not None:
            raise watch.error
        if config.until is None:
            return Ending(0, "Drained", work.done)
        return ending_of(Interrupted(STOPPED)) if self.drain.is_set() else Ending(0, END_REACHED, work.done)

    def _batches(self, work: Session, watch: RunWatch) -> None:
        self._ports.turns.take(self, self.drain)
        work.begin(in_pod=False)
        self._session = work
        assert work.consumer.row is not None  # noqa: S101 - begin() set it
        spark = self._ports.spark.newSession()
        self._work = TaggedWork(spark, tag_of(work.consumer.row.consumer_id, self._begin.generation))
        give_settings(spark, self._config)
        work.wait_out()
        self._queue_up()
        with self._preparing(), PrepareWatch(self._over_prepare(watch)).watching():
            engine = self._engine = work.engine(spark, share=self._ports.share)
        self._ports.queue.leave(self)  # its first batch may be hours away
        engine.remember(self._ports.memory)
        work.queue_up = self._queue_up

        def watching(engine: SparkEngine, isolator: Isolator | None, warn: Callable[[DriverWarning], None]) -> WatchPorts:
            return replace(watch.ports(engine, isolator, warn), mark=self._mark)

        work.loop(engine, watching=watching)

    @contextlib.contextmanager
    def _preparing(self) -> Iterator[None]:
        """`prepare` is the user's code, as `process` is. If the driver dies of it, this consumer is named, and no other."""
        self._ports.doing(ArmedTimer(0, PROCESS, math.inf))
        try:
            yield
        finally:
            self._ports.doing(None)

    def _mark(self, armed: ArmedTimer | None) -> None:
        """Under the lock of a watch: it waits for nobody."""
        if armed is None:
            self._ports.turns.end(self)
            self._ports.queue.leave(self)
        self._ports.doing(armed)

    def _queue_up(self) -> None:
        """Jobs that this thread starts from now on come behind those of batches that are under way."""
        self._ports.spark.sparkContext.setLocalProperty(POOL, f"{PREFIX}{self._ports.queue.join(self, self.drain)}")

    def _over_prepare(self, watch: RunWatch) -> PrepareControls:
        return PrepareControls(
            cancel=lambda: overdue.aside(self._cancel),
            interrupt=lambda: self._interrupt(again=lambda _ident: True),
            where=self._where,
            late=watch.late,
            stuck=partial(self._ports.stuck, StartOverdue.__name__),
        )

    def _where(self) -> str:
        _log_threads()
        return stacks.innermost(self._thread.ident)

    def _cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def _stuck(self) -> None:
        """A batch that neither cancelled jobs nor interrupts have ended: its lease may not be given up while its thread works."""
        ident = self._thread.ident
        where = stacks.place(stacks.main_stack(ident)) if ident and self._thread.is_alive() else "nowhere"
        _log_threads()
        self._ports.stuck(BatchOverdue.__name__, f"the batch of {self._config.name} does not end though it was stopped; process is at {where}")


def _log_threads() -> None:
    with contextlib.suppress(Exception):
        log.error("Python's threads:\n%s", stacks.python_stacks())


def give_settings(spark: SparkSession, config: Config) -> None:
    """Sets in the consumer's session what its sink asks for. What `sparkConf` says stays.

    Raises:
        Refused: Spark takes a setting only when it starts, and was started without it.
    """
    for key, asked in sinks.settings(config.pipeline.entrypoint, config.pipeline.args).items():
        has: str | None = spark.conf.get(key, None)
        if key == EXTENSIONS and not set(asked.split(",")) <= set((has or "").split(",")):
            raise _missing(key, asked)
        if has is None:
            try:
                spark.conf.set(key, asked)
            except PySparkException as error:
                raise _missing(key, asked) from error


def _missing(key: str, asked: str) -> Refused:
    return Refused(f"pipeline.entrypoint: its sink needs {key}={asked}, and Spark was started without it; add it to sparkConf of the pool")
