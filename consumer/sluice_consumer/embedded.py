"""A consumer in a Spark session that somebody else made: a notebook, a job of a managed platform (docs/plain-pyspark.md).

Supervisor and driver are threads of one process here, since there is no process to start. A lost lease cancels the Spark jobs of this
epoch, but cannot end a `process` that is busy with something else. None of its writes counts after the next epoch's fence, and what it still emits
is part of the same batch (docs/protocol.md, "Invariants").
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Fenced, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol.lease import TakenLease, Watcher, take_over
from sluice_consumer import config as configs
from sluice_consumer import logs
from sluice_consumer.config import Config
from sluice_consumer.poison.isolator import BatchInterrupt, BatchOverdue
from sluice_consumer.process import pod, supervisor, wiring
from sluice_consumer.process.lease_release import LeaseRelease
from sluice_consumer.process.session import Session, WorkLease, root_cause
from sluice_consumer.process.supervisor import Heartbeats
from sluice_consumer.spark import conf
from sluice_consumer.spark.entrypoint import load
from sluice_consumer.spark.status import HEARTBEAT, heartbeat
from sluice_consumer.watchdog.overdue_here import RunControls, RunWatch

FAILURES, SPARK_FAILURES = "spark.executor.heartbeat.maxFailures", 60  # the second is Spark's default
LOOK_SECONDS = 0.05  # between two looks at jobs that were cancelled
log = logging.getLogger(__name__)


class LeaseLost(SluiceError):
    """No heartbeat was accepted for two thirds of the lease: whatever this epoch still does may no longer be its alone. Run it again."""


def run(
    spark: SparkSession,
    config: Mapping[str, Any] | str | Config,
    *,
    until: str | None = None,
    drain: threading.Event | None = None,
    tell: Callable[[str], object] = print,
) -> None:
    """Runs a consumer in this session, until the end of its run, or until `drain` is set: then the open batch is finished and the lease released.

    Args:
        spark: a classic session (not Spark Connect), with the package on its driver and executors.
        config: docs/interfaces.md, as a mapping, as JSON or parsed. A function of a notebook's own is `"entrypoint": "__main__:its_name"`.
        until: `"tip"`: return once everything is processed that had arrived before the start. An ISO 8601 time with a zone: stop in each shard
            before the first record that arrived then or later. None: the configuration's `until` counts.
        drain: to be set by another thread.
        tell: gets a line for every batch and every warning.

    Raises:
        Refused: the configuration, the stream, the table or the session's settings cannot be used; the message says what to change.
        LeaseHeld: another driver works on this table. LeaseLost, Fenced: the lease was lost in between.
        BatchOverdue: a batch did not end within `batch.maxSeconds`, or not within `drainTimeoutSeconds` and 20 s of `drain`.
        Exception: whatever `process` raised. The batch comes again, with the same content, in the next run.
    """
    parsed = config if isinstance(config, Config) else configs.parse(config if isinstance(config, str) else json.dumps(config))
    run_leaving(spark, configs.with_end(parsed, until), drain or threading.Event(), tell, LeaseRelease())


def run_leaving(spark: SparkSession, config: Config, drain: threading.Event, tell: Callable[[str], object], end: LeaseRelease) -> None:
    """As `run`, without an end of its own. If it fails while a task of it may still be working, `end` releases the lease later.

    Raises:
        Exception: see `run`.
    """
    with logs.told_to(tell):
        check_session(spark, config)
        load(config.pipeline.entrypoint)  # refused before there is a table or a lease
        _run(spark, config, drain, end)


def _run(spark: SparkSession, config: Config, stop: threading.Event, end: LeaseRelease) -> None:
    store = supervisor.open_table(config)
    taken = take_over(store, supervisor.claim(config), Watcher(notify=notify))
    heart = Heartbeats.of(taken, config, wiring.beating_store(config))
    end.give, end.due = lambda: store.release(taken.epoch), lambda: heart.clock() >= heart.keep_promise_until
    try:
        with _beating(spark, heart, stop) as cancel:
            _work(spark, config, taken, (heart, stop, end, cancel))
    except (Fenced, LeaseLost, BatchOverdue):
        end.keep()
        raise
    except Exception:
        with contextlib.suppress(Exception):  # the error counts; a session that is gone answers nothing, and the lease runs out
            end.observe()
            end.release()
        raise
    with contextlib.suppress(ServiceUnavailable):  # a clean end stays clean, and the lease runs out
        end.release()


def notify(seconds: float) -> None:
    """Says why nothing happens for a while."""
    logs.say(f"the previous driver did not release its lease; waiting {seconds:.0f} s to be sure that it has stopped")


RunParts = tuple[Heartbeats, threading.Event, LeaseRelease, Callable[[], None]]


def _work(spark: SparkSession, config: Config, taken: TakenLease, epoch: RunParts) -> None:
    heart, stop, end, cancel = epoch
    drained_by = config.drain_timeout_seconds + supervisor.STOP_SECONDS
    watch = RunWatch(RunControls(cancel, stop.set, heart.give_up, stop.is_set, drained_by))
    work = Session(config, WorkLease(taken.epoch, taken.how, taken.wait_out_millis), pod.Reporter(None), stop)
    try:
        work.begin(in_pod=False)
        work.wait_out()
        engine = work.engine(spark)
        end.quiet, end.observe = engine.quiet, engine.observe
        work.loop(engine, watching=watch.ports)
    except (Exception, BatchInterrupt) as error:
        if watch.error is not None:
            raise watch.error from error
        if not isinstance(error, Exception):
            raise
        raise_if_lost(heart, error)
        why = root_cause(work.consumer, error)
        if why is error:
            raise
        raise why from error
    finally:
        work.close()
    if watch.error is not None:
        raise watch.error
    raise_if_lost(heart)


def raise_if_lost(heart: Heartbeats, error: Exception | None = None) -> None:
    """Raises if this epoch may no longer work.

    Raises:
        Fenced: another epoch took the lease. LeaseLost: it may have.
    """
    if not heart.alive:
        raise (Fenced if heart.refused else LeaseLost)(heart.why) from error


@contextlib.contextmanager
def beating(heart: Heartbeats, lost: Callable[[], None]) -> Iterator[None]:
    """Beats in one thread and watches in another, which gives the epoch up and calls `lost`, again and again, once the lease is lost."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(heart.lease / 40):
            if not heart.alive:
                heart.give_up()
                lost()

    threads = [threading.Thread(target=each, name=name, daemon=True) for name, each in (("heart", heart.run), ("watchdog", watch))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        heart.stop.set()


@contextlib.contextmanager
def _beating(spark: SparkSession, heart: Heartbeats, stop: threading.Event) -> Iterator[Callable[[], None]]:
    """All jobs begun in here belong to one group. It is cancelled when the lease is lost, and at the end. Heartbeats continue until it is over.

    Gives what cancels it.
    """
    group, context = f"sluice-{id(heart)}", spark.sparkContext

    def lost() -> None:
        stop.set()
        context.cancelJobGroup(group)

    context.setJobGroup(group, "a consumer of Kinesis", interruptOnCancel=True)
    try:
        with beating(heart, lost):
            try:
                yield lambda: context.cancelJobGroup(group)
            finally:
                end_jobs(context, group, patience=heart.lease)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None removes it; the annotation forgot that


def end_jobs(context: SparkContext, group: str, patience: float) -> None:
    """Cancels what a group still runs and waits until it is over: the next epoch may begin a lease after the last heartbeat.

    Spark may not know that a job is over (it drops events when it is busy), so the wait has an end.
    """
    until = time.monotonic() + patience
    try:
        tracker = context.statusTracker()
        while running := set(tracker.getJobIdsForGroup(group)) & set(tracker.getActiveJobsIds()):
            if time.monotonic() > until:
                logs.warn(f"Spark jobs {sorted(running)} were cancelled and are not over after {patience:g} s")
                return
            context.cancelJobGroup(group)
            time.sleep(LOOK_SECONDS)
    except Exception:  # the session is gone, and its jobs with it; the error that ended the run is what counts
        log.exception("the Spark jobs of this run could not be cancelled")


def check_session(spark: SparkSession, config: Config) -> None:
    """Refuses a session whose executors may work on for longer than the lease when they are cut off, or that runs tasks twice.

    Raises:
        Refused: naming the settings; they belong to the cluster or application, for a running session cannot change them.
    """
    try:
        context = spark.sparkContext
    except Exception as error:
        raise Refused("the session is one of Spark Connect (on Databricks: shared or serverless); a classic one is needed") from error
    settings: Any = context._jsc.sc().conf()  # noqa: SLF001 - it reads "10s" and "2222ms" as Spark does
    if settings.getBoolean("spark.speculation", False):  # noqa: FBT003 - py4j has no keyword arguments
        raise Refused("spark.speculation: must be false; two attempts of a task side by side would wait for each other's lease")
    if conf.is_local(str(context.master)):
        return
    silent = round(1000 * heartbeat(spark)) * (settings.getInt(FAILURES, SPARK_FAILURES) + 1)
    if silent > config.lease_millis / 3:
        wanted = ", ".join(f"{key}={value}" for key, value in conf.cut_off(config).items())
        raise Refused(
            f"{HEARTBEAT}, {FAILURES}: an executor that is cut off works on for {silent / 1000:g} s, and a third of leaseDurationSeconds is "
            f"{config.lease_millis / 3000:g} s; set {wanted} where the application is started, or leaseDurationSeconds to {-(-silent * 3 // 1000)}"
        )
