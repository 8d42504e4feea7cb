"""Two operators of two classes, as processes, on one real API server: each has its own resources, and a label hands one over."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from crd_server import CONSUMERS, install
from executors_kubelet import Admin
from patience import PATIENCE
from simulated_cluster import SPEC

from sluice_lab import places
from sluice_lab.machine import apiserver, processes
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_operator.cluster.operator_class import CLASS

pytestmark = pytest.mark.built

Json = dict[str, Any]


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    with ExitStack() as stack:
        server = stack.enter_context(apiserver.running(places.work(), ("admin", "plain", "blue")))
        found = Admin(server)
        install(found.call)
        for user, own in (("plain", ""), ("blue", "blue")):
            stack.callback(operator(server, user, own).stop)
        yield found


def operator(server: apiserver.LocalApiServer, user: str, own: str) -> processes.Running:
    environment = {
        "KUBECONFIG": str(server.kubeconfig(user)),
        "SLUICE_CLASS": own,
        "SLUICE_PORT": str(free_port(LOOPBACK)),
        "WATCH_NAMESPACES": "default",
    }
    return processes.start(places.work(), processes.Program(f"operator-{user}", (sys.executable, "-m", "sluice_operator"), environment))


def make(admin: Admin, name: str, labels: Json) -> None:
    """A resource that is suspended, so that nothing but its status has to be written."""
    meta = {"name": name, "labels": labels}
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": meta, "spec": {**SPEC, "suspend": True}}
    admin.call("POST", CONSUMERS, body)


def suspended(admin: Admin, name: str) -> bool:
    return bool(admin.call("GET", f"{CONSUMERS}/{name}").get("status", {}).get("phase") == "Suspended")


def writers(audit: Path, name: str) -> set[str]:
    entries = (json.loads(line) for line in audit.read_text().splitlines())
    ours = (entry for entry in entries if entry.get("objectRef", {}).get("name") == name and "kinesisconsumers" in entry["requestURI"])
    return {entry["user"]["username"] for entry in ours} - {"admin"}


def test_each_has_its_own_and_a_label_hands_over(admin: Admin) -> None:
    audit = admin._server.audit
    for name, labels in (("mine", {}), ("theirs", {CLASS: "blue"}), ("nobodys", {CLASS: "green"}), ("given", {})):
        make(admin, name, labels)
    assert processes.poll(lambda: all(suspended(admin, name) for name in ("mine", "theirs", "given")), PATIENCE)
    assert writers(audit, "given") == {"plain"}
    admin.call("PATCH", f"{CONSUMERS}/given", {"metadata": {"labels": {CLASS: "blue"}}})
    admin.call("PATCH", f"{CONSUMERS}/given", {"spec": {"replicas": 3}})

    def taken_over() -> bool:
        body = admin.call("GET", f"{CONSUMERS}/given")
        return bool(body["status"].get("observedGeneration") == body["metadata"]["generation"])

    assert processes.poll(taken_over, PATIENCE)
    make(admin, "last", {})  # by when it is seen to, all that was before was seen
    assert processes.poll(lambda: suspended(admin, "last"), PATIENCE)
    assert writers(audit, "given") == {"plain", "blue"}
    assert writers(audit, "mine") == writers(audit, "last") == {"plain"}
    assert writers(audit, "theirs") == {"blue"}
    assert writers(audit, "nobodys") == set()
    assert "finalizers" not in admin.call("GET", f"{CONSUMERS}/nobodys")["metadata"]
