"""The child process of an epoch: Spark and the batch loop.

Its supervisor starts it before it holds the lease, and before it knows whether Spark may start (`driver_program`). Until the orders come, it has no
generation and touches neither table nor stream.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import select
import signal
import threading
import time
from collections.abc import Callable
from io import FileIO

from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol.store import Epoch
from sluice_consumer import logs, pipelines
from sluice_consumer.config import Config
from sluice_consumer.driver_report import DriverWarning, ReportPhase
from sluice_consumer.exits.ending import END_REACHED, READY, STOPPED, Ending, Interrupted, OwnWord, ending_of, java_words, report
from sluice_consumer.exits.last_words import LastWords
from sluice_consumer.exits.user_failure import failure_of
from sluice_consumer.metrics.driver import DriverMetrics
from sluice_consumer.pipelines import NotNow
from sluice_consumer.process import pod
from sluice_consumer.process.lease_handoff import Guard, LeaseHandoff
from sluice_consumer.process.pod import PodAnnotations
from sluice_consumer.process.session import Session, WorkLease, root_cause
from sluice_consumer.process.sigterm import set_on_term
from sluice_consumer.process.supervisor import STOP_SECONDS
from sluice_consumer.spark import conf, threads, warmup_source
from sluice_consumer.spark.engine import SparkEngine, prepare
from sluice_consumer.spark.entrypoint import load
from sluice_consumer.spark.executors import ExecutorTarget, OwnProcess, drains, target_of
from sluice_consumer.spark.warmup import SparkWarmUps, WarmUp, warm_up_here
from sluice_consumer.watchdog.start_watch import StartWatch

log = logging.getLogger(__name__)
JVM_SECONDS = 20.0  # for the JVM to answer at all, before it is asked why the driver ends
STANDBY_LOOK_SECONDS = 15.0  # between two looks at the JVM of a driver that stands by
MUTE = f"Spark's JVM has not answered for {JVM_SECONDS:g} s, so the cause is not known; the driver's log may show it. The open batch comes again"
SPARK_SECONDS = STOP_SECONDS - 5  # for Spark to stop; the rest is the supervisor's, so that it need not kill


class SparkGone(SluiceError):
    """The JVM of a driver that stood by has ended, or hangs."""


def _warm_up(spark: SparkSession, config: Config) -> WarmUp | None:
    if conf.is_local(str(spark.sparkContext.master)):
        return None
    return WarmUp(SparkWarmUps(spark, warmup_source.options(config.stream)))


def _meanwhile(warm_up: WarmUp | None) -> contextlib.AbstractContextManager[None]:
    return warm_up.meanwhile() if warm_up else contextlib.nullcontext()


class Driver:
    """One driver process.

    Attributes:
        work: the epoch's, once there is one; also asked when it failed, and why.
        worked: whether a job of this epoch may have begun.
    """

    def __init__(self, config: Config, pipe: FileIO, start: Callable[[], SparkSession], *, standby: bool = False) -> None:
        """`pipe`: from the supervisor. `start`: starts Spark. `standby`: it gets ready for a lease that another driver holds."""
        self._config, self._pipe, self._start_spark, self._standby = config, pipe, start, standby
        self._drain = threading.Event()
        self._here = pod.from_environment()
        self._annotations = PodAnnotations(self._here) if self._here else None
        self._reporter = pod.Reporter(None)  # only its epoch's owner reports
        self._spark: SparkSession | None = None
        self._metrics = DriverMetrics()
        self.work: Session | None = None
        self.worked = False

    def run(self) -> Ending:
        """Everything, from starting Spark to the end of the last batch."""
        set_on_term(self._drain, lambda: logs.say("SIGTERM: the open batch is finished, then the lease is released"))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides what Ctrl-C means
        with StartWatch("the start of Spark").watching():
            spark = self._spark = self._start_spark()
        warm_up = _warm_up(spark, self._config)
        with _meanwhile(warm_up):
            if self._standby:
                self._get_ready(spark)
            orders = self._ordered()
        work = self._begun(orders)
        with _meanwhile(warm_up):
            work.wait_out()
        with StartWatch("the preparation of the pipeline").watching():
            engine = work.engine(spark, warm_up)
        self._start_following(spark, work)
        self.worked = True
        return self._worked_off(work, engine)

    def _worked_off(self, work: Session, engine: SparkEngine) -> Ending:
        """Batches until SIGTERM, the end of the run, a refusal, or `process` asks for its batch later. The last two may release the lease, too."""
        try:
            work.loop(engine)
        except (NotNow, Refused) as error:
            return dataclasses.replace(ending_of(error), quiet=self._quiet(engine))
        return dataclasses.replace(self._drained(work), quiet=self._quiet(engine))

    def _quiet(self, engine: SparkEngine) -> bool:
        """A JVM that does not answer does not say that nothing works."""
        return self._answers() and engine.quiet()

    def _answers(self) -> bool:
        return self._spark is None or threads.answers(self._spark, JVM_SECONDS)

    def _drained(self, work: Session) -> Ending:
        """A loop that ends, and was not drained, has reached the end of its run."""
        if self._config.until is None:
            return Ending(0, "", "")
        if self._drain.is_set():
            return ending_of(Interrupted(f"{STOPPED}; run it again to continue from there"))
        return Ending(0, END_REACHED, work.done)

    def ending(self, error: Exception) -> Ending:
        """How it ends. A refusal's own words are all that you need; the exit message of a failure says more."""
        if not self._answers():
            return Ending(getattr(error, "exit_code", 1), type(error).__name__, MUTE)
        try:
            return self._last_words(error if isinstance(error, SluiceError) and error.exit_code != 1 else _why(self, error))
        except Exception as other:  # noqa: BLE001 - a JVM that is gone does not say what its exception was
            log.warning("the exit message could not be determined: %r", other)
            return Ending(getattr(error, "exit_code", 1), type(error).__name__, repr(error.args))

    def _last_words(self, error: Exception) -> Ending:
        ending = ending_of(error)
        if ending.code != 1:
            return ending
        failure = failure_of(error, self._config.pipeline.entrypoint.partition(":")[0].partition(".")[0], java_words(error))
        batch = self.work.open_batch(ask=failure.kind != ServiceUnavailable.__name__) if self.work else None
        if isinstance(error, SluiceError) and batch is None:
            return ending
        words = LastWords(failure, batch, in_pod=self._here is not None)
        return dataclasses.replace(ending, reason=failure.kind, message=words.line, screen="\n".join(words.lines))

    def stop(self) -> bool:
        """Stops Spark, and says whether it stopped in time. It asks executors and the cluster's API, and may wait for them for ever."""
        self._reporter.update(lambda report: dataclasses.replace(report, phase=ReportPhase.DRAINING))
        if self._spark is None:
            return True
        thread = threading.Thread(target=self._spark.stop, name="stop", daemon=True)
        thread.start()
        thread.join(SPARK_SECONDS)
        return not thread.is_alive()

    def _ordered(self) -> LeaseHandoff:
        """Waits for the lease, and watches it from then on. Days may pass until a standby has it, and its JVM may end in that time.

        Raises:
            SparkGone: the JVM has ended, or does not answer.
        """
        while self._standby and not select.select([self._pipe], [], [], STANDBY_LOOK_SECONDS)[0]:
            if self._spark is not None and not threads.can_work(self._spark, JVM_SECONDS):
                raise SparkGone("Spark has ended, or did not answer, while this driver stood by. Nothing was read. Start a standby again")
        orders = LeaseHandoff.read(self._pipe)
        Guard(self._pipe, self._config.lease_duration_seconds, orders.sent).start()
        return orders

    def _get_ready(self, spark: SparkSession) -> None:
        """All that a start needs and that no lease, table or stream decides. What a pipeline prepares here, it prepares again under the lease."""
        self._metrics.stands_by(self._config.metrics, in_pod=self._here is not None)
        with StartWatch("the preparation of the standby").watching():
            process = load(self._config.pipeline.entrypoint)
            if pipelines.is_standby_safe(process):
                prepare(process, spark, self._config.pipeline.args)
            if conf.is_local(str(spark.sparkContext.master)):
                warm_up_here(spark, warmup_source.options(self._config.stream))
        OwnWord.mark(READY)
        logs.say("standing by: Spark and the pipeline are ready")

    def _begun(self, orders: LeaseHandoff) -> Session:
        self._reporter = pod.Reporter(self._annotations, number=orders.reportNumber)
        lease = WorkLease(Epoch(orders.generation, orders.token), orders.how, orders.waitOutMillis)
        self.work = Session(self._config, lease, self._reporter, self._drain, self._metrics)
        self.work.begin(in_pod=self._here is not None)
        return self.work

    def _start_following(self, spark: SparkSession, work: Session) -> None:
        if self._annotations is None or self._here is None:
            return
        target = target_of(spark, self._config.executors or 0, self._config.drain_timeout_seconds, time.monotonic)
        prefix = spark.conf.get("spark.kubernetes.executor.podNamePrefix", self._here.name) or self._here.name
        threading.Thread(target=self._follow, args=(target, prefix, work), name="executors", daemon=True).start()

    def _follow(self, target: ExecutorTarget | OwnProcess, prefix: str, work: Session) -> None:
        """Keeps the executors at the operator's target, and the report fresh."""
        while True:
            wanted = pod.wanted_executors(self._annotations) if self._annotations else None
            try:
                target.apply(target.total if wanted is None else wanted)
                self._reporter.update(_seen(target, prefix, work.current_warnings()))
                self._reporter.update(work.busy)
            except Exception:  # the next step tries again; the batch loop must not die of it
                log.exception("the executor target could not be applied")
            time.sleep(pod.POLL_SECONDS)


