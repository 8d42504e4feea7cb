"""Which threads of the JVMs count as working on a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace as Fake
from typing import Any

import pytest

from sluice_consumer.spark import threads

TASK = "Executor task launch worker for task 0.0 in stage 0.0 (TID 0)"
WORKER = ["java.util.concurrent.ThreadPoolExecutor$Worker.run(ThreadPoolExecutor.java:635)", "java.lang.Thread.run(Thread.java:840)"]
READS = ["org.apache.spark.api.python.BasePythonRunner$ReaderInputStream.read(PythonRunner.scala:1274)", *WORKER]
WAITS = ["jdk.internal.misc.Unsafe.park(Native Method)", "java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1061)", *WORKER]
CALLED = ["java.lang.Thread.sleep(Native Method)", "py4j.commands.CallCommand.execute(CallCommand.java:79)"]


def a_driver(name: str, frames: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(threads, "each", list)
    thread = Fake(threadName=lambda: name, stackTrace=lambda: Fake(elems=lambda: frames))
    dump = Fake(isDefined=lambda: True, get=lambda: [thread])
    store = Fake(executorList=lambda _active: [Fake(id=lambda: "1")])
    scala = Fake(statusStore=lambda: store, getExecutorThreadDump=lambda _executor: dump)
    return Fake(sparkContext=Fake(_jsc=Fake(sc=lambda: scala)))


@pytest.mark.parametrize(
    ("name", "frames", "places"),
    [
        (TASK, READS, [f"{TASK} on executor 1 waits for its Python worker"]),
        (TASK, WAITS, []),
        ("Thread-3", CALLED, ["Thread-3 on executor 1 is in java.lang.Thread.sleep(Native Method)"]),
        ("Thread-4", WAITS, []),
    ],
    ids=["a task", "a worker that keeps the name of its last task", "a call of process", "any other"],
)
def test_a_thread_is_told_if_it_works(name: str, frames: Sequence[str], places: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the last words would lead to an executor that has nothing to do."""
    assert [thread.place for thread in threads.working(a_driver(name, frames, monkeypatch))] == places


def test_a_jvm_that_does_not_answer_is_waited_for_so_long_only() -> None:
    over = threading.Event()

    def session(ask: Callable[[], object]) -> Any:
        return Fake(sparkContext=Fake(_jsc=Fake(sc=lambda: Fake(isStopped=ask))))

    assert not threads.answers(session(over.wait), 0.05)
    over.set()
    assert threads.answers(session(over.wait), 60)
    assert threads.answers(session(lambda: 1 // 0), 60)
