"""Credentials and namespace as kubectl has them: --kubeconfig, else KUBECONFIG (several files too), else ~/.kube/config."""

from __future__ import annotations

from dataclasses import dataclass

import yaml
from kubernetes import config
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException

from sluice_kubectl.api.errors import CommandError
from sluice_operator.cluster.client import ApiServer, Direct

AGENT = "kubectl-sluice"
ALL = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster and namespace; None: as the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False


def connect(target: Target) -> tuple[Direct, str]:
    """A client, and the namespace that is meant ('': every one).

    Raises:
        CommandError: there is no usable kubeconfig, or it has no such context.
    """
    settings = Configuration()
    try:
        config.load_kube_config(config_file=target.kubeconfig, context=target.context, client_configuration=settings)
        contexts, active = config.list_kube_config_contexts(config_file=target.kubeconfig)
    except (ConfigException, OSError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"no usable kubeconfig: {reason}; next: kubectl config get-contexts, or name a file with --kubeconfig") from error
    settings.retries = False
    chosen = next((one for one in contexts if one["name"] == target.context), active)
    return Direct(settings), ALL if target.all_namespaces else target.namespace or chosen["context"].get("namespace") or "default"


def server(api: Direct) -> ApiServer:
    """The calls of the operator's port, in the person's name."""
    return ApiServer(api, agent=AGENT)
