"""The built-in parquet pipeline on a real file system: two attempts at one batch, interleaved at every call."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer import pipelines
from sluice_consumer.pipelines import BatchInfo, Folder

pytestmark = pytest.mark.spark
NAME, COMPLETE = "000000000007", "all of the batch"


class Turns:
    """Lets a thread make one call at a time."""

    def __init__(self) -> None:
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self.done = False

    def pause(self) -> None:
        """The thread's side: stands before a call."""
        self._stands.release()
        self._go.acquire()

    def start(self, body: Any) -> None:
        """Runs a body up to its first call."""

        def run() -> None:
            try:
                body()
            finally:
                self.done = True
                self._stands.release()

        threading.Thread(target=run, daemon=True).start()
        self._stands.acquire()

    def step(self) -> None:
        """The test's side: one call."""
        if not self.done:
            self._go.release()
            self._stands.acquire()


class Stepped:
    """A Hadoop file system whose every call waits for its turn."""

    def __init__(self, system: Any, turns: Turns) -> None:
        self._system, self._turns = system, turns

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self._turns.pause()
            return getattr(self._system, name)(*arguments)

        return call


class Attempt:
    """One life's attempt at the batch."""

    def __init__(self, folder: Folder, number: int) -> None:
        self.turns, self.error = Turns(), None
        folder._system = Stepped(folder._system, self.turns)
        self.staging = f"_{NAME}.{number}"
        self.turns.start(lambda: self._publish(folder))

    def _publish(self, folder: Folder) -> None:
        try:
            if not folder.holds(NAME):
                self._write(Path(folder.path))
                folder.publish(self.staging, NAME)
            folder.remove_stagings(NAME)
        except OSError as error:
            self.error: BaseException | None = error

    def _write(self, path: Path) -> None:
        """A job in two halves: its staging may be taken away in between."""
        (path / self.staging).mkdir(parents=True)
        self.turns.pause()
        (path / self.staging / "part-0").write_text(COMPLETE)

    def run(self) -> None:
        """To its end."""
        while not self.turns.done:
            self.turns.step()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(schedule=st.lists(st.integers(0, 1), max_size=20), first=st.integers(0, 1))
def test_a_batch_that_is_there_is_complete_whatever_two_attempts_do(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, schedule: list[int], first: int
) -> None:
    """One stands still anywhere, also for ever; the other one writes, publishes and cleans up. Whoever returns, the batch is there."""
    path = tmp_path_factory.mktemp("sink")
    attempts = [Attempt(Folder(spark, str(path)), number) for number in range(2)]
    for number in schedule:
        attempts[number].turns.step()
        check(path, attempts)
    for number in (first, 1 - first):
        attempts[number].run()
        check(path, attempts)
    assert [entry.name for entry in path.iterdir() if not entry.name.startswith(".")] == [NAME]


def check(path: Path, attempts: list[Attempt]) -> None:
    """The batch is there whole, or not at all; it is there if an attempt has returned."""
    target = path / NAME
    if target.exists():
        assert (target / "part-0").read_text() == COMPLETE
    else:
        assert not any(attempt.turns.done and attempt.error is None for attempt in attempts)


def test_a_batch_is_written_once_and_then_skipped_unread(spark: SparkSession, tmp_path: Path) -> None:
    """Leftovers of attempts that died, also of the version before, are deleted."""
    info = BatchInfo("c", 7, replay=False, stream="s", shards=(), args={"path": str(tmp_path)})
    for leftover in (f"_{NAME}", f"_{NAME}.dead"):
        (tmp_path / "c" / leftover).mkdir(parents=True)
    pipelines.parquet(spark.range(3), info)
    pipelines.parquet(cast("DataFrame", type("Unread", (), {"sparkSession": spark})()), info)
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "c" / NAME)).collect()) == [0, 1, 2]
    assert [entry.name for entry in (tmp_path / "c").iterdir()] == [NAME]


@pytest.mark.parametrize("args", [{}, {"path": "s3a://lake/orders"}, {"path": "gs://lake"}], ids=["no path", "S3", "GCS"])
def test_a_path_is_refused_before_anything_is_started(args: dict[str, str]) -> None:
    """A rename that is not atomic loses records; the message names the field."""
    with pytest.raises(Refused, match=r"pipeline\.args\.path"):
        pipelines.check_parquet(args)


@pytest.mark.parametrize("path", ["/data/orders", "file:///data", "hdfs://name/data"])
def test_a_path_is_accepted_whose_rename_is_atomic(path: str) -> None:
    """A path without a scheme is Hadoop's default file system."""
    pipelines.check_parquet({"path": path})
