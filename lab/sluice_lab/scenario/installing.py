"""Installs what a scenario needs: Docker, a cluster, images, the operator by Helm. Collects diagnostics after a failure.

`<work>/demo-made.json` lists what did not exist before, so that `clean` removes that and nothing else.
"""

import json
from pathlib import Path
from typing import Any

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import cluster, docker, images, node_image, workers
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.images import Images
from sluice_lab.steps import console, step

NAMESPACE = "sluice-demo"
OPERATOR_NAMESPACE = "sluice-system"
RELEASE = "sluice"
CHART = places.REPO / "charts" / "sluice"


def install(name: str) -> KindCluster:
    """Ensure a cluster with the operator, and an empty namespace for the demo."""
    work = places.work()
    note = Note(work)
    ensure_docker(work)
    images.base(work)
    if cluster.find(name, work) is None:
        note.add(cluster=name)
    found = cluster.create(name)
    workers.tidy(found)
    tags = images.build(work)
    cluster.load_image(found, tags.operator, tags.consumer)
    ensure_empty_namespace(found)
    note.add(release=name)
    _helm(found, tags)
    return found


def build(work: Path) -> None:
    """Build what a cluster and an API server are made of, if it is not there: minutes the first time, each step with its duration."""
    ensure_docker(work)
    images.base(work)
    node_image.programs(work)
    cluster.node(work)
    images.build(work)


def ensure_docker(work: Path) -> None:
    """Ensure a daemon that answers; `clean` stops it if it is started here."""
    if not docker.answering():
        Note(work).add(docker=True)
    docker.ensure(work)


def ensure_empty_namespace(found: KindCluster) -> None:
    """Ensure the demo's namespace, without anything from an earlier run."""
    if _exists(found, "namespace", NAMESPACE):
        with step(f"delete namespace {NAMESPACE} of an earlier run"):
            delete_namespace(found)
    with step(f"namespace {NAMESPACE}"):
        found.kubectl("create", "namespace", NAMESPACE)


def delete_namespace(found: KindCluster) -> None:
    """Delete the namespace.

    The operator is uninstalled first. A consumer of an interrupted run may keep its finalizer forever, and a running operator would add it again.
    """
    found.helm("uninstall", RELEASE, f"--namespace={OPERATOR_NAMESPACE}", "--ignore-not-found", "--wait")
    if _exists(found, "crd", "kinesisconsumers.sluice.dev"):
        names = found.kubectl(f"--namespace={NAMESPACE}", "get", "kinesisconsumers", "--output=name").split()
        for name in names:
            found.kubectl(f"--namespace={NAMESPACE}", "patch", name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    found.kubectl(f"--namespace={NAMESPACE}", "delete", "jobs,pods", "--all", "--grace-period=0", "--force")
    found.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


def _helm(found: KindCluster, tags: Images) -> None:
    repository, _, tag = tags.operator.partition(":")
    values = {
        "image": {"repository": repository, "tag": tag},
        "watchNamespaces": [NAMESPACE],
        "consumer": {"image": tags.consumer, "namespaces": [NAMESPACE]},
        "policy": {"privilegedPods": True},  # the sinks of demo and nemesis are folders of the node
    }
    path = places.made(places.work() / "demo") / "values.json"  # JSON is YAML
    path.write_text(json.dumps(values, indent=2))
    where = (f"--namespace={OPERATOR_NAMESPACE}", "--create-namespace")
    with step(f"helm upgrade --install {RELEASE} charts/sluice") as current:
        # The CRD may belong to another release: uninstalling a chart keeps it.
        how = ("--take-ownership", f"--values={path}", "--wait", "--timeout=3m")
        found.helm("upgrade", "--install", RELEASE, str(CHART), *where, *how)
        current.note(tags.operator)


def diagnose(found: KindCluster, folder: Path) -> None:
    """Write diagnostics of a failed scenario to a folder. A file that cannot be obtained holds the error instead."""
    places.made(folder)
    here = f"--namespace={NAMESPACE}"
    wanted = {
        "describe.txt": (here, "describe", "kinesisconsumers,pods,jobs"),
        "events.txt": (here, "get", "events", "--sort-by=.lastTimestamp"),
        "resource.json": (here, "get", "kinesisconsumers", "--output=json"),
        "driver.log": (here, "logs", "--selector=sluice.dev/role=driver", "--tail=-1"),
        "executors.log": (here, "logs", "--selector=sluice.dev/role=executor", "--tail=-1", "--prefix"),
        "operator.log": (f"--namespace={OPERATOR_NAMESPACE}", "logs", "--selector=app.kubernetes.io/name=sluice", "--tail=-1", "--prefix"),
    }
    for name, arguments in wanted.items():
        try:
            (folder / name).write_text(found.kubectl(*arguments, seconds=30))
        except LabError as error:
            (folder / name).write_text(str(error))
    console.print(f"diagnostics of the cluster: {folder}", soft_wrap=True)


class Note:
    """The record of what the demo made on this machine, kept across runs until `clean`."""

    def __init__(self, work: Path) -> None:
        self.path = work / "demo-made.json"

    def read(self) -> dict[str, Any]:
        """The whole record."""
        found: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        return found

    def add(self, **made: Any) -> None:
        """Add to the record before making something: a run may be interrupted."""
        self.path.write_text(json.dumps(self.read() | made))


def _exists(found: KindCluster, kind: str, name: str) -> bool:
    return bool(found.kubectl("get", kind, name, "--ignore-not-found", "--output=name").strip())
