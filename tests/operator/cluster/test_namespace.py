"""A namespace that is deleted does not wait for the operator, though our rights in it go first."""

from __future__ import annotations

from typing import Any

from simulated_cluster import BEGIN, KEY, SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, Labels, Rejected
from sluice_operator.names import FINALIZER
from sluice_operator.observe.cache import Cache
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

Json = dict[str, Any]


class Bereft(MemoryCluster):
    """The RoleBinding is gone: only what the small ClusterRole grants is answered."""

    bereft = False

    def list(self, kind: str, namespace: str, labels: Labels) -> list[Json]:
        if self.bereft:
            raise Rejected("Forbidden", f"cannot list {kind}")
        return super().list(kind, namespace, labels)

    def create(self, body: Json) -> Json:
        if self.bereft:
            raise Rejected("Forbidden", f"cannot create {body['kind']}")
        return super().create(body)


def scene(*, dying: bool) -> tuple[Bereft, ReconcileContext]:
    memory = Bereft(lambda: BEGIN)
    name = {"namespace": KEY.namespace, "name": KEY.name}
    body = memory.create({"kind": CONSUMER_KIND, "metadata": {**name, "finalizers": [FINALIZER]}, "spec": SPEC})
    space = memory.create({"kind": "Namespace", "metadata": {"namespace": KEY.namespace, "name": "", "finalizers": ["kubernetes"]}})
    labels = {"sluice.dev/consumer": KEY.name, "sluice.dev/role": "driver", "sluice.dev/attempt": "1"}
    ref = {"apiVersion": "sluice.dev/v1alpha1", "kind": CONSUMER_KIND, "name": KEY.name, "uid": body["metadata"]["uid"], "controller": True}
    head = {"namespace": KEY.namespace, "name": "orders-driver-1", "labels": labels, "ownerReferences": [ref]}
    memory.create({"kind": "Pod", "metadata": head, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 150}})
    memory.delete(CONSUMER_KIND, *KEY, body["metadata"]["uid"])
    if dying:
        memory.delete("Namespace", KEY.namespace, "", space["metadata"]["uid"])
    context = ReconcileContext(memory, Cache(), Settings())
    context.cache.see(CONSUMER_KIND, memory.get(CONSUMER_KIND, *KEY) or {}, BEGIN)
    return memory, context


def passes(context: ReconcileContext, number: int) -> None:
    for _ in range(number):
        reconcile(context, KEY, BEGIN, force_refresh=True)


def test_with_its_namespace_a_resource_goes_at_once_though_nothing_can_be_listed() -> None:
    """Kubernetes ends the pods in their grace periods; who waits for them would wait for ever."""
    memory, context = scene(dying=True)
    memory.bereft = True
    passes(context, 2)
    assert memory.get(CONSUMER_KIND, *KEY) is None
    assert memory.get("Pod", KEY.namespace, "orders-driver-1") is not None


def test_alone_it_goes_after_its_pods() -> None:
    memory, context = scene(dying=False)
    passes(context, 3)
    body = memory.get(CONSUMER_KIND, *KEY)
    assert body is not None
    assert FINALIZER in body["metadata"]["finalizers"]
