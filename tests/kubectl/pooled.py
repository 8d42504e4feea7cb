"""A cluster with a consumer that runs in a pool."""

from __future__ import annotations

from typing import Any

from scene import Scene, resource

from sluice_operator.cluster.port import POOL_KIND

Json = dict[str, Any]
READY = {"type": "Ready", "status": "True", "reason": "Consuming", "message": ""}
FAILING = {"type": "Ready", "status": "False", "reason": "PoolFailing", "message": "each of its last ends names carts, clicks"}
HOST, EXECUTOR = "small-pool-1", "small-pool1-exec-1"


def pooled() -> Scene:
    """`orders` runs in the pool `small`, of which `views` was put out; the pool `large` fails."""
    scene = Scene()
    works = {"members": 3, "readyMembers": 2, "replicas": 2, "driver": {"pod": HOST}, "conditions": [READY], "phase": "Running"}
    works |= {"deaths": {"pod": "p", "named": [], "out": [{"uid": "u", "name": "views", "deaths": 3}]}}
    fails = {"members": 2, "conditions": [FAILING, FAILING | {"type": "Stalled", "status": "True"}], "phase": "BackingOff"}
    for name, status in (("small", works), ("large", fails)):
        scene.cluster.create({"kind": POOL_KIND, "metadata": {"namespace": "default", "name": name}, "spec": {"replicas": 2}})
        scene.cluster.set_status(POOL_KIND, "default", name, status)
    hosts = {name: _pod(scene, name, role, pool)["metadata"]["uid"] for name, role, pool in _PODS}
    body = resource("running")
    body["spec"]["pool"] = "small"
    body["status"]["driver"] |= {"pod": "orders-driver-3", "host": HOST, "uid": f"{hosts[HOST]}/orders-uid.3"}
    scene.put(body)
    return scene


_PODS = ((HOST, "pool", "small"), (EXECUTOR, "executor", "small"), ("small-pool-2", "pool", "small"), ("large-pool-1", "pool", "large"))


def _pod(scene: Scene, name: str, role: str, pool: str) -> Json:
    made, owner = scene.pod(name, "", role), scene.cluster.get(POOL_KIND, "default", pool)
    assert owner is not None
    ref = {"apiVersion": "sluice.dev/v1alpha1", "kind": POOL_KIND, "name": pool, "uid": owner["metadata"]["uid"], "controller": True}
    owners = {"ownerReferences": [ref]} if role == "pool" else {}
    scene.cluster.edit(made, {"metadata": {"labels": {"sluice.dev/pool": pool}, **owners}})
    return made
