"""Reads a KinesisConsumer, its pods and its events through the Kubernetes API."""

from pathlib import Path
from typing import Any

import kubernetes

from sluice_lab.scenario import observed
from sluice_lab.scenario.observed import ConsumerSnapshot

SECONDS = 5


class ResourceReader:
    """A reader of one KinesisConsumer. `pool`: whose pods are taken for its own, beside those that are."""

    def __init__(self, kubeconfig: Path, namespace: str, name: str, pool: str = "") -> None:
        self._namespace, self._name, self._pool = namespace, name, pool
        client = kubernetes.config.new_client_from_config(config_file=str(kubeconfig))
        self._custom, self._core = kubernetes.client.CustomObjectsApi(client), kubernetes.client.CoreV1Api(client)

    def read(self) -> ConsumerSnapshot:
        """A snapshot, from three calls; with a pool, from four."""
        kind = {"group": "sluice.dev", "version": "v1alpha1", "plural": "kinesisconsumers"}
        found = self._custom.get_namespaced_custom_object(**kind, namespace=self._namespace, name=self._name, _request_timeout=SECONDS)
        pods = self._list("pod", label_selector=f"sluice.dev/consumer={self._name}")
        pods += self._list("pod", label_selector=f"sluice.dev/pool={self._pool}") if self._pool else []
        events = self._list("event", field_selector=f"involvedObject.name={self._name}")
        return observed.of_resource(found, pods, events)

    def _list(self, kind: str, **selector: str) -> list[dict[str, Any]]:
        listed = getattr(self._core, f"list_namespaced_{kind}")(self._namespace, **selector, _request_timeout=SECONDS)
        items: list[dict[str, Any]] = self._core.api_client.sanitize_for_serialization(listed)["items"]
        return items
