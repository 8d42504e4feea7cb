"""Where the port is tried: a cluster, a namespace in it, and what tests put there."""

from __future__ import annotations

from typing import Any

from http_fake import HttpFake
from simulated_cluster import SPEC

from sluice_operator.cluster.client import ApiServer
from sluice_operator.cluster.port import CONSUMER_KIND, Cluster

Json = dict[str, Any]


class Place:
    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def pod(self, name: str = "p", **meta: Any) -> Json:
        head = {"name": name, "namespace": self.namespace, "labels": {"sluice.dev/consumer": "orders"}, **meta}
        spec = {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"none": "such"}}
        return self.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})

    def consumer(self) -> Json:
        head = {"name": "orders", "namespace": self.namespace}
        return self.cluster.create({"apiVersion": "sluice.dev/v1alpha1", "kind": CONSUMER_KIND, "metadata": head, "spec": SPEC})

    def get(self, kind: str, name: str) -> Json | None:
        return self.cluster.get(kind, self.namespace, name)


def through(http: HttpFake) -> ApiServer:
    return ApiServer(http)  # type: ignore[arg-type]  # it stands where ApiClient stands
