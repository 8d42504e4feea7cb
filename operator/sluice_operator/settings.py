"""The operator's own settings, from its environment (the Helm chart sets them)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice_operator.resource.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`image` is the consumer image for pipelines that name none; no `namespaces` means all of them.

    `executor_account`: the account of executors and migrations if the spec names none. None: the driver's, without its token.

    `cluster_name`: a person's name for the cluster, in the checkpoint tables of its consumers.

    `lease`: namespace and name of the Lease by which replicas elect a leader. None: there is no election, and this process acts.
    Only resources whose label sluice.dev/class is `resource_class` are reconciled; a resource without the label has the class "".
    """

    image: str = "sluice-consumer:dev"
    executor_account: str | None = None
    namespaces: tuple[str, ...] = ()
    identity: str = "sluice-operator"
    lease: tuple[str, str] | None = None
    port: int = 8080
    log_format: str = "json"
    driver_metrics: int | None = None
    resource_class: str = ""
    cluster_name: str = ""
    policy: Policy = field(default_factory=Policy)


def read(environ: Mapping[str, str]) -> Settings:
    """From SLUICE_CONSUMER_IMAGE, WATCH_NAMESPACES (comma-separated), SLUICE_CLASS, POD_NAME, SLUICE_LEASE (namespace/name), SLUICE_PORT.

    SLUICE_LOG_FORMAT. SLUICE_DRIVER_METRICS_PORT: where new drivers serve metrics; without it they serve none. SLUICE_EXECUTOR_ACCOUNT. What
    specs may say: SLUICE_PRIVILEGED_PODS (true: privileges), SLUICE_SERVICE_ACCOUNTS (comma-separated), SLUICE_ACCOUNT (namespace/name of the
    operator's own). SLUICE_CLUSTER_NAME: the cluster's, in checkpoint tables.
    """
    default = Settings()
    namespace, _, lease = environ.get("SLUICE_LEASE", "").partition("/")
    home, _, account = environ.get("SLUICE_ACCOUNT", "").partition("/")
    return Settings(
        image=environ.get("SLUICE_CONSUMER_IMAGE") or default.image,
        executor_account=environ.get("SLUICE_EXECUTOR_ACCOUNT") or None,
        namespaces=_names(environ, "WATCH_NAMESPACES"),
        identity=environ.get("POD_NAME") or default.identity,
        lease=(namespace, lease) if namespace and lease else None,
        port=int(environ.get("SLUICE_PORT") or default.port),
        log_format=environ.get("SLUICE_LOG_FORMAT") or default.log_format,
        driver_metrics=int(environ.get("SLUICE_DRIVER_METRICS_PORT") or 0) or None,
        resource_class=environ.get("SLUICE_CLASS", ""),
        cluster_name=environ.get("SLUICE_CLUSTER_NAME", ""),
        policy=Policy(
            privileged_pods=environ.get("SLUICE_PRIVILEGED_PODS", "").lower() == "true",
            service_accounts=_names(environ, "SLUICE_SERVICE_ACCOUNTS"),
            own=(home, account) if home and account else None,
        ),
    )


def _names(environ: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in environ.get(key, "").split(",") if name.strip())
