"""The child process of a life: Spark and the batch loop. Started by the supervisor, which holds the lease."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Fenced, Refused, SluiceError
from sluice_checkpoints.lease import MARGIN
from sluice_checkpoints.store import Life
from sluice_consumer import logs, outcome, pod, ports, source_watch, spark_conf
from sluice_consumer.__main__ import configuration
from sluice_consumer.config import Config
from sluice_consumer.engine import SparkEngine
from sluice_consumer.executors import ExecutorTarget, SparkBackend, described
from sluice_consumer.kinesis_http import StreamAddress, connect
from sluice_consumer.life import Committed, Consumer
from sluice_consumer.loop import Loop, Rhythm
from sluice_consumer.outcome import UNCLEAN, Ending
from sluice_consumer.probe import Probe
from sluice_consumer.progress import Progress
from sluice_consumer.supervisor import LIFE

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Orders:
    """What the supervisor hands down in the environment."""

    generation: int
    token: str
    waitOutMillis: int  # noqa: N815 - as it travels
    reportNumber: int  # noqa: N815
    parent: int

    @staticmethod
    def from_environment() -> Orders:
        """Reads them, and makes sure that the supervisor still lives (it may have died before our death signal was set)."""
        orders = Orders(**json.loads(os.environ.pop(LIFE)))
        if os.getppid() != orders.parent:
            sys.exit("the supervisor is gone")
        return orders


class Driver:
    """One driver process.

    Attributes:
        consumer: its rows; also asked when it failed, and why.
    """

    def __init__(self, config: Config, orders: Orders, options: tuple[str | None, bool]) -> None:
        self._config, self._orders = config, orders
        self._master, self._until_tip = options
        self._drain = threading.Event()
        self._here = pod.from_environment()
        self._annotations = pod.PodAnnotations(self._here) if self._here else None
        self._reporter = pod.Reporter(self._annotations, number=orders.reportNumber)
        self.consumer = Consumer(ports.store(config), ports.catalog(config), Life(orders.generation, orders.token))
        self._progress = Progress(self.consumer, orders.generation)

    def run(self) -> Ending:
        """Everything, from fencing to a clean stop."""
        begun = time.monotonic()
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides what Ctrl-C means
        self._reporter.update(phase="Starting", generation=self._orders.generation, batch=0)
        self.consumer.begin(logs.say)
        spark = self._session()
        try:
            self._wait_out(begun)
            engine = self._engine(spark)
            self._start_helpers(spark)
            self._loop(engine)
            return Ending(0 if engine.quiet() else UNCLEAN, "", "")
        finally:
            self._reporter.update(phase="Draining")
            spark.stop()

    def _on_term(self, *_: object) -> None:
        logs.say("told to stop: the open batch is finished, then the lease is released")
        self._drain.set()

    def _session(self) -> SparkSession:
        settings = spark_conf.settings(self._config, self._here, self._master)
        builder = SparkSession.builder.config(map=dict[str, Any](settings))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        logs.say(f"starting Spark on {settings['spark.master']}")
        return builder.getOrCreate()

    def _wait_out(self, begun: float) -> None:
        """After a forced take, everybody before us may be working until the larger promise is over."""
        left = begun + self._orders.waitOutMillis / 1000 * MARGIN - time.monotonic()
        if self._orders.waitOutMillis and left > 0:
            self._reporter.update(phase="WaitingOutLease", deadline=logs.in_seconds(left))
            self._drain.wait(left)

    def _engine(self, spark: SparkSession) -> SparkEngine:
        assert self.consumer.row is not None  # noqa: S101 - begin() set it
        return SparkEngine(spark, self._config, self.consumer.identify(), (self._orders.generation, self.consumer.row.consumer_id))

    def _start_helpers(self, spark: SparkSession) -> None:
        if self._config.migrate_from is not None:
            threading.Thread(target=self._watch_source, name="source", daemon=True).start()
        if self._annotations is None or self._here is None:
            return
        initial = self._config.executors or 0
        target = ExecutorTarget(SparkBackend(spark.sparkContext), initial, self._config.drain_timeout_seconds, time.monotonic)
        prefix = spark.conf.get("spark.kubernetes.executor.podNamePrefix", self._here.name) or self._here.name
        threading.Thread(target=self._follow, args=(target, prefix), name="executors", daemon=True).start()

    def _watch_source(self) -> None:
        """Once, minutes after the start: whether the consumer that was replaced still writes."""
        if self._drain.wait(source_watch.SECONDS):
            return
        try:
            row = self.consumer.store.migration()
            warning = source_watch.moved(ports.sources(self._config), row) if row else None
        except Exception:  # only a warning hangs on it
            log.exception("the source of the migration could not be compared")
            return
        if warning:
            logs.warn(warning)
            self._progress.warn(warning)

    def _follow(self, target: ExecutorTarget, prefix: str) -> None:
        """Keeps the executors at the operator's target, and the report fresh."""
        while True:
            wanted = pod.wanted_executors(self._annotations) if self._annotations else None
            try:
                target.apply(target.total if wanted is None else wanted)
                draining = [described(d, prefix, time.monotonic(), datetime.datetime.now(datetime.UTC)) for d in target.draining.values()]
                self._reporter.update(executors=target.live, draining=draining)
            except Exception:  # the next step tries again; the batch loop must not die of it
                log.exception("the executor target could not be applied")
            time.sleep(pod.POLL_SECONDS)

    def _loop(self, engine: SparkEngine) -> None:
        stream = self._config.stream
        address = StreamAddress(stream.name, stream.region, stream.kinesis_endpoint)
        rhythm = Rhythm(
            interval=self._config.batch.interval_seconds,
            until_tip=self._until_tip,
            watch=lambda row: Probe(connect(address), row.id, row.end),
            told=self._told,
        )
        self._reporter.update(phase="Running", deadline=None, **self._progress.report())
        Loop(self.consumer, engine, rhythm, self._drain).run()

    def _told(self, committed: Committed | None, seconds: float) -> None:
        if committed is not None:
            logs.say(self._progress.add(committed, seconds))
        phase = "Draining" if self._drain.is_set() else "Running" if committed else "Idle"
        self._reporter.update(phase=phase, **self._progress.report())


def deeper(consumer: Consumer, error: Exception) -> Exception:
    """Why a batch really failed: a later life owns the table, or the stream is gone or another; then Spark's own words only hide it."""
    with contextlib.suppress(Exception):
        row = consumer.store.consumer()
        if row is not None and row.generation != consumer.life.generation:
            return Fenced(f"a later life took over: {error}")
    try:
        consumer.identify()
    except Refused as refused:
        return refused
    except Exception:  # it may only be unreachable: then nothing is known
        log.exception("the stream could not be described")
    return error


def attempt(driver: Driver) -> Ending:
    """Runs a driver and turns whatever it raised into an ending."""
    try:
        return driver.run()
    except SluiceError as error:
        return outcome.of(deeper(driver.consumer, error) if error.exit_code == 1 else error)
    except Exception as error:
        log.exception("the batch failed; it will come again, with the same content, in the next life")
        return outcome.of(deeper(driver.consumer, error))


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True)
@click.option("--master")
@click.option("--until-tip", is_flag=True)
def main(path: Path, master: str | None, until_tip: bool) -> None:  # noqa: FBT001 - click passes flags so
    """The driver process; started by `python -m sluice_consumer`."""
    logs.configure()
    orders = Orders.from_environment()
    ending = attempt(Driver(configuration(path), orders, (master, until_tip)))
    if ending.reason:
        outcome.report(ending)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ending.code)  # Spark's and probes' threads have nothing left to say


if __name__ == "__main__":
    main()
