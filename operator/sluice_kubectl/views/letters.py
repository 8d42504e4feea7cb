"""Where the dead letters of a KinesisConsumer are, and the pod that redrives them. Pure."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from sluice_kubectl.views.actions import NotOffered
from sluice_kubectl.views.words import shown
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.names import ARGO, CONFIG, EXECUTOR_TEMPLATE, GROUP

Json = dict[str, Any]
ROLE = "redrive"
PROBES = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
PLACED = ("nodeName", "ephemeralContainers", "hostname", "subdomain", "priority", "preemptionPolicy")
"""What the cluster gave the driver's pod, and would refuse or misread in another one."""
NOTES = (CONFIG, EXECUTOR_TEMPLATE)
S3A = "spark.hadoop.fs.s3a.endpoint"
OTHERS = {
    "sqs": "they are messages of the queue {place}; next: aws sqs receive-message --queue-url {place}",
    "kinesis": "they are records of the stream {place}; next: read it with a consumer of its own",
}


@dataclass(frozen=True, slots=True)
class LettersPlace:
    """A folder of letters; region and endpoint of its bucket, None: as the person's AWS configuration says."""

    path: str
    region: str | None
    endpoint: str | None


def letters_place(body: Json) -> LettersPlace:
    """What spec.onError.deadLetter says.

    Raises:
        NotOffered: there is none, or it is a queue or a stream.
    """
    name, spec = body["metadata"]["name"], body["spec"]
    place = (spec.get("onError") or {}).get("deadLetter") or {}
    if path := place.get("path"):
        conf = spec.get("sparkConf") or {}
        return LettersPlace(path, conf.get(f"{S3A}.region") or spec["stream"].get("region"), conf.get(S3A))
    for kind, words in OTHERS.items():
        if kind in place:
            raise NotOffered(f"{name} keeps no folder of dead letters: {words.format(place=place[kind])}")
    raise NotOffered(f"{name} keeps no dead letters: spec.onError.deadLetter is not set")


def in_pod(pod: str, namespace: str, place: LettersPlace, what: str) -> NotOffered:
    """Letters in a volume of the driver's pod are read there."""
    command = f"kubectl exec -n {namespace} {pod} -c driver -- python -m sluice_checkpoints dead-letters {what} --path {place.path}"
    return NotOffered(f"the letters are at {place.path} of the driver's pod, which is no folder of this machine; next: {command}")


def redrive_pod(consumer: Json, driver: Json, name: str, arguments: tuple[str, ...]) -> Json:
    """A pod with the driver's image, configuration, account, resources and volumes, that gives dead letters to `process`.

    The resource owns it, so it goes with it. Its role is none of the operator's, which leaves it alone.

    Raises:
        NotOffered: the letters are in a volume that only the driver's own pod has.
    """
    meta, spec = consumer["metadata"], copy.deepcopy(driver["spec"])
    container = next(one for one in spec["containers"] if one["name"] == "driver")
    _reachable(letters_place(consumer), spec, container, f"-n {meta['namespace']} {driver['metadata']['name']}")
    for field in PLACED:
        spec.pop(field, None)
    for field in PROBES:
        container.pop(field, None)
    options = ["--config", "/etc/sluice/config.json", *arguments]
    container |= {"name": ROLE, "args": ["python", "-m", "sluice_checkpoints", "dead-letters", "redrive", *options]}
    notes = driver["metadata"].get("annotations") or {}
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": CONSUMER_KIND, "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": {"app.kubernetes.io/managed-by": "sluice", f"{GROUP}/consumer": meta["name"], f"{GROUP}/role": ROLE},
            "annotations": {key: notes[key] for key in NOTES if key in notes} | ARGO,
            "ownerReferences": [owner],
        },
        "spec": {**spec, "restartPolicy": "Never"},
    }


def _reachable(place: LettersPlace, spec: Json, container: Json, pod: str) -> None:
    """An emptyDir, or the container's own disk, is another one in each pod: there a redrive would find no letters."""
    if not place.path.startswith("file://"):
        return
    folder = place.path.removeprefix("file://").rstrip("/") + "/"
    mounts = [one for one in container.get("volumeMounts") or () if folder.startswith(one["mountPath"].rstrip("/") + "/")]
    volume = max(mounts, key=lambda one: len(one["mountPath"]), default={"name": None})["name"]
    found: Json = next((one for one in spec.get("volumes") or () if one["name"] == volume), {"emptyDir": {}})
    if "emptyDir" in found:
        command = f"kubectl exec {pod} -c driver -- python -m sluice_checkpoints dead-letters redrive --config /etc/sluice/config.json"
        raise NotOffered(
            f"the letters are at {place.path} of the driver's pod, a volume that no other has; next: {command}; it shares the driver's memory"
        )


@dataclass(frozen=True, slots=True)
class RedriveState:
    """Of the pod: whether its log can be read, why it waits, and the exit code once it has ended (None before)."""

    started: bool
    waits: str
    exit_code: int | None


def redrive_state(body: Json) -> RedriveState:
    """Of the pod as the API server has it; a pod that failed without its container has ended with 1."""
    status = body.get("status") or {}
    container: Json = next((one for one in status.get("containerStatuses") or () if one["name"] == ROLE), {})
    state = container.get("state") or {}
    ended = state.get("terminated")
    code = ended.get("exitCode", 1) if ended else 1 if status.get("phase") == "Failed" else None
    unplaced = (one.get("message") for one in status.get("conditions") or () if one["type"] == "PodScheduled" and one["status"] == "False")
    waits = (state.get("waiting") or {}).get("reason") or next(unplaced, None) or status.get("phase") or "Pending"
    return shown(RedriveState("running" in state or code is not None, waits, code))
