"""Kills `process` at each write that can be seen, or lets the write fail; replays the batch; counts what the sink holds (docs/testing.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.spark.entrypoint import Process, load
from sluice_consumer.testing import batches, jvm_writes, python_writes, task_writes
from sluice_consumer.testing.task_writes import TaskKill
from sluice_consumer.testing.verdict import Killed, KillPoint, Miscount, ReplayVerdict, compared, counted
from sluice_consumer.testing.watch import WatchedRun

Args = Mapping[str, Any]
RETURN = KillPoint("after", "the return of process, before the commit")
QUIET_SECONDS = 60.0
POLL_SECONDS = 0.02


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is the same in every run."""

    process: Process | str
    batch: DataFrame
    info: BatchInfo
    writes: Sequence[str]

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Process]:
        """The function. One that is named is imported again: what its module remembered died with its process."""
        if not isinstance(self.process, str):
            yield self.process
            return
        module = self.process.partition(":")[0]
        former = sys.modules.pop(module, None)
        try:
            yield load(self.process)
        finally:
            if former is not None:
                sys.modules[module] = former

    def run(self, process: Process, args: Args, *, replay: bool = False) -> None:
        """Runs the function as the engine does."""
        if prepare := getattr(process, "prepare", None):
            prepare(self.batch.sparkSession, args)
        process(self.batch, dataclasses.replace(self.info, replay=replay, args=args))

    def parts(self) -> tuple[Trial, Trial] | None:
        """The batch as it comes again shortened, and the next one with its rest; None: it has one record."""
        halves = batches.shortened(self.batch)
        if halves is None:
            return None
        after = dataclasses.replace(self.info, batch=self.info.batch + 1)
        return dataclasses.replace(self, batch=halves[0]), dataclasses.replace(self, batch=halves[1], info=after)

    @contextlib.contextmanager
    def watched(self, watch: WatchedRun, folder: str, kill: TaskKill | None = None) -> Iterator[None]:
        """Sees all that can be seen."""
        with (
            task_writes.watched(folder, kill),
            python_writes.watched(watch, self.writes),
            jvm_writes.watched(watch, lambda: kill is not None and not kill.fails and task_writes.was_killed(folder)),
        ):
            yield


def replays(
    process: Process | str,
    batch: DataFrame,
    *,
    held: Callable[[Args], Iterable[Any]],
    sink: Callable[[int], Args] = lambda _: {},
    info: BatchInfo | None = None,
    writes: Sequence[str] = (),
) -> ReplayVerdict:
    """Tries whether a sink holds each record once, wherever the driver or a task is killed, or a write fails.

    `process` runs once undisturbed. Then it runs once for every moment before, after and, in tasks, half-way through a write. Each time it gets a
    fresh sink, is killed at that moment, and runs again with the same batch as a replay. What the sink then holds is compared with the undisturbed
    run. At every moment before a write, and in tasks, the write also fails once. Then half of the batch comes again under its number, and the rest
    under the next one, as `onError.isolate` does it.

    Args:
        process: the pipeline, or its `module:function`, which is then imported again for every run.
        batch: of `testing.batch`, or any other DataFrame of these columns.
        held: from the arguments of a run, the records that its sink holds.
        sink: makes an empty sink; gets the number of a run, from 0, and returns `info.args` for it. Left out: `held` distinguishes the runs.
        info: its consumer, number and other arguments; default: those of `testing.info`.
        writes: functions of the driver that write and are not seen otherwise, such as `my_module:insert`.

    Raises:
        Refused: a named function is not there; no write was seen; the sink is empty after the undisturbed run; or Spark's tasks do not end.
        Exception: whatever the undisturbed run raised.
    """
    trial = Trial(process, batch, info or _info(batch), writes)
    args = {**trial.info.args, **sink(0)}
    points, wanted = _undisturbed(trial, args), counted(held(args))
    if not wanted:
        raise Refused("held: the sink holds nothing after an undisturbed run; let `held` read what `sink` names")
    failures = list[Miscount]()
    for number, kill in enumerate(points, 1):
        args = {**trial.info.args, **sink(number)}
        failures += _tried(trial, kill, args) or compared(kill.point, wanted, held(args))
    failing = [dataclasses.replace(kill, fails=True) for kill in points if trial.parts() and may_fail(kill)]
    for number, kill in enumerate(failing, len(points) + 1):
        args = {**trial.info.args, **sink(number)}
        miscounts = _shortened(trial, kill, args) or compared(kill.point, wanted, held(args))
        failures += [dataclasses.replace(miscount, shortened=True) for miscount in miscounts]
    return ReplayVerdict(tuple(kill.point for kill in points), tuple(failures), tuple(kill.point for kill in failing))


