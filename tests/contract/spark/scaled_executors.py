"""A program: a small cluster of Spark's own processes; of two executors one is sent away, and the other dies. Says whether another one comes.

Executors are ordinary processes here, but Spark's scheduler keeps their number as it does on Kubernetes (`CoarseGrainedSchedulerBackend`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from pyspark import SparkConf, SparkContext

from sluice_consumer.spark.executors import ExecutorTarget, SparkBackend

SETTINGS = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.app.name": "scaled executors",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "false",
    "spark.ui.enabled": "false",
}
SECONDS = 60.0


def until(ready: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SECONDS
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def say(what: str, held: bool) -> None:  # noqa: FBT001 - what is said
    sys.stdout.write(f"{what}: {held}\n")


def main() -> None:
    context = SparkContext(conf=SparkConf().setAll(list(SETTINGS.items())))
    backend = SparkBackend(context)
    target = ExecutorTarget(backend, 2, SECONDS, time.monotonic)
    say("two came", until(lambda: len(backend.live()) == 2))
    target.apply(1)
    say("one stayed", until(lambda: len(backend.live()) == 1))
    (last,) = backend.live()
    backend.kill(last)
    say("another came", until(lambda: backend.live() not in ([], [last])))
    context.stop()


if __name__ == "__main__":
    main()
