"""Installs what a scenario needs: Docker, a cluster, images, the operator by Helm. Collects diagnostics after a failure.

`<work>/CLUSTER.made.json` lists what did not exist before, so that `clean` removes that and nothing else.
"""

import json
from pathlib import Path
from typing import Any

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import cluster, docker, images, workers
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.images import Images
from sluice_lab.steps import console, step

NAMESPACE = "sluice-demo"
OPERATOR_NAMESPACE = "sluice-system"
RELEASE = "sluice"
PLURALS = ("kinesisconsumers", "kinesisconsumerpools")
CHART = places.REPO / "charts" / "sluice"


def install(name: str) -> KindCluster:
    """Ensure a cluster with the operator, and an empty namespace for the demo."""
    work = places.work()
    note = Note(work, name)
    if not docker.answering():
        note.add(docker=True)
    docker.ensure(work)
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


def ensure_empty_namespace(found: KindCluster) -> None:
    """Ensure the demo's namespace, without anything from an earlier run."""
    if _exists(found, "namespace", NAMESPACE):
        with step(f"delete namespace {NAMESPACE} of an earlier run"):
            delete_namespace(found)
    with step(f"namespace {NAMESPACE}"):
        found.kubectl("create", "namespace", NAMESPACE)


def delete_namespace(found: KindCluster) -> None:
    """Delete the namespace.

    The operator is uninstalled first. A consumer or a pool of an interrupted run may keep its finalizer forever, and a running operator would add it
    again.
    """
    here = f"--namespace={NAMESPACE}"
    found.helm("uninstall", RELEASE, f"--namespace={OPERATOR_NAMESPACE}", "--ignore-not-found", "--wait")
    for plural in PLURALS:
        names = found.kubectl(here, "get", plural, "--output=name").split() if _exists(found, "crd", f"{plural}.sluice.dev") else []
        for name in names:
            found.kubectl(here, "patch", name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    found.kubectl(here, "delete", "jobs,pods", "--all", "--grace-period=0", "--force")
    found.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


def values(found: KindCluster) -> Path:
    """The file of the values with which the operator is installed. JSON is YAML."""
    return found.kubeconfig.with_suffix(".values.json")


def _helm(found: KindCluster, tags: Images) -> None:
    repository, _, tag = tags.operator.partition(":")
    wanted = {
        "image": {"repository": repository, "tag": tag},
        "watchNamespaces": [NAMESPACE],
        "consumer": {"image": tags.consumer, "namespaces": [NAMESPACE]},
        "policy": {"privilegedPods": True},  # the sinks of demo and nemesis are folders of the node
    }
    path = values(found)
    path.write_text(json.dumps(wanted, indent=2))
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
        "describe.txt": (here, "describe", "kinesisconsumerpools,kinesisconsumers,pods,jobs"),
        "events.txt": (here, "get", "events", "--sort-by=.lastTimestamp"),
        "resource.json": (here, "get", "kinesisconsumerpools,kinesisconsumers", "--output=json"),
        "driver.log": (here, "logs", "--selector=sluice.dev/role in (driver, pool)", "--tail=-1", "--prefix"),
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
    """The record of what was made on this machine for a cluster, kept across runs until `clean`."""

    def __init__(self, work: Path, name: str) -> None:
        self.path = work / f"{name}.made.json"

    def read(self) -> dict[str, Any]:
        """The whole record."""
        found: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        return found

    def add(self, **made: Any) -> None:
        """Add to the record before making something: a run may be interrupted."""
        self.path.write_text(json.dumps(self.read() | made))

    def drop(self) -> bool:
        """Forget it. Returns whether to stop the Docker daemon, too; another cluster that has a record takes that over with it."""
        with places.lock(self.path.with_name("made.lock")):
            docker_too = bool(self.read().get("docker"))
            self.path.unlink(missing_ok=True)
            others = sorted(self.path.parent.glob("*.made.json"))
            if docker_too and others:
                Note(self.path.parent, others[0].name.removesuffix(".made.json")).add(docker=True)
            return docker_too and not others


def _exists(found: KindCluster, kind: str, name: str) -> bool:
    return bool(found.kubectl("get", kind, name, "--ignore-not-found", "--output=name").strip())
