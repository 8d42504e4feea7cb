"""Pods and their status, as Spark and a kubelet write them."""

from __future__ import annotations

from datetime import UTC, datetime

from operator_api import ROLE, Json

NODE: Json = {"target": {"apiVersion": "v1", "kind": "Node", "name": "node"}}


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def owner(meta: Json, version: str, kind: str) -> Json:
    return {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}


def container(name: str, phase: str, state: Json) -> Json:
    ready = "running" in state
    one = {"name": name, "image": "", "imageID": "", "restartCount": 0, "ready": ready, "started": ready, "state": state}
    conditions = [{"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")]
    return {"status": {"phase": phase, "conditions": conditions, "containerStatuses": [one]}}


def executor(meta: Json, name: str) -> Json:
    labels = {**meta["labels"], ROLE: "executor"}
    labels.pop("sluice.dev/attempt")
    head = {"name": name, "labels": labels, "ownerReferences": [owner(meta, "v1", "Pod")]}
    spec = {"nodeName": "node", "containers": [{"name": "executor", "image": "sluice-consumer:bench"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec}