def _seen(target: ExecutorTarget | OwnProcess, prefix: str, warnings: tuple[DriverWarning, ...]) -> pod.ReportChange:
    draining = drains(target, prefix)
    return lambda report: dataclasses.replace(report, executors=target.live, draining=draining, warnings=warnings)


def attempt(driver: Driver) -> Ending:
    """Runs a driver and turns whatever it raised into an ending. Before its first job no task can be working."""
    try:
        return driver.run()
    except SystemExit as error:  # of the user's code, or before there were orders: no drain, whatever its code says
        ending = Ending(1, "SystemExit", f"the driver's own code called for its exit: {error.code}")
    except Exception as error:
        log.debug("the driver failed", exc_info=True)
        ending = driver.ending(error)
    return dataclasses.replace(ending, quiet=not driver.worked)


def finish(driver: Driver, ending: Ending) -> int:
    """Says how it ended, then stops Spark, and returns the exit status. A Spark that does not stop keeps neither the words back nor the lease."""
    if ending.reason:
        report(ending)
    if driver.stop():
        return ending.status
    log.warning("Spark did not stop within %g s: it is killed", SPARK_SECONDS)
    return dataclasses.replace(ending, quiet=False).status


def _why(driver: Driver, error: Exception) -> Exception:
    return root_cause(driver.work.consumer, error) if driver.work else error
