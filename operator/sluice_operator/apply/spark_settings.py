"""Spark settings in a cluster: identity, sizes, and how executor pods are created. The driver adds its own. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.resource.pod_template import their_container
from sluice_operator.resource.sizes import driver_settings, executor_settings

if TYPE_CHECKING:
    from sluice_operator.resource.fields import Spec
    from sluice_operator.settings import Settings

MARGIN = 30  # seconds after the drain timeout, for Spark to stop and the lease to be released
ATTEMPTS = 4  # of a task, as on executors; Spark has one in local mode
POLICIES = ("Always", "IfNotPresent", "Never")
UNNEEDED = {
    # What these would need rights for (tests/operator/helm/test_driver_rights.py). The user may set them, with rights of their own.
    "spark.kubernetes.executor.disableConfigMap": "true",
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
}


def spark_settings(epoch: str, namespace: str, spec: Spec, settings: Settings) -> dict[str, str]:
    """The user's settings over sizes and defaults, under what the cluster dictates. `epoch` names the driver's attempt, and its executors."""
    if spec.executor.in_driver:
        alone = {"spark.master": f"local[{spec.executor.cores},{ATTEMPTS}]", "spark.app.id": epoch}
        return {**driver_settings(spec.driver), **spec.spark_conf, **alone}
    return {
        "spark.authenticate": "true",  # Spark makes the secret, and hands it to the executors that it makes
        **UNNEEDED,
        **driver_settings(spec.driver),
        **executor_settings(spec.executor),
        **spec.spark_conf,
        **_kubernetes(epoch, namespace, spec, settings),
    }


def _kubernetes(epoch: str, namespace: str, spec: Spec, settings: Settings) -> dict[str, str]:
    image = spec.pipeline.image or settings.image
    return {
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.app.id": epoch,
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.container.image": image,
        "spark.kubernetes.container.image.pullPolicy": _pull_policy(spec, image),
        "spark.kubernetes.authenticate.driver.serviceAccountName": spec.service_account_name,
        "spark.kubernetes.authenticate.executor.serviceAccountName": executor_account(spec, settings),
        "spark.kubernetes.executor.terminationGracePeriodSeconds": f"{grace_seconds(spec)}s",
        "spark.kubernetes.executor.podNamePrefix": epoch,
        "spark.kubernetes.executor.podTemplateFile": "/etc/sluice/executor.yaml",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
    }


def executor_account(spec: Spec, settings: Settings) -> str:
    """What executors run as: the account that the spec names for them, or the driver's if it names that, or the operator's default."""
    return spec.executor.service_account_name or idle_account(spec, settings)


def idle_account(spec: Spec, settings: Settings) -> str:
    """An account for pods that call no API: the one that the spec names, or the operator's default."""
    named = "service_account_name" in spec.model_fields_set
    return spec.service_account_name if named else settings.executor_account or spec.service_account_name


def grace_seconds(spec: Spec) -> int:
    """Seconds that a driver or an executor may take to end."""
    return spec.drain_timeout_seconds + MARGIN


def _pull_policy(spec: Spec, image: str) -> str:
    """Spark overwrites the template's, and has a default of its own. Ours is Kubernetes', which the driver's container gets."""
    theirs = their_container(spec.executor.pod_template).get("imagePullPolicy")
    if asked := spec.pipeline.image_pull_policy or (theirs if theirs in POLICIES else None):
        return str(asked)
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if "@" not in image and tag in {"", "latest"} else "IfNotPresent"
