"""Runs a pipeline on emulators until it is stopped; a saved file is reloaded, in the same Spark."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from pyspark import SparkContext
from pyspark.sql import SparkSession
from rich.console import Console
from rich.markup import escape

from sluice_consumer import embedded
from sluice_consumer.dev.emulator import CREDENTIALS, emulators
from sluice_consumer.dev.feeder import Feeder
from sluice_consumer.dev.reload import UserModules
from sluice_consumer.process import entrypoint_check
from sluice_consumer.spark.entrypoint import load
from sluice_consumer.spark.local_session import local_session

REGION, TABLE = CREDENTIALS["AWS_DEFAULT_REGION"], "dev-sluice"
LEASE_SECONDS = 10.0  # waited out after an error of the user's


@dataclass(frozen=True)
class DevOptions:
    """What a person asks for.

    Attributes:
        entrypoint: `module:function`.
        file: lines come from there; None: from standard input.
        args: `info.args`.
        shards: of the stream.
        interval: seconds from batch to batch.
    """

    entrypoint: str
    file: Path | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    stream: str = "orders"
    shards: int = 2
    interval: float = 1.0


class DevSession:
    """One run of `dev`."""

    def __init__(self, options: DevOptions, console: Console) -> None:
        self._options, self._console = options, console
        self._over, self._drain, self._changed = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        """Returns when it was stopped. All that it started has ended then.

        Raises:
            Refused: the function does not exist, or moto is not installed.
        """
        sys.dont_write_bytecode = True  # Python takes a file that was saved twice in a second for unchanged otherwise
        sys.path[:0] = [str(Path.cwd())]
        entrypoint_check.check(self._options.entrypoint)
        os.environ.update(CREDENTIALS)
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            os.environ.pop(name, None)
        self._say("starting Kinesis, DynamoDB and Spark on this machine")
        try:
            with emulators() as endpoint, local_session() as spark:
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, self._stop)
                self._feed(endpoint)
                self._loop(spark, endpoint)
        finally:
            self._over.set()
            end_jvm()
        self._say("Stopped. The emulators and Spark were shut down and their data discarded.")

    def _feed(self, endpoint: str) -> None:
        client = boto3.client("kinesis", endpoint_url=endpoint, region_name=REGION)
        client.create_stream(StreamName=self._options.stream, ShardCount=self._options.shards)
        Feeder(client, self._options.stream, self._say).start(self._options.file)
        source = self._options.file or "what you type"
        self._say(f"each line of {source} is a record of stream {self._options.stream} ({endpoint})")
        self._say("save a source file to reload it; press Ctrl-C to stop")

    def _loop(self, spark: SparkSession, endpoint: str) -> None:
        modules = UserModules(self._options.entrypoint)
        modules.watch(self._over, self._on_save)
        while not self._over.is_set():
            self._changed.clear()
            self._drain.clear()
            if not self._over.is_set():
                modules.forget()
                self._once(spark, endpoint, modules)

    def _once(self, spark: SparkSession, endpoint: str, modules: UserModules) -> None:
        """Until a file is saved. What fails is shown, and waits for the next one."""
        try:
            load(self._options.entrypoint)
            modules.send_by_value()
            self._say(f"running {self._options.entrypoint}")
            embedded.run(spark, self._config(endpoint), drain=self._drain, tell=self._say)
        except embedded.LeaseLost as error:  # this machine was too busy to beat
            self._say(f"{error}; running it again")
        except Exception as error:  # noqa: BLE001 - the user's, and to be shown
            self._console.print(f"[bold red]{escape(type(error).__name__)}[/]: {escape(str(error))}", highlight=False, soft_wrap=True)
            self._say("waiting until you save a file; then the batch comes again, with the same content")
            self._changed.wait()

    def _config(self, endpoint: str) -> dict[str, Any]:
        options = self._options
        return {
            "stream": {"name": options.stream, "region": REGION, "kinesisEndpoint": endpoint, "dynamodbEndpoint": endpoint},
            "checkpoints": {"table": TABLE},
            "pipeline": {"entrypoint": options.entrypoint, "args": dict(options.args)},
            "batch": {"intervalSeconds": options.interval},
            "leaseDurationSeconds": LEASE_SECONDS,
        }

    def _on_save(self) -> None:
        self._say("a file was saved; the new code runs when the open batch is done")
        self._wake()

    def _stop(self, *_: object) -> None:
        """The second time, without waiting for the open batch."""
        if self._over.is_set():
            raise KeyboardInterrupt
        self._over.set()
        self._say("stopping when the open batch is done; press Ctrl-C again to stop now")
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
