"""Where the dead letters of a KinesisConsumer are, and the pod that redrives them. Pure."""

from __future__ import annotations

import copy
import json
import shlex
from dataclasses import dataclass
from typing import Any

from sluice_kubectl.views.actions import NotOffered, required
from sluice_kubectl.views.consumer import region
from sluice_kubectl.views.documents import shown
from sluice_kubectl.views.part import ObjectPart, name_of
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.names import ARGO, CONFIG, EXECUTOR_TEMPLATE, GROUP
from sluice_operator.observe.seats import SEAT

Json = dict[str, Any]
ROLE = "redrive"
PROBES = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
PLACED = ("nodeName", "ephemeralContainers", "hostname", "subdomain", "priority", "preemptionPolicy")
"""What the cluster gave the driver's pod, and would refuse or misread in another one."""
NOTES = (CONFIG, EXECUTOR_TEMPLATE)
BY_HAND = "-c driver -- python -m sluice_consumer redrive --config /etc/sluice/config.json; it uses the driver's memory"
S3A = "spark.hadoop.fs.s3a.endpoint"
OTHERS = {
    "sqs": "they are messages of the queue {place}; next: aws sqs receive-message --queue-url {quoted}",
    "kinesis": "they are records of the stream {place}; next: read it with another consumer",
}


@dataclass(frozen=True, slots=True)
class LettersPlace:
    """A folder of dead letters; region and endpoint of its bucket, None: as the person's AWS configuration says."""

    path: str
    region: str | None
    endpoint: str | None


def letters_place(body: Json) -> LettersPlace:
    """What spec.onError.deadLetter says.

    Raises:
        NotOffered: there is none, or it is a queue or a stream.
    """
    whole = ObjectPart.whole(body)
    name, spec = whole.part("metadata").must("name"), whole.part("spec")
    place = spec.part("onError", "deadLetter")
    if path := place.text("path"):
        conf = spec.part("sparkConf")
        return LettersPlace(path, conf.text(f"{S3A}.region") or region(spec.part("stream")) or None, conf.text(S3A))
    for kind, words in OTHERS.items():
        if text := place.text(kind):
            raise NotOffered(f"{name} keeps no folder of dead letters: {words.format(place=text, quoted=shlex.quote(text))}")
    raise NotOffered(f"{name} keeps no dead letters: spec.onError.deadLetter is not set")


def in_pod(pod: str, namespace: str, place: LettersPlace, what: str) -> NotOffered:
    """Dead letters in a volume of the driver's pod are read there."""
    command = f"kubectl exec -n {namespace} {pod} -c driver -- python -m sluice_checkpoints dead-letters {what} --path {shlex.quote(place.path)}"
    return NotOffered(f"the dead letters are at {place.path} of the driver's pod, which is not a folder of this machine; next: {command}")


def redrive_pod(consumer: Json, driver: Json, name: str, arguments: tuple[str, ...]) -> Json:
    """A pod with the driver's image, configuration, account, resources and volumes, that gives dead letters to `process`.

    The resource owns it, so it goes with it. Its role is none of the operator's, which leaves it alone. The driver of a consumer in a pool is the pod
    of the pool; then the configuration is that of its seat.

    Raises:
        NotOffered: the dead letters are in a volume that only the driver's own pod has.
    """
    meta, body = ObjectPart.whole(consumer).part("metadata"), ObjectPart.whole(copy.deepcopy(driver))
    spec, namespace, owned = body.part("spec").value, required(meta, "namespace"), required(meta, "name")
    container = _container(body)
    config = _of_member(body, required(meta, "uid"))
    by_hand = f"cp -c driver -n {namespace} {name_of(driver)}:PATH PATH" if config else f"exec -n {namespace} {name_of(driver)} {BY_HAND}"
    _reachable(letters_place(consumer), body.part("spec"), container, f"kubectl {by_hand}")
    for field in PLACED:
        spec.pop(field, None)
    for field in PROBES:
        container.value.pop(field, None)
    options = ["--config", "/etc/sluice/config.json", *arguments]
    container.value.update({"name": ROLE, "args": ["python", "-m", "sluice_consumer", "redrive", *options]})
    notes = body.part("metadata", "annotations").value
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": CONSUMER_KIND, "name": owned, "uid": required(meta, "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "sluice", f"{GROUP}/consumer": owned, f"{GROUP}/role": ROLE},
            "annotations": {key: notes[key] for key in NOTES if key in notes} | config | ARGO,
            "ownerReferences": [owner],
        },
        "spec": {**spec, "restartPolicy": "Never"},
    }


def _of_member(driver: ObjectPart, uid: str) -> Json:
    """The configuration in the newest seat of this consumer, with what belongs to the pool; nothing, if the driver is its own."""
    meta = driver.part("metadata")
    if meta.part("labels").text(f"{GROUP}/role") != "pool":
        return {}
    notes = meta.part("annotations").value
    attempts = [int(key.rpartition(".")[2]) for key in notes if key.startswith(f"{SEAT}{uid}.") and key.rpartition(".")[2].isdecimal()]
    try:
        seat, pool = json.loads(notes[f"{SEAT}{uid}.{max(attempts)}"]), json.loads(notes[CONFIG])
        config = {**seat["config"], "name": seat["name"], "sparkConf": pool["sparkConf"]}
    except (ValueError, KeyError, TypeError) as error:
        raise NotOffered(f"{name_of(driver.value)} has no seat of this consumer that can be read; next: status says where it runs") from error
    return {CONFIG: json.dumps(config, sort_keys=True)}


def _container(driver: ObjectPart) -> ObjectPart:
    if container := next((item for item in driver.part("spec").parts("containers") if item.text("name") == "driver"), None):
        return container
    raise NotOffered("the driver's pod has no container driver that a redrive could copy; next: kubectl get its pod with -o yaml")


def _reachable(place: LettersPlace, spec: ObjectPart, container: ObjectPart, command: str) -> None:
    """An emptyDir, or the container's own disk, is another one in each pod: there a redrive would find no dead letters."""
    if not place.path.startswith("file://"):
        return
    folder = place.path.removeprefix("file://").rstrip("/") + "/"
    mounts = [(item.must("mountPath"), item.must("name")) for item in container.parts("volumeMounts")]
    _, volume = max((mount for mount in mounts if folder.startswith(mount[0].rstrip("/") + "/")), key=lambda mount: len(mount[0]), default=("", None))
    source: Json = next((item.value for item in spec.parts("volumes") if item.text("name") == volume), {"emptyDir": {}})
    if "emptyDir" in source:
        raise NotOffered(f"the dead letters are at {place.path} of the driver's pod, a volume that no other pod has; next: {command}")


@dataclass(frozen=True, slots=True)
class RedriveState:
    """Of the pod: whether its log can be read, why it waits, and the exit code once it has ended (None before)."""

    started: bool
    waits: str
    exit_code: int | None


def redrive_state(body: Json) -> RedriveState:
    """Of the pod as the API server has it; a pod that failed without its container has ended with 1."""
    status = ObjectPart.whole(body).part("status")
    state = next((item for item in status.parts("containerStatuses") if item.text("name") == ROLE), status.part("")).part("state")
    ended = state.part("terminated")
    code = (1 if (exit_code := ended.code("exitCode")) is None else exit_code) if ended.value else 1 if status.text("phase") == "Failed" else None
    unplaced = (item.text("message") for item in status.parts("conditions") if (item.text("type"), item.text("status")) == ("PodScheduled", "False"))
    waits = state.part("waiting").text("reason") or next(unplaced, None) or status.text("phase") or "Pending"
    return shown(RedriveState(state.has("running") or code is not None, waits, code))
