"""Where the threads of the JVMs stand that work on a batch: tasks on executors, and calls of `process` into the driver's JVM."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sluice_consumer.spark.status import each

FRAMES = 12
TASK, IDLE = "Executor task launch worker", "ThreadPoolExecutor.getTask"  # a worker keeps the name of its last task
CALL, OURS = "py4j.commands", ("getExecutorThreadDump", "DAGScheduler.runJob")  # the thread that waits for a job is where its tasks are
PYTHON_WORKER = ("PythonRunner", "PythonWorker", "PythonArrowOutput", "BasePythonRunner")


@dataclass(frozen=True, slots=True)
class JavaThread:
    """One thread: whose it is, what it is called, and its innermost frames, the innermost first."""

    executor: str
    name: str
    frames: tuple[str, ...]

    @property
    def place(self) -> str:
        """One line: which task it is, and what it waits for."""
        waits = any(word in frame for frame in self.frames for word in PYTHON_WORKER)
        return f"{self.name} on executor {self.executor} {'waits for its Python worker' if waits else f'is in {self.frames[0]}'}"

    def __str__(self) -> str:
        """All that is known of it."""
        return f"{self.name} on executor {self.executor}:\n" + "\n".join(f"  at {frame}" for frame in self.frames)


def answers(spark: SparkSession, seconds: float) -> bool:
    """Whether the driver's JVM answers a call within so many seconds; that it refuses one is an answer."""
    return bool(_stopped(spark, seconds))


def can_work(spark: SparkSession, seconds: float) -> bool:
    """Whether the driver's JVM says within so many seconds that its Spark is not stopped. One that is gone says nothing."""
    return _stopped(spark, seconds) == [False]


def _stopped(spark: SparkSession, seconds: float) -> list[bool | None]:
    """What the driver's JVM says, if it answers in time: whether its Spark is stopped, or None if it refuses the call."""
    answers: list[bool | None] = []

    def ask() -> None:
        stopped = None
        with contextlib.suppress(Exception):
            stopped = bool(spark.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - the shortest call there is
        answers.append(stopped)

    thread = threading.Thread(target=ask, name="answers", daemon=True)
    thread.start()
    thread.join(seconds)
    return list(answers)


def working(spark: SparkSession) -> list[JavaThread]:
    """Threads that work on a task, and those that the driver's Python has called. An executor that does not answer has none."""
    scala: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows none of this
    threads: list[JavaThread] = []
    for executor in each(scala.statusStore().executorList(True)):  # noqa: FBT003 - py4j has no keyword arguments
        with contextlib.suppress(Py4JError):
            threads.extend(_of(scala, str(executor.id())))
    return threads


def _of(scala: Any, executor: str) -> Iterator[JavaThread]:
    dump = scala.getExecutorThreadDump(executor)
    for thread in list(dump.get()) if dump.isDefined() else ():
        frames = tuple(str(frame).partition("\n")[0].strip() for frame in each(thread.stackTrace().elems()))
        called = any(CALL in frame for frame in frames) and not any(word in frame for frame in frames for word in OURS)
        at_work = str(thread.threadName()).startswith(TASK) and not any(IDLE in frame for frame in frames)
        if at_work or called:
            yield JavaThread(executor, str(thread.threadName()), frames[:FRAMES])
