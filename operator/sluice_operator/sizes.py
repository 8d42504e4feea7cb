"""Sizes of executors: from a container's resources, as users think of them, to Spark's settings.

Spark asks for a heap and adds an overhead; users say what the pod may take. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice_operator.spec import ExecutorPod

UNITS = {"m": 0.001, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "": 1}
MEBI = 2**20
LEAST_OVERHEAD = 384  # MiB, Spark's own minimum
LEAST_HEAP = 450  # MiB; Spark refuses to start with less (one and a half times the 300 MiB it reserves)
PYTHON_SHARE = 0.4  # of the pod, for Python workers and Arrow; Spark's default for non-JVM jobs


def executor_settings(executor: ExecutorPod) -> dict[str, str]:
    """Spark's settings for cores and memory of one executor."""
    asked, limits = executor.resources.requests, executor.resources.limits
    settings = {"spark.executor.cores": str(executor.cores)}
    if "cpu" in asked:
        settings["spark.kubernetes.executor.request.cores"] = str(asked["cpu"])
    if "cpu" in limits:
        settings["spark.kubernetes.executor.limit.cores"] = str(limits["cpu"])
    if (pod := limits.get("memory", asked.get("memory"))) is not None:
        heap, overhead = shares(pod)
        settings["spark.executor.memory"] = f"{heap}m"
        settings["spark.executor.memoryOverhead"] = f"{overhead}m"
    return settings


def shares(memory: str | int) -> tuple[int, int]:
    """How a pod's memory is shared between Spark's heap and all else, MiB.

    Raises:
        ValueError: Spark would not start with so little, or `memory` is no quantity.
    """
    total = quantity(memory) // MEBI
    overhead = max(LEAST_OVERHEAD, int(total * PYTHON_SHARE))
    if total - overhead < LEAST_HEAP:
        raise ValueError(f"memory: {memory} is too little for an executor; Spark needs at least {LEAST_HEAP + LEAST_OVERHEAD}Mi")
    return total - overhead, overhead


def quantity(text: str | int) -> int:
    """Whole units of a Kubernetes quantity such as 2Gi, 1500M, 500m or 2147483648.

    Raises:
        ValueError: it is none.
    """
    plain = str(text).strip()
    unit = next((unit for unit in UNITS if unit and plain.endswith(unit)), "")
    number = float(plain.removesuffix(unit))
    if not number >= 0:
        raise ValueError(f"{text!r} is negative")
    return int(number * UNITS[unit])
