"""The pod of a redrive: what it takes from the driver's, and what it may not."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from scene import resource

from sluice_kubectl.views.actions import NotOffered
from sluice_kubectl.views.letters import ARGO, NOTES, LettersPlace, in_pod, letters_place, redrive_pod, redrive_state
from sluice_operator.apply import manifests, pod_parts
from sluice_operator.observe.parse import CONTAINERS

Json = dict[str, Any]


def consumer(path: str) -> Json:
    body = resource("running", uid="uid-1")
    body["spec"]["onError"] = {"deadLetter": {"path": path}}
    return body


def driver(volume: Json | None = None) -> Json:
    container = {
        "name": "driver",
        "image": "orders:1",
        "command": ["tini"],
        "args": ["python", "-m", "sluice_consumer"],
        "ports": [{"name": "metrics", "containerPort": 9404}],
        "livenessProbe": {"httpGet": {}},
        "volumeMounts": [{"name": "letters", "mountPath": "/letters"}],
    }
    return {
        "metadata": {"name": "orders-driver-1", "annotations": {"sluice.dev/config": "{}", "sluice.dev/report": "{}", "cni/ip": "10.0.0.1"}},
        "spec": {
            "nodeName": "node-1",
            "serviceAccountName": "orders",
            "volumes": [{"name": "letters", **(volume or {"emptyDir": {}})}],
            "containers": [container, {"name": "sidecar", "image": "proxy:1"}],
        },
    }


def test_it_has_image_configuration_and_account_of_the_driver() -> None:
    pod = redrive_pod(consumer("s3a://lake/letters"), driver(), "orders-redrive-1", ("--", "a.json"))
    container, sidecar = pod["spec"]["containers"]
    assert (container["name"], container["image"], container["command"]) == ("redrive", "orders:1", ["tini"])
    assert " ".join(container["args"]) == "python -m sluice_consumer redrive --config /etc/sluice/config.json -- a.json"
    assert {"ports", "livenessProbe"} & set(container) == set()
    assert sidecar["name"] == "sidecar"
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["restartPolicy"], "nodeName" in pod["spec"]) == ("orders", "Never", False)
    assert pod["metadata"]["annotations"] == {"sluice.dev/config": "{}"} | ARGO


def test_it_belongs_to_the_resource_and_has_no_role_of_the_operators() -> None:
    """So it goes with the resource, and the operator does not take it for a second driver."""
    meta = redrive_pod(consumer("s3a://lake/letters"), driver(), "orders-redrive-1", ())["metadata"]
    assert meta["labels"]["sluice.dev/role"] not in CONTAINERS
    assert [(one["kind"], one["uid"]) for one in meta["ownerReferences"]] == [("KinesisConsumer", "uid-1")]


def test_the_files_of_a_driver_are_those_of_the_operators_manifests() -> None:
    """Named here too, so that this program needs no pydantic."""
    assert set(NOTES) == set(manifests.FILES.values())
    assert ARGO == pod_parts.ARGO


@pytest.mark.parametrize("volume", [{"persistentVolumeClaim": {"claimName": "letters"}}, {"hostPath": {"path": "/letters"}}, {"nfs": {}}])
def test_a_volume_that_other_pods_have_is_used(volume: Json) -> None:
    assert redrive_pod(consumer("file:///letters/orders"), driver(volume), "orders-redrive-1", ())["spec"]["volumes"] == [
        {"name": "letters", **volume}
    ]


@pytest.mark.parametrize("path", ["file:///letters", "file:///letters/orders", "file:///lettersx", "file:///tmp/letters"])
def test_a_volume_that_no_other_pod_has_is_refused(path: str) -> None:
    """Else the redrive would say that there are no letters."""
    with pytest.raises(NotOffered, match="a volume that no other pod has; next: kubectl exec -n default orders-driver-1 -c driver"):
        redrive_pod(consumer(path), driver(), "orders-redrive-1", ())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, (False, "Pending", None)),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]}, (False, "0/1 nodes", None)),
        ({"containerStatuses": [{"name": "redrive", "state": {"waiting": {"reason": "ErrImagePull"}}}]}, (False, "ErrImagePull", None)),
        ({"phase": "Running", "containerStatuses": [{"name": "redrive", "state": {"running": {}}}]}, (True, "Running", None)),
        ({"phase": "Running", "containerStatuses": [{"name": "redrive", "state": {"terminated": {"exitCode": 0}}}]}, (True, "Running", 0)),
        ({"phase": "Failed", "reason": "Evicted"}, (True, "Failed", 1)),
    ],
)
def test_what_the_pod_does_is_read_of_its_container(status: Json, expected: tuple[bool, str, int | None]) -> None:
    """A sidecar that runs on says nothing; a pod that is evicted has ended."""
    state = redrive_state({"status": status})
    assert (state.started, state.waits, state.exit_code) == expected


@pytest.mark.parametrize("sign", ["$(reboot)", "`reboot`", ";reboot", "'", "&"])
def test_a_command_that_is_printed_has_the_place_as_one_word(sign: str) -> None:
    """Whoever writes a KinesisConsumer may name any place, and somebody else pastes the command."""
    path, queue = f"file:///letters/{sign}", f"https://sqs.eu-west-1.amazonaws.com/1/{sign}"
    said = str(in_pod("orders-driver-1", "shop", LettersPlace(path, None, None), "list"))
    assert shlex.split(said.partition("next: ")[2])[-1] == path
    body = consumer(path)
    body["spec"]["onError"]["deadLetter"] = {"sqs": queue}
    with pytest.raises(NotOffered) as refused:
        letters_place(body)
    assert shlex.split(str(refused.value).partition("next: ")[2])[-1] == queue
