"""The executors of a pool: their number follows the operator's, and every consumer reports it."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from sluice_consumer.config import Config
from sluice_consumer.driver_report import DriverReport, ReportPhase
from sluice_consumer.group.consumer_run import JVM_SECONDS
from sluice_consumer.group.driver import GroupDriver
from sluice_consumer.process.pod import POLL_SECONDS, Reporter
from sluice_consumer.spark import threads
from sluice_consumer.spark.executors import drains, target_of

log = logging.getLogger(__name__)
JVM_LOOKS = 8  # in which the JVM is asked once whether it works
WITHOUT_SHARDS = DriverReport(open_shards=0, ended_shards=0, held_shards=0)
PREFIX = "spark.kubernetes.executor.podNamePrefix"


class GroupExecutors:
    """Of a driver of a pool. `over`: Spark is about to be stopped."""

    def __init__(self, driver: GroupDriver, config: Config, reporter: Reporter) -> None:
        """`config`: what all share. `reporter`: of the pod."""
        self._driver, self._reporter, self.over = driver, reporter, threading.Event()
        self._target = target_of(driver.spark, config.executors or 0, config.drain_timeout_seconds, time.monotonic)
        self._prefix = driver.spark.conf.get(PREFIX, config.name) or config.name

    def follow(self) -> None:
        """Every two seconds, until it is `over`. Without consumers nobody else notices that Spark has ended."""
        looks = 0
        while not self.over.wait(POLL_SECONDS):
            looks += 1
            try:
                self.step()
            except Exception:  # the next step tries again; reports must not end with it
                log.exception("the executor target could not be applied")
            if looks % JVM_LOOKS == 0 and not threads.can_work(self._driver.spark, JVM_SECONDS) and not self.over.is_set():
                self._driver.gone()

    def step(self) -> None:
        """One step towards the target; then everybody reports. A consumer that cannot say how it is keeps no other from that."""
        wanted, target = self._driver.wanted, self._target
        target.apply(target.total if wanted is None else wanted)
        live, draining = target.live, drains(target, self._prefix)
        self._reporter.update(lambda _report: replace(WITHOUT_SHARDS, phase=ReportPhase.RUNNING, executors=live, draining=draining))
        for here in list(self._driver.runs.values()):
            try:
                here.run.report(live)
            except Exception:
                log.exception("a report was not made")
