"""Sizes of driver and executors: from a container's resources, as users write them, to Spark's settings.

Spark takes a heap and adds an overhead; users write what the whole pod may take. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sluice_operator.resource.pod_template import stated_resources, their_container
from sluice_operator.resource.quantities import DRIVER, EXECUTOR, shares

if TYPE_CHECKING:
    from sluice_operator.resource.pods import DriverSpec, ExecutorSpec

DEFAULT_HEAP, LEAST_OVERHEAD, FACTOR, MOST_FACTOR = "1g", 384, 0.1, 1000.0  # Spark's defaults for executors, MiB
BY_SETTING = {"cpu", "memory"}
SIZE = re.compile(r"(\d{1,15})(?:([kmgtp])b?|(b))?")
UNITS = {"b": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20, "p": 2**30}


def executor_settings(executor: ExecutorSpec) -> dict[str, str]:
    """Spark's settings for cores and memory of one executor."""
    asked, limits = executor.resources.requests, executor.resources.limits
    settings = {"spark.executor.cores": str(executor.cores)}
    if "cpu" in asked:
        settings["spark.kubernetes.executor.request.cores"] = str(asked["cpu"])
    if "cpu" in limits:
        settings["spark.kubernetes.executor.limit.cores"] = str(limits["cpu"])
    if (pod := limits.get("memory", asked.get("memory"))) is not None:
        heap, overhead = shares(pod, EXECUTOR)
        settings["spark.executor.memory"] = f"{heap}m"
        settings["spark.executor.memoryOverhead"] = f"{overhead}m"
    return settings


def other_resources(executor: ExecutorSpec) -> dict[str, dict[str, str | int]]:
    """Requests and limits of all else, such as ephemeral-storage or nvidia.com/gpu. Spark leaves those of its template."""
    asked = {"requests": executor.resources.requests, "limits": executor.resources.limits}
    others = {kind: {name: amount for name, amount in amounts.items() if name not in BY_SETTING} for kind, amounts in asked.items()}
    return {kind: amounts for kind, amounts in others.items() if amounts}


def executor_resources(settings: dict[str, str]) -> dict[str, dict[str, str]]:
    """Requests and limits of an executor's container as Spark derives them from its settings. A size that Spark cannot read is left out."""
    memory = _mebi(settings.get("spark.executor.memory", DEFAULT_HEAP))
    overhead = settings.get("spark.executor.memoryOverhead")
    factor = settings.get("spark.executor.memoryOverheadFactor") or settings.get("spark.kubernetes.memoryOverheadFactor")
    least = _mebi(settings.get("spark.executor.minMemoryOverhead", f"{LEAST_OVERHEAD}m")) or LEAST_OVERHEAD
    beside = _mebi(overhead) if overhead else memory and max(least, int(memory * _factor(factor)))
    cores = settings.get("spark.kubernetes.executor.request.cores") or settings.get("spark.executor.cores", "1")
    limit = settings.get("spark.kubernetes.executor.limit.cores")
    total = {"memory": f"{memory + beside}Mi"} if memory is not None and beside is not None else {}
    return {"requests": {"cpu": cores, **total}, "limits": {**({"cpu": limit} if limit else {}), **total}}


def _mebi(text: str) -> int | None:
    """MiB of one of Spark's sizes such as 2g or 512m; without a unit it is MiB."""
    match = SIZE.fullmatch(text.strip().lower())
    return int(int(match[1]) * UNITS[match[2] or match[3] or "m"]) if match else None


def _factor(text: str | None) -> float:
    try:
        factor = float(text or FACTOR)
    except ValueError:
        return FACTOR
    return factor if 0 < factor < MOST_FACTOR else FACTOR


def driver_settings(driver: DriverSpec) -> dict[str, str]:
    """Spark's setting for the heap of the driver. Its JVM has that from its start: PySpark hands settings to the command that starts it.

    If the memory is too small, Spark's own default: a request alone does not limit the driver, and a limit is refused (`driver_problem`).
    """
    memory = driver_memory(driver)
    try:
        return {} if memory is None else {"spark.driver.memory": f"{shares(memory, DRIVER)[0]}m"}
    except ValueError:
        return {}


def driver_problem(driver: DriverSpec) -> str | None:
    """Why a driver cannot run within its limit, naming the field; or None."""
    limit = _resources(driver).get("limits", {}).get("memory")
    try:
        if limit is not None:
            shares(limit, DRIVER)
    except ValueError as error:
        return f"{'podTemplate: spec.containers.driver.resources' if _theirs(driver) else 'resources'}: {error}"
    return None


def driver_memory(driver: DriverSpec) -> str | int | None:
    """What the driver's container may take, or else asks for; the pod template's resources count if it has some."""
    sizes = _resources(driver)
    memory: str | int | None = sizes.get("limits", {}).get("memory", sizes.get("requests", {}).get("memory"))
    return memory


def _resources(driver: DriverSpec) -> dict[str, Any]:
    if theirs := _theirs(driver):
        return {key: value for key, value in theirs.items() if isinstance(value, dict)}
    return driver.resources.document()


def _theirs(driver: DriverSpec) -> dict[str, Any]:
    return stated_resources(their_container(driver.pod_template))
