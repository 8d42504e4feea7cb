"""The pod of a pool, and the configuration in a seat. Pure; the contract is docs/pools.md, "The contract of operator and driver"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.apply.manifests import PodProgram, driver_config, spark_conf, spark_pod
from sluice_operator.resource import pools

if TYPE_CHECKING:
    from sluice_operator.apply.pod_parts import Json
    from sluice_operator.resource.changes import DesiredSpec
    from sluice_operator.settings import Settings
    from sluice_operator.state.objects import Resource
    from sluice_operator.state.status import DriverStatus

OF_POOL = ("executors", "metrics", "sparkConf")  # settings that one process can have only once


def pool_pod(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings, clusters: tuple[str, ...] = ()) -> Json:
    """The pod that `driver` (from the status of a pool) names. It has no seats yet."""
    named = {"SLUICE_CLUSTER": " ".join(clusters), "SLUICE_IMAGE": wanted.spec.pipeline.image or settings.image}
    env = [{"name": name, "value": value} for name, value in named.items() if value]
    arguments = ["pool", "--config", "/etc/sluice/config.json"]
    return spark_pod(resource, wanted, driver, settings, PodProgram("pool", arguments, pool_config(resource, wanted, driver, settings), env))


def pool_config(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The pool's configuration, format 1."""
    return {
        "format": 1,
        "name": resource.name,
        "slotShare": pools.parse(wanted.raw).slot_share,
        "drainTimeoutSeconds": wanted.spec.drain_timeout_seconds,
        "executors": wanted.spec.replicas,
        "sparkConf": spark_conf(resource, wanted, driver, settings),
        **({"metrics": {"port": settings.driver_metrics}} if settings.driver_metrics else {}),
    }


def seat_config(resource: Resource, wanted: DesiredSpec, driver: DriverStatus, settings: Settings) -> Json:
    """The configuration of a driver without what belongs to the pool."""
    return {key: value for key, value in driver_config(resource, wanted, driver, settings).items() if key not in OF_POOL}
