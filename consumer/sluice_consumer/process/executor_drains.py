"""Executors on their way out, as a report has them now."""

from __future__ import annotations

import datetime
import time

from sluice_consumer.driver_report import ExecutorDrain
from sluice_consumer.spark.executors import ExecutorTarget, OwnProcess, described


def drains(target: ExecutorTarget | OwnProcess, prefix: str) -> tuple[ExecutorDrain, ...]:
    """Of this target. `prefix`: of the names of its pods."""
    now, wall = time.monotonic(), datetime.datetime.now(datetime.UTC)
    return tuple(described(drain, prefix, now, wall) for drain in target.draining.values())
