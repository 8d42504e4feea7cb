"""Sizes of driver and executors: from a container's resources, as users think of them, to Spark's settings.

Spark asks for a heap and adds an overhead; users say what the pod may take. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice_operator.template import their_container

if TYPE_CHECKING:
    from sluice_operator.spec import DriverPod, ExecutorPod

UNITS = {"m": 0.001, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "": 1}
MEBI = 2**20
PYTHON_SHARE = 0.4  # of the pod, for Python workers and Arrow; Spark's default for non-JVM jobs


@dataclass(frozen=True, slots=True)
class Least:
    """What the parts of a pod cannot do without, MiB."""

    who: str
    heap: int
    overhead: int


# Spark refuses to start with a heap of less than 450 MiB, one and a half times what it reserves, and adds 384 for all else.
EXECUTOR = Least("an executor", heap=450, overhead=384)
# Of a driver Spark asks the JVM, which leaves out a survivor space. Beside the heap are the supervisor, PySpark and a worker that plans.
DRIVER = Least("a driver", heap=512, overhead=512)


def executor_settings(executor: ExecutorPod) -> dict[str, str]:
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


def driver_settings(driver: DriverPod) -> dict[str, str]:
    """Spark's setting for the heap of the driver. Its JVM has that from its start: PySpark hands settings to the command that starts it.

    Without a memory that is enough, Spark's own default: a request alone keeps nobody from taking more, and a limit is refused (`driver_problem`).
    """
    memory = driver_memory(driver)
    try:
        return {} if memory is None else {"spark.driver.memory": f"{shares(memory, DRIVER)[0]}m"}
    except ValueError:
        return {}


def driver_problem(driver: DriverPod) -> str | None:
    """Why a driver cannot run within its limit, naming the field; or None."""
    limit = _resources(driver).get("limits", {}).get("memory")
    try:
        if limit is not None:
            shares(limit, DRIVER)
    except ValueError as error:
        return f"{'podTemplate: spec.containers.driver.resources' if _theirs(driver) else 'resources'}: {error}"
    return None


def driver_memory(driver: DriverPod) -> str | int | None:
    """What the driver's container may take, or else asks for; the pod template's resources count if it has some."""
    found = _resources(driver)
    memory: str | int | None = found.get("limits", {}).get("memory", found.get("requests", {}).get("memory"))
    return memory


def _resources(driver: DriverPod) -> dict[str, Any]:
    if theirs := _theirs(driver):
        return {key: value for key, value in theirs.items() if isinstance(value, dict)}
    return driver.resources.document()


def _theirs(driver: DriverPod) -> dict[str, Any]:
    found = their_container(driver.pod_template).get("resources")
    return found if isinstance(found, dict) else {}


def shares(memory: str | int, least: Least) -> tuple[int, int]:
    """How a pod's memory is shared between Spark's heap and all else, MiB.

    Raises:
        ValueError: Spark would not start with so little, or `memory` is no quantity.
    """
    total = quantity(memory) // MEBI
    overhead = max(least.overhead, int(total * PYTHON_SHARE))
    if total - overhead < least.heap:
        raise ValueError(f"memory: {memory} is too little for {least.who}; Spark needs at least {least.heap + least.overhead}Mi")
    return total - overhead, overhead


def quantity(text: str | int) -> int:
    """Whole units of a Kubernetes quantity such as 2Gi, 1500M, 500m or 2147483648.

    Raises:
        ValueError: it is none.
    """
    plain = str(text).strip()
    unit = next((unit for unit in UNITS if unit and plain.endswith(unit)), "")
    number = float(plain.removesuffix(unit))
    if not 0 <= number < float("inf"):
        raise ValueError(f"{text!r} is no finite number from 0 on")
    return int(number * UNITS[unit])
