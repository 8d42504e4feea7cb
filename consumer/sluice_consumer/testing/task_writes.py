"""Sees the calls of a user's function in tasks: of the sink `foreach`, and of `foreach` and `foreachPartition` of a DataFrame or RDD.

A kill in a task ends the worker's process; a failure raises in it. What the tasks saw is written to a folder: local Spark has it on the same machine.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import RDD, TaskContext

from sluice_consumer.testing.verdict import Failed, KillPoint

HALF = "half-way through"
KILLED = "killed"


@dataclass(frozen=True)
class TaskKill:
    """Which call to kill, and where.

    Attributes:
        row: so many rows were taken when it is killed `HALF`.
        fails: the call raises there, and its process continues.
        in_task: the moment is one of a task.
    """

    point: KillPoint
    row: int = 0
    fails: bool = False
    in_task: bool = False


class WatchedFunction:
    """The user's function; pickled to the tasks."""

    def __init__(self, function: Callable[..., Any], folder: str, name: str, kill: TaskKill | None) -> None:
        self._function, self._folder, self._name, self._kill = function, folder, name, kill
        self._task, self._calls = -1, 0

    def __call__(self, rows: Iterable[Any], *more: Any) -> Any:
        """One call."""
        context = TaskContext.get()
        task = context.taskAttemptId() if context else 0
        self._task, self._calls = task, self._calls + 1 if task == self._task else 1
        what = f"{self._name}, call {self._calls} in task {context.partitionId() if context else 0}"
        self._at("before", what)
        counted = _CountedRows(rows, lambda taken: self._at(HALF, what, taken))
        answer = self._function(counted, *more)
        self._note(what, counted.taken)
        self._at("after", what)
        return answer

    def _at(self, when: str, what: str, row: int = 0) -> None:
        kill = self._kill
        if kill and (kill.point.when, kill.point.what, kill.row) == (when, what, row):
            Path(self._folder, KILLED).touch()
            if kill.fails:
                raise Failed(f"a record cannot be processed: {kill.point}")
            os._exit(1)  # as a kill: nothing of this process runs after it

    def _note(self, what: str, rows: int) -> None:
        Path(self._folder, f"{uuid.uuid4().hex}.json").write_text(json.dumps([what, rows]), encoding="utf-8")


class _CountedRows:
    def __init__(self, rows: Iterable[Any], tell: Callable[[int], None]) -> None:
        self._rows, self._tell, self.taken = iter(rows), tell, 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        row = next(self._rows)
        if self.taken:
            self._tell(self.taken)
        self.taken += 1
        return row


@contextlib.contextmanager
def watched(folder: str, kill: TaskKill | None = None) -> Iterator[None]:
    """Watches functions that are handed to tasks while the block runs."""
    numbers, sink = itertools.count(1), importlib.import_module("sluice_consumer.sinks.foreach")
    calls, each, partition = sink.calls, RDD.foreach, RDD.foreachPartition

    def watch(function: Callable[..., Any]) -> WatchedFunction:
        return WatchedFunction(function, folder, f"function {next(numbers)} of foreach", kill)

    def each_row(function: Callable[[Any], None]) -> Callable[[Iterable[Any]], None]:
        def run(rows: Iterable[Any]) -> None:
            for row in rows:
                function(row)

        return run

    sink.calls = lambda function, *rest: calls(watch(function), *rest)  # type: ignore[attr-defined]
    RDD.foreach = lambda rdd, f: partition(rdd, watch(each_row(f)))  # type: ignore[method-assign,assignment]
    RDD.foreachPartition = lambda rdd, f: partition(rdd, watch(f))  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        sink.calls, RDD.foreach, RDD.foreachPartition = calls, each, partition  # type: ignore[attr-defined,method-assign]


def kills(folder: str) -> list[TaskKill]:
    """The moments in the tasks of a run that was not disturbed."""
    noted = sorted(json.loads(path.read_text(encoding="utf-8")) for path in Path(folder).glob("*.json"))
    kills_found = list[TaskKill]()
    for what, rows in noted:
        kills_found.append(TaskKill(KillPoint("before", what), in_task=True))
        if rows > 1:
            kills_found.append(TaskKill(KillPoint(HALF, what), max(rows // 2, 1), in_task=True))
        kills_found.append(TaskKill(KillPoint("after", what), in_task=True))
    return kills_found


def was_killed(folder: str) -> bool:
    """Whether a task was."""
    return Path(folder, KILLED).exists()