def may_fail(kill: TaskKill) -> bool:
    """A write of the driver fails without an effect; a function in a task at any moment, as the task beside it may fail then."""
    return kill.point != RETURN and (kill.point.when == "before" or kill.in_task)


def _info(batch: DataFrame) -> BatchInfo:
    return batches.info(shards=sorted(str(row.shardId) for row in batch.select("shardId").distinct().collect()))


def _undisturbed(trial: Trial, args: Args) -> list[TaskKill]:
    watch = WatchedRun()
    with tempfile.TemporaryDirectory() as folder, trial.fresh() as process:
        with trial.watched(watch, folder):
            trial.run(process, args)
        kills = [*map(TaskKill, watch.points), *task_writes.kills(folder)]
    if not kills:
        raise Refused("writes: no write of `process` was seen; name its functions that write, as in writes=['my_module:insert']")
    return [*kills, TaskKill(RETURN)]


def _tried(trial: Trial, kill: TaskKill, args: Args) -> list[Miscount]:
    error = _killed(trial, kill, args)
    if not error:
        try:
            with trial.fresh() as process:
                trial.run(process, args, replay=True)
        except Exception as raised:  # noqa: BLE001 - whatever it is, this batch never gets through
            error = f"the replay failed: {_first_line(raised)}"
    return [Miscount(kill.point, error=error)] if error else []


def _shortened(trial: Trial, kill: TaskKill, args: Args) -> list[Miscount]:
    watch, error = WatchedRun(kill.point, fails=True), ""
    with tempfile.TemporaryDirectory() as folder, trial.fresh() as process:
        try:
            with trial.watched(watch, folder, kill):
                trial.run(process, args)
        except Exception as raised:  # noqa: BLE001 - what `process` makes of the failure
            error = _first_line(raised)
        _cancel_all_jobs(trial.batch.sparkSession)
        if not watch.failed and not task_writes.was_killed(folder):
            return [Miscount(kill.point, error=f"it did not come there again: {error or 'the function does not do the same in each run'}")]
    return _again(trial, kill, args) if error else []  # it returned: the batch is dealt with, whatever failed


def _again(trial: Trial, kill: TaskKill, args: Args) -> list[Miscount]:
    first, rest = trial.parts() or (trial, trial)
    for half, replay in ((first, True), (rest, False)):
        try:
            with half.fresh() as process:
                half.run(process, args, replay=replay)
        except Exception as raised:  # noqa: BLE001 - whatever it is, this batch never gets through
            return [Miscount(kill.point, error=f"the replay of batch {half.info.batch} failed: {_first_line(raised)}")]
    return []


def _killed(trial: Trial, kill: TaskKill, args: Args) -> str:
    """Why it could not be killed there; empty if it was. No task runs any more."""
    watch, error = WatchedRun(kill.point), ""
    with tempfile.TemporaryDirectory() as folder, trial.fresh() as process:
        try:
            with trial.watched(watch, folder, kill):
                trial.run(process, args)
        except Killed:
            pass
        except Exception as raised:  # noqa: BLE001 - of a function that was killed it says nothing
            error = f"it failed before: {_first_line(raised)}"
        _cancel_all_jobs(trial.batch.sparkSession)
    if watch.dead or kill.point == RETURN:
        return ""
    return error or "this write was not reached again, because the function does not do the same in each run"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _cancel_all_jobs(spark: SparkSession) -> None:
    """As after the end of a driver: its jobs are cancelled, no task of theirs runs, and nothing is cached.

    Raises:
        Refused: a task does not end.
    """
    spark.sparkContext.cancelAllJobs()
    spark.catalog.clearCache()
    end = time.monotonic() + QUIET_SECONDS
    while _running(spark):
        if time.monotonic() > end:
            raise Refused(
                f"a task of the killed run did not end within {QUIET_SECONDS:g} s; let the function that it runs end when it is interrupted"
            )
        time.sleep(POLL_SECONDS)


def _running(spark: SparkSession) -> bool:
    context: Any = spark.sparkContext
    tracker = context._jsc.sc().statusTracker()  # noqa: SLF001 - PySpark's tracker does not know executors
    return bool(context.statusTracker().getActiveJobsIds()) or any(executor.numRunningTasks() for executor in tracker.getExecutorInfos())
