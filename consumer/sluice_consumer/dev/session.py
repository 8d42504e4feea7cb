"""Runs a pipeline on emulators until it is stopped; a saved file is reloaded, in the same Spark."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from rich.console import Console
from rich.markup import escape

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer import config as configs
from sluice_consumer import embedded
from sluice_consumer.config import Config
from sluice_consumer.dev import jars
from sluice_consumer.dev.emulator import CREDENTIALS, emulators
from sluice_consumer.dev.feeder import Feeder
from sluice_consumer.dev.reload import OURS, UserModules
from sluice_consumer.exits import last_words
from sluice_consumer.exits.ending import java_words
from sluice_consumer.exits.user_failure import failure_of
from sluice_consumer.kinesis.codec import ENCODING
from sluice_consumer.process import entrypoint_check, spark_start
from sluice_consumer.process.lease_release import LeaseRelease
from sluice_consumer.sinks import class_path
from sluice_consumer.spark import features, java, spark_logs
from sluice_consumer.spark.entrypoint import find_in_working_folder, load
from sluice_consumer.spark.local_session import session_with

MASTER, LOOPBACK = "local[2]", "127.0.0.1,localhost"
NO_FILE = "press Ctrl-C, correct the manifest or set spec.onError, and start again"
RELEASE_SECONDS = 0.5  # from one look at the tasks of a run that failed to the next


@dataclass(frozen=True)
class DevOptions:
    """What is to run.

    Attributes:
        config: of a driver, without the addresses of Kinesis and DynamoDB.
        file: lines come from there; None: from standard input.
        shards: of the stream.
        environment: variables of the pipeline.
        notes: what a person should know before it begins.
    """

    config: Mapping[str, Any]
    file: Path | None = None
    shards: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class DevSession:
    """One run of `dev`."""

    def __init__(self, options: DevOptions, console: Console) -> None:
        """Raises Refused: the configuration is none of a driver."""
        self._options, self._console = options, console
        self._config = configs.parse(json.dumps(options.config))
        self._built_in = self._config.pipeline.is_built_in
        self._over, self._drain, self._changed = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        """Returns when it was stopped. All that it started has ended then.

        Raises:
            KeyboardInterrupt: it was stopped twice, or before anything had started. The same holds.
            Refused: the function or Java does not exist, moto is not installed, or this Spark cannot have what the sink needs.
        """
        sys.dont_write_bytecode = True  # Python takes a file that was saved twice in a second for unchanged otherwise
        find_in_working_folder()
        entrypoint_check.check(self._config.pipeline.entrypoint)
        self._set_environment()
        java.check(os.environ)
        settings = self._settings()
        for note in self._options.notes:
            self._say(note)
        self._listen()
        self._say("starting Kinesis, DynamoDB and Spark on this machine")
        try:
            with emulators(self._account()) as started, session_with(settings) as spark:
                self._listen()  # Spark has taken Ctrl-C for itself
                if not self._over.is_set():
                    endpoint = started()
                    self._feed(endpoint)
                    self._loop(spark, endpoint)
        finally:
            self._over.set()
            end_jvm()

    def _set_environment(self) -> None:
        """Variables of this process and of all that it starts. The emulators take any credentials, and do not speak CBOR."""
        os.environ.update(self._options.environment)
        os.environ.update(CREDENTIALS | {"AWS_DEFAULT_REGION": self._config.stream.region})
        os.environ.setdefault(ENCODING, "json")
        for name in ("NO_PROXY", "no_proxy"):  # records for the emulator stay on this machine, whatever proxy the manifest names
            os.environ[name] = ",".join(filter(None, (os.environ.get(name), LOOPBACK)))
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            os.environ.pop(name, None)

    def _account(self) -> str | None:
        """Of the stream, if its ARN names one: the emulators are in it, so that positions are those of that stream. No role is assumed for it."""
        arn = self._config.stream.arn
        return arn.split(":")[4] if arn else None

    def _settings(self) -> dict[str, str]:
        spark_logs.fold_queries()
        settings = spark_start.settings(self._config, None, MASTER)
        packages = jars.wanted(self._config.pipeline.entrypoint, settings, class_path.of_spark(settings), features.version())
        if not packages:
            return settings
        self._say(f"Spark fetches {' and '.join(packages)} from Maven Central, the first time: {', '.join(packages.values())}")
        return settings | {jars.PACKAGES: ",".join(packages.values())}

    def _listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _feed(self, endpoint: str) -> None:
        stream = self._config.stream
        try:
            client = boto3.client("kinesis", endpoint_url=endpoint, region_name=stream.region)
            client.create_stream(StreamName=stream.name, ShardCount=self._options.shards)
        except (BotoCoreError, ClientError) as error:
            raise Refused(f"stream: {stream.name} in {stream.region!r} cannot be created on the emulator: {error}") from error
        Feeder(client, stream.name, self._say).start(self._options.file)
        source = self._options.file or "what you type"
        self._say(f"each line of {source} is a record of stream {stream.name} ({endpoint})")
        self._say("press Ctrl-C to stop" if self._built_in else "save a source file to reload it; press Ctrl-C to stop")

    def _loop(self, spark: SparkSession, endpoint: str) -> None:
        modules = UserModules(self._config.pipeline.entrypoint)
        modules.watch(self._over, self._on_save)
        while not self._over.is_set():
            self._changed.clear()
            self._drain.clear()
            if not self._over.is_set():
                modules.forget()
                self._once(spark, self._at(endpoint), modules)

    def _once(self, spark: SparkSession, config: Config, modules: UserModules) -> None:
        """Until a file is saved. What fails is shown, and waits for the next one."""
        end = LeaseRelease()
        try:
            load(config.pipeline.entrypoint)
            modules.send_by_value()
            self._say(f"running {config.pipeline.entrypoint}")
            embedded.run_leaving(spark, config, self._drain, self._say, end)
        except embedded.LeaseLost as error:  # this machine was too busy to beat
            self._say(f"{error}; running it again")
        except Exception as error:  # noqa: BLE001 - the user's, and to be shown
            self._show(error)
            self._say(NO_FILE if self._built_in else "waiting until you save a file; then the batch comes again, with the same content")
            self._wait_for_a_change(end)

    def _wait_for_a_change(self, end: LeaseRelease) -> None:
        """Releases the lease first, so that the next run need not wait for it. A save in this time is not lost."""
        patience = 2 * self._config.lease_duration_seconds  # a job that never ends keeps the lease, and the next run waits it out
        until = time.monotonic() + patience
        with contextlib.suppress(SluiceError):  # the emulator does not answer, and the next run waits the lease out
            while not end.release() and time.monotonic() < until and not self._over.wait(RELEASE_SECONDS):
                pass
        self._changed.wait()

    def _show(self, error: Exception) -> None:
        failure = failure_of(error, self._config.pipeline.entrypoint.partition(":")[0].partition(".")[0], java_words(error))
        failure = replace(failure, frames=tuple(frame for frame in failure.frames if f"/{OURS}/" not in frame.file))
        self._console.print(
            f"[bold red]{escape(failure.kind)}[/]{escape(failure.summary.removeprefix(failure.kind))}", highlight=False, soft_wrap=True
        )
        for place in last_words.places(failure):
            self._console.print(f"  {place}", markup=False, highlight=False, soft_wrap=True)

    def _at(self, endpoint: str) -> Config:
        stream = replace(self._config.stream, kinesis_endpoint=endpoint, dynamodb_endpoint=endpoint)
        return replace(self._config, stream=stream)

    def _on_save(self) -> None:
        self._say("a file was saved; the new code runs after the open batch, if there is one")
        self._wake()

    def _stop(self, *_: object) -> None:
        """The second time, without waiting for the open batch. A JVM that PySpark does not know yet could not be ended, so it is waited for."""
        booting = SparkContext._gateway is None  # noqa: SLF001 - PySpark has no other word for it
        if self._over.is_set() and not booting:
            logging.disable()  # py4j logs the stack of the call that this interrupts
            raise KeyboardInterrupt
        if not self._over.is_set():
            self._over.set()
            self._say("stopping once Spark has started" if booting else "stopping after the open batch; press Ctrl-C again to stop now")
            self._wake()

    def _wake(self) -> None:
        self._drain.set()
        self._changed.set()

    def _say(self, text: str) -> None:
        self._console.print(f"[dim]{escape(text)}[/]", highlight=False, soft_wrap=True)


def end_jvm() -> None:
    """Waits for Spark's JVM, which ends when its standard input does."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark leaves it running
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
