"""Sizes of driver and executors: from a container's resources, as users write them, to Spark's settings.

Spark takes a heap and adds an overhead; users write what the whole pod may take. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_operator.spec.pod_template import their_container
from sluice_operator.spec.quantities import DRIVER, EXECUTOR, shares

if TYPE_CHECKING:
    from sluice_operator.spec.pods import DriverSpec, ExecutorSpec


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
    found = _resources(driver)
    memory: str | int | None = found.get("limits", {}).get("memory", found.get("requests", {}).get("memory"))
    return memory


def _resources(driver: DriverSpec) -> dict[str, Any]:
    if theirs := _theirs(driver):
        return {key: value for key, value in theirs.items() if isinstance(value, dict)}
    return driver.resources.document()


def _theirs(driver: DriverSpec) -> dict[str, Any]:
    found = their_container(driver.pod_template).get("resources")
    return found if isinstance(found, dict) else {}
