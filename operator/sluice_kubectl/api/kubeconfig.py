"""Credentials and namespace as kubectl has them: --kubeconfig, else KUBECONFIG (several files too), else ~/.kube/config."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigLoader, KubeConfigMerger

from sluice_kubectl.api.errors import CommandError
from sluice_operator.cluster.client import ApiServer, Direct
from sluice_operator.names import printable

AGENT = "kubectl-sluice"
MANAGER = "sluice"
"""Of the fields that a person's commands write. Flux removes fields of managers that begin with `kubectl` (docs/gitops.md, "Flux")."""
ALL = ""
ADDRESS = re.compile(r"https?://[^/]")
NEXT = "next: kubectl config get-contexts, or name a file with --kubeconfig"


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
        CommandError: there is no usable kubeconfig, it has no such context, or its credential plugin failed.
    """
    file = target.kubeconfig or KUBE_CONFIG_DEFAULT_LOCATION
    settings = Configuration()
    settings.host, settings.retries = "", False
    try:
        with _plugin_errors() as failures:
            context = _load(file, target.context, settings)
        problem = _problem(settings)
        api = None if problem else Direct(settings)
    except Exception as error:
        raise CommandError(f"no usable kubeconfig: {file}: {_reason(error)}; {NEXT}") from error
    if failures and not _has_credentials(settings):
        raise CommandError(f"the credential plugin of {file} failed: {'; '.join(failures)}; next: log in again, or run the plugin on its own")
    if api is None:
        raise CommandError(f"no usable kubeconfig: {file}: {problem}; {NEXT}")
    return api, ALL if target.all_namespaces else target.namespace or str(context.get("namespace") or "default")


def server(api: Direct) -> ApiServer:
    """The calls of the operator's port, in the person's name."""
    return ApiServer(api, agent=AGENT, manager=MANAGER)


def _load(file: str, name: str | None, settings: Configuration) -> dict[str, Any]:
    merger = KubeConfigMerger(file)
    if merger.config is None:
        raise ConfigException("there is no such file")
    loader = KubeConfigLoader(merger.config, active_context=name, config_persister=merger.save_changes)
    loader.load_and_set(settings)
    context: dict[str, Any] = loader.current_context["context"]
    return context


def _problem(settings: Configuration) -> str | None:
    """What the client would only find out in the middle of a call."""
    if not settings.host:
        return "the cluster of the context has no server"
    if not ADDRESS.match(settings.host):
        return f"the server {settings.host} of the context's cluster must begin with https:// or http://"
    token = str(settings.api_key.get("BearerToken", ""))
    return None if token.isascii() and token.isprintable() else "the token of the context's user is not a single line of ASCII"


def _has_credentials(settings: Configuration) -> bool:
    return "BearerToken" in settings.api_key or settings.cert_file is not None


def _reason(error: Exception) -> str:
    message = printable(" ".join(str(error).split()))
    return message if isinstance(error, ConfigException | OSError) else f"is not one ({type(error).__name__}: {message})"


@contextmanager
def _plugin_errors() -> Iterator[list[str]]:
    """What the client logs in between: a credential plugin's failure with the plugin's words, which it does not pass to its caller."""
    errors: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: errors.append(_plugin_words(record.getMessage()))  # type: ignore[method-assign]
    root = logging.getLogger()
    others, root.handlers = root.handlers, [handler]
    try:
        yield errors
    finally:
        root.handlers = others


def _plugin_words(message: str) -> str:
    """At a terminal a plugin's words are there already, and the client stumbles over their absence."""
    return "its message is above" if "NoneType" in message else printable(" ".join(message.split()))
