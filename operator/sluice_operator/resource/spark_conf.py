"""Which Spark settings a user may not give, and why.

A driver has rights in its namespace and follows a protocol (docs/protocol.md). These keys would exceed the rights or break the
protocol. A key that the operator or the driver sets is refused, not overruled. Pure data and one lookup.
"""

from __future__ import annotations

OPERATOR = "is set by the operator"
DRIVER = "is set by the driver; the protocol depends on it"
FIELD = "is set by a field: "

EXACT = {
    "spark.master": OPERATOR,
    "spark.submit.deployMode": OPERATOR,
    "spark.app.id": OPERATOR,
    "spark.kubernetes.namespace": "would leave the namespace of the resource",
    "spark.kubernetes.driver.master": OPERATOR,
    "spark.kubernetes.driver.pod.name": DRIVER,
    "spark.kubernetes.executor.podNamePrefix": OPERATOR,
    "spark.kubernetes.executor.useDriverPodIP": DRIVER,
    "spark.kubernetes.executor.scheduler.name": FIELD + "executor.podTemplate.spec.schedulerName",
    "spark.kubernetes.dynamicAllocation.deleteGracePeriod": DRIVER,
    "spark.kubernetes.executor.terminationGracePeriodSeconds": FIELD + "drainTimeoutSeconds",
    "spark.kubernetes.container.image.pullPolicy": FIELD + "pipeline.imagePullPolicy",
    "spark.kubernetes.container.image.pullSecrets": FIELD + "pipeline.imagePullSecrets",
    "spark.driver.host": DRIVER,
    "spark.driver.bindAddress": DRIVER,
    "spark.executor.instances": FIELD + "replicas",
    "spark.executor.cores": FIELD + "executor.cores",
    "spark.kubernetes.executor.request.cores": FIELD + "executor.resources.requests.cpu",
    "spark.kubernetes.executor.limit.cores": FIELD + "executor.resources.limits.cpu",
    "spark.executor.heartbeatInterval": DRIVER,
    "spark.executor.heartbeat.maxFailures": DRIVER,
    "spark.network.timeout": DRIVER,
    "spark.network.timeoutInterval": DRIVER,
    "spark.task.maxFailures": DRIVER,
    "spark.ui.retainedJobs": DRIVER,
    "spark.ui.retainedStages": DRIVER,
    "spark.ui.retainedTasks": DRIVER,
    "spark.jars.ivy": "would write outside the pod's own scratch space",
}
PREFIXES = {
    "spark.kubernetes.authenticate.": "would change the account of the pods; use serviceAccountName and executor.serviceAccountName",
    "spark.kubernetes.container.image": FIELD + "pipeline.image",
    "spark.kubernetes.driver.container.image": FIELD + "pipeline.image",
    "spark.kubernetes.executor.container.image": FIELD + "pipeline.image",
    "spark.kubernetes.driver.podTemplate": FIELD + "driver.podTemplate",
    "spark.kubernetes.executor.podTemplate": FIELD + "executor.podTemplate",
    "spark.kubernetes.executor.label.sluice.dev/": OPERATOR,
    "spark.kubernetes.executor.label.app.kubernetes.io/managed-by": OPERATOR,
    "spark.kubernetes.executor.decommission": DRIVER,
    "spark.decommission.": DRIVER,
    "spark.executor.decommission.": DRIVER,
}
DRIVER_VOLUMES = "spark.kubernetes.driver.volumes."
HOST_PATH = "spark.kubernetes.executor.volumes.hostPath."
ONLY_OFF = {
    "spark.speculation": "runs a task twice, and each copy has to wait for a lease",
    "spark.dynamicAllocation.enabled": "changes the number of executors, which spec.replicas sets",
}


def refusal(key: str, value: str) -> str | None:
    """Why this setting is refused, or None. `key` is the full name, such as `spark.driver.host`."""
    if not key.startswith("spark."):
        return "is not a Spark setting: names start with 'spark.'"
    if key in ONLY_OFF and value.strip().lower() != "false":
        return ONLY_OFF[key]
    if key in EXACT:
        return EXACT[key]
    return next((why for prefix, why in PREFIXES.items() if key.startswith(prefix)), None)


def allowed(settings: dict[str, str]) -> dict[str, str]:
    """The settings of a spec, for a validator of pydantic.

    Raises:
        ValueError: some are refused; with a reason for each.
    """
    refused = [f"{key} {why}" for key, text in settings.items() if (why := refusal(key, text))]
    if refused:
        raise ValueError("; ".join(refused))
    return settings


def without_effect(key: str) -> str | None:
    """Why the setting has no effect: Spark reads it for a driver pod that it creates itself, and here the operator does. Or None."""
    return "has no effect, because the operator creates the driver's pod; use driver.podTemplate" if key.startswith(DRIVER_VOLUMES) else None


def privilege(key: str) -> str | None:
    """Why this setting exceeds a tenant's rights, or None."""
    return "would mount a folder of the node" if key.startswith(HOST_PATH) else None
