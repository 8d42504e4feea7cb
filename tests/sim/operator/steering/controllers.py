"""The cluster's own controllers: Jobs, foreground deletion, garbage."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sluice_lab.fakes.cluster import FINISHED, MemoryCluster, copied
from sluice_operator.cluster.port import Rejected

Json = dict[str, Any]
TRACKING = "batch.kubernetes.io/job-tracking"
FINALIZERS = {"foreground": "foregroundDeletion", "orphan": "orphan"}


def tick(server: MemoryCluster) -> None:
    pods = [pod for pod in server.all("Pod") if _owner(pod, "kind") == "Job"]
    jobs = {job["metadata"]["uid"]: job for job in server.all("Job")}
    for pod in pods:
        if _over(pod) or _owner(pod) not in jobs:
            server.edit(pod, {"metadata": {"finalizers": None}})
    for uid, job in jobs.items():
        if not job.get("status") and "deletionTimestamp" not in job["metadata"]:
            _job(server, job, [pod for pod in pods if _owner(pod) == uid])
    _foreground(server)
    _orphan(server)
    server.collect_garbage()


def _job(server: MemoryCluster, job: Json, pods: list[Json]) -> None:
    """One pod; another one only for a pod that the cluster took away."""
    if any(not _over(pod) for pod in pods):
        return
    failed = [pod for pod in pods if not _disrupted(pod)]
    if not failed:
        with suppress(Rejected):  # FailedCreate: an event tells it, and the controller tries again
            server.create(_pod(job, len(pods)))
        return
    kind = "Complete" if failed[-1].get("status", {}).get("phase") == "Succeeded" else "Failed"
    condition = {"type": kind, "status": "True", "message": "Job has reached the specified backoff limit"}
    meta = job["metadata"]
    server.set_status("Job", meta["namespace"], meta["name"], {"conditions": [condition]})


def _pod(job: Json, number: int) -> Json:
    template, meta = copied(job["spec"]["template"]), job["metadata"]
    refs = [{"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}]
    name = f"{meta['name']}-{meta['uid']}-{number}"
    labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": meta["name"]}
    head = {**template["metadata"], "labels": labels, "namespace": meta["namespace"], "name": name, "ownerReferences": refs, "finalizers": [TRACKING]}
    return {"kind": "Pod", "metadata": head, "spec": template["spec"]}


def _over(pod: Json) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase in FINISHED or (phase is None and "deletionTimestamp" in pod["metadata"])  # deleted before it began


def _disrupted(pod: Json) -> bool:
    return any(condition["type"] == "DisruptionTarget" for condition in pod.get("status", {}).get("conditions", ()))


def _owner(body: Json, what: str = "uid") -> str:
    return str((body["metadata"].get("ownerReferences") or [{}])[0].get(what, ""))


def _foreground(server: MemoryCluster) -> None:
    """`--cascade=foreground`, as Argo CD deletes: children first."""
    for owner in [body for body in server.all("KinesisConsumer") if FINALIZERS["foreground"] in body["metadata"].get("finalizers", ())]:
        meta = owner["metadata"]
        children = [b for kind in ("Pod", "Job") for b in server.all(kind) if _owner(b) == meta["uid"]]
        if not children:
            server.edit(owner, {"metadata": {"finalizers": [name for name in meta["finalizers"] if name != FINALIZERS["foreground"]]}})
        for child in children:
            head = child["metadata"]
            if "deletionTimestamp" not in head:
                server.remove(child["kind"], head["namespace"], head["name"], head["uid"])


def _orphan(server: MemoryCluster) -> None:
    """`--cascade=orphan`: the owner is taken off whatever it had, and then it may go."""
    for owner in [body for body in server.all("KinesisConsumer") if FINALIZERS["orphan"] in body["metadata"].get("finalizers", ())]:
        meta = owner["metadata"]
        if "deletionTimestamp" not in meta:
            continue
        for child in [b for kind in ("Pod", "Job") for b in server.all(kind) if _owner(b) == meta["uid"]]:
            server.edit(child, {"metadata": {"ownerReferences": []}})
        server.edit(owner, {"metadata": {"finalizers": [name for name in meta["finalizers"] if name != FINALIZERS["orphan"]]}})
