"""What a GitOps tool needs in a cluster before its programs run: a namespace, CRDs, and whatever else. All of it goes with the tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluice_lab.machine.cluster import KindCluster, established

DEFINITION = "CustomResourceDefinition"
WIDE = {"ClusterRole", "ClusterRoleBinding"}
Json = dict[str, Any]


def apply(cluster: KindCluster, namespace: str, objects: list[Json], home: Path) -> None:
    """Create the namespace, apply the CRDs, wait until the API server serves them, then apply the rest. `home` takes the files for kubectl.

    Raises:
        LabError: the namespace is there already, or the API server takes too long.
    """
    cluster.kubectl("create", "namespace", namespace)
    definitions = [body for body in objects if body["kind"] == DEFINITION]
    for name, bodies in (("definitions", definitions), ("rest", [body for body in objects if body not in definitions])):
        if bodies:
            path = home / f"{name}.json"
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))
            cluster.kubectl("apply", "--server-side", f"--namespace={namespace}", f"--filename={path}")
        if name == "definitions":
            established(cluster.kubectl, f"--filename={path}")


def remove(cluster: KindCluster, namespace: str, objects: list[Json]) -> None:
    """The CRDs first, and with them the tool's resources. None of these may wait for a finalizer of the tool, which does not run any more."""
    names = [body["metadata"]["name"] for body in objects if body["kind"] == DEFINITION]
    cluster.kubectl("delete", "crd", *names, "--ignore-not-found", "--timeout=60s")
    cluster.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--timeout=120s")
    for body in objects:
        if body["kind"] in WIDE:
            cluster.kubectl("delete", body["kind"], body["metadata"]["name"], "--ignore-not-found")
