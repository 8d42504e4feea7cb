"""The operator's own settings, from its environment (the Helm chart sets them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`image` is the consumer image for pipelines that name none; no `namespaces` means all of them.

    `lease` is the namespace and name of the Lease by which replicas elect one that acts; None: this process acts, alone.
    """

    image: str = "sluice-consumer:dev"
    namespaces: tuple[str, ...] = ()
    identity: str = "sluice-operator"
    lease: tuple[str, str] | None = None
    port: int = 8080
    log_format: str = "json"
    driver_metrics: int | None = None


def read(environ: Mapping[str, str]) -> Settings:
    """From SLUICE_CONSUMER_IMAGE, WATCH_NAMESPACES (comma-separated), POD_NAME, SLUICE_LEASE (namespace/name), SLUICE_PORT, SLUICE_LOG_FORMAT.

    And SLUICE_DRIVER_METRICS_PORT: where new drivers serve metrics; without it they serve none.
    """
    default = Settings()
    names = environ.get("WATCH_NAMESPACES", "").split(",")
    namespace, _, lease = environ.get("SLUICE_LEASE", "").partition("/")
    return Settings(
        image=environ.get("SLUICE_CONSUMER_IMAGE") or default.image,
        namespaces=tuple(name.strip() for name in names if name.strip()),
        identity=environ.get("POD_NAME") or default.identity,
        lease=(namespace, lease) if namespace and lease else None,
        port=int(environ.get("SLUICE_PORT") or default.port),
        log_format=environ.get("SLUICE_LOG_FORMAT") or default.log_format,
        driver_metrics=int(environ.get("SLUICE_DRIVER_METRICS_PORT") or 0) or None,
    )
