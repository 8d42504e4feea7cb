"""The operator's own settings, from its environment (the Helm chart sets them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`image` is the consumer image for pipelines that name none; no `namespaces` means all of them."""

    image: str = "sluice-consumer:dev"
    namespaces: tuple[str, ...] = ()
    identity: str = "sluice-operator"
    liveness: str = "http://0.0.0.0:8080/healthz"
    log_format: str = "json"


def read(environ: Mapping[str, str]) -> Settings:
    """From SLUICE_CONSUMER_IMAGE, WATCH_NAMESPACES (comma-separated), POD_NAME, SLUICE_LIVENESS, SLUICE_LOG_FORMAT."""
    default = Settings()
    names = environ.get("WATCH_NAMESPACES", "").split(",")
    return Settings(
        image=environ.get("SLUICE_CONSUMER_IMAGE") or default.image,
        namespaces=tuple(name.strip() for name in names if name.strip()),
        identity=environ.get("POD_NAME") or default.identity,
        liveness=environ.get("SLUICE_LIVENESS") or default.liveness,
        log_format=environ.get("SLUICE_LOG_FORMAT") or default.log_format,
    )
