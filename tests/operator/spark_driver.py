"""A real Spark driver in client mode that does what it is told on standard input: `python spark_driver.py SETTINGS`, a JSON object.

Orders: `target N` (as the operator gives it), `live N` (waits until so many executors are registered), `kill ID`, `job`, `stop`.
Each is answered by a line.
"""

# ruff: noqa: T201 - it answers

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[1]))

from patience import PATIENCE

from sluice_consumer.spark.executors import ExecutorTarget, SparkBackend


def until(holds: Callable[[], bool], target: ExecutorTarget, wanted: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain; {target.live} executors are there")
        target.apply(wanted[-1])
        time.sleep(0.2)


def main(settings: dict[str, Any]) -> None:
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    backend = SparkBackend(spark.sparkContext)
    wanted = [int(settings["spark.executor.instances"])]
    target = ExecutorTarget(backend, wanted[0], 120, time.monotonic)
    print("started", flush=True)
    for line in sys.stdin:
        order, _, about = line.strip().partition(" ")
        match order:
            case "target":
                wanted.append(int(about))
                target.apply(wanted[-1])
            case "live":
                count = int(about)
                until(lambda count=count: len(backend.live()) == count and not target.draining, target, wanted)  # type: ignore[misc]
            case "kill":
                backend.kill(about)
            case "job":
                assert spark.range(8).repartition(4).count() == 8
            case "stop":
                spark.stop()
        print(order, *backend.live() if order == "live" else (), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
