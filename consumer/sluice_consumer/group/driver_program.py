"""The driver's program of a group; its supervisor starts it (`group.program`)."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from prometheus_client import CollectorRegistry, start_http_server
from pyspark.sql import SparkSession

from sluice_consumer import logs
from sluice_consumer.config import Config, configuration, with_end
from sluice_consumer.exits.ending import OwnWord, ending_of, leave, report
from sluice_consumer.group import pool_config, shared_spark
from sluice_consumer.group.driver import GroupDriver
from sluice_consumer.group.group_executors import GroupExecutors
from sluice_consumer.group.messages import UP, Message, line
from sluice_consumer.group.report_files import POOL, ReportFile
from sluice_consumer.group.shared_spark import Member
from sluice_consumer.metrics.driver import all_addresses
from sluice_consumer.process import pod, sigterm, spark_start
from sluice_consumer.process.child_process import die_with_parent
from sluice_consumer.process.lease_handoff import permission, standard_input
from sluice_consumer.process.supervisor import STOP_SECONDS
from sluice_consumer.spark.job_memory import JobMemory
from sluice_consumer.spark.status import SparkStatus
from sluice_consumer.watchdog.start_watch import StartWatch

log = logging.getLogger(__name__)
MEMORY_SECONDS = 1.0  # between two looks at the jobs; Spark keeps 10,000 of them
SPARK_SECONDS = STOP_SECONDS - 5  # for Spark to stop


def settings(members: Sequence[Member], master: str | None) -> dict[str, str]:
    """Every setting of the session: of the group, and what the sinks of all ask for.

    Raises:
        Refused: an option of a sink is wrong, or two sinks ask for different values.
    """
    whole = shared_spark.of_all(members)
    whole_settings = dict[str, str]()
    for member in members:
        asked = spark_start.settings(shared_spark.with_pipeline(whole, member), None, master)
        for key, value in asked.items():
            whole_settings[key] = shared_spark.joined(key, whole_settings.get(key), value, member)
    return whole_settings


def start(members: Sequence[Member], master: str | None) -> SparkSession:
    """Starts Spark."""
    return spark_start.session_of(settings(members, master))


@click.command()
@click.option("--config", "paths", type=click.Path(path_type=Path), multiple=True)
@click.option("--pool", "pool_path", type=click.Path(path_type=Path))
@click.option("--reports", type=click.Path(path_type=Path))
@click.option("--master")
@click.option("--slot-share", "share", type=float, default=1.0)
@click.option("--until")
def main(pool_path: Path | None, reports: Path | None, **options: Any) -> None:
    """The driver process of a group: of the consumers of these files, or of a pool, whose consumers come later."""
    logs.configure()
    die_with_parent()
    OwnWord.open()
    pipe, up = standard_input(), int(os.environ.pop(UP))
    os.set_inheritable(up, False)  # noqa: FBT003 - its only argument
    os.environ.update(permission(pipe))
    try:
        with StartWatch("the start of Spark").watching():
            driver, config = of_pool(pool_path, sender(up), options) if pool_path else of_files(sender(up), **options)
    except Exception as error:  # noqa: BLE001 - reported; nothing has begun
        report(ending_of(error))
        leave(ending_of(error).code)
    serve(config, driver)
    sigterm.ignore()
    executors = GroupExecutors(driver, config, ReportFile(reports / POOL)) if reports else None
    if reports and executors:
        driver.reports, driver.leaves = lambda begin: ReportFile(reports / begin.name), True
        threading.Thread(target=executors.follow, name="executors", daemon=True).start()
    stop = threading.Event()
    driver.memory = JobMemory(SparkStatus(driver.spark))
    threading.Thread(target=remember, args=(driver.memory, stop), name="jobs", daemon=True).start()
    driver.follow(pipe)
    stop.set()
    if executors:
        executors.over.set()
    stopping = threading.Thread(target=driver.spark.stop, name="stop", daemon=True)
    stopping.start()
    stopping.join(SPARK_SECONDS)
    leave(0)


def of_files(
    up: Callable[[Message], bool], *, paths: Sequence[Path], master: str | None, share: float, until: str | None
) -> tuple[GroupDriver, Config]:
    """Starts Spark for the consumers of these files; and the settings that all share.

    Raises:
        Refused: a configuration is wrong, or a sink's options are.
    """
    members = [shared_spark.member(path, with_end(configuration(path), until)) for path in paths]
    configs = {member.key: member.config for member in members}
    return GroupDriver(lambda begin: configs[begin.name], start(members, master), share, up), shared_spark.of_all(members)


def of_pool(path: Path, up: Callable[[Message], bool], options: Mapping[str, Any]) -> tuple[GroupDriver, Config]:
    """Starts Spark for a pool, whose consumers come later, each with a file of its own.

    Raises:
        Refused: the configuration is wrong.
    """
    pool = pool_config.read(path)
    spark = spark_start.session_of(spark_start.settings(pool.whole, pod.from_environment(), options["master"]))
    return GroupDriver(lambda begin: shared_spark.in_group(configuration(Path(begin.path))), spark, pool.slot_share, up), pool.whole


def remember(memory: JobMemory, stop: threading.Event) -> None:
    """Looks at all jobs once a second. A look that fails is made again; until then, batches are judged by what Spark knows."""
    while not stop.wait(MEMORY_SECONDS):
        try:
            memory.observe()
        except Exception:  # a JVM that is busy or gone
            if not stop.is_set():
                log.exception("Spark did not report its jobs")


def sender(number: int) -> Callable[[Message], bool]:
    """Writes messages into a pipe, from any thread, and never waits: whether the pipe had room for all of it."""
    os.set_blocking(number, False)

    def up(message: Message) -> bool:
        with contextlib.suppress(OSError):
            return os.write(number, line(message)) > 0
        return False

    return up


def serve(config: Config, driver: GroupDriver) -> None:
    """Serves the metrics of all consumers, if a configuration has a port for them."""
    if config.metrics is None:
        return
    registry = CollectorRegistry()
    registry.register(driver.metrics)
    address = config.metrics.address or ("127.0.0.1" if pod.from_environment() is None else all_addresses())
    try:
        server, _ = start_http_server(config.metrics.port, address, registry)
    except OSError as error:
        logs.warn(f"metrics are not served on {address}, port {config.metrics.port}: {error}")
        return
    logs.say(f"metrics of all consumers: port {server.server_port} of {address}, /metrics")


if __name__ == "__main__":
    main()
