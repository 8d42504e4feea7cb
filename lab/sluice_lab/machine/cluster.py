"""A Kubernetes cluster of kind. Its node image is the published one if a registry answers, else one built here."""

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import CommandFailedError, LabError
from sluice_lab.machine import images, loading, node_image, processes, tools
from sluice_lab.machine.processes import answers, run
from sluice_lab.steps import step

PUBLISHED = "kindest/node:v1.34.0"  # what kind v0.30.0 was released with
NETWORK = "kind"
TIMEOUT_SECONDS = 60.0  # a busy machine answers late, and a cluster that is given up is deleted with all work in it
# kubeadm's defaults would request almost one of two cores. A request is also a share, so the API server keeps a larger one.
_CPU = {"kube-apiserver": "100m", "etcd": "100m", "kube-controller-manager": "25m", "kube-scheduler": "25m"}
_PATCHES = "/kind/patches"


@dataclass(frozen=True)
class KindCluster:
    """A kind cluster, and how to reach it."""

    name: str
    kubeconfig: Path
    work: Path

    @property
    def node(self) -> str:
        """The control plane's container."""
        return f"{self.name}-control-plane"

    def kubectl(self, *arguments: str, seconds: float = 300) -> str:
        """Run kubectl against this cluster."""
        program = tools.kubectl(self.work, self.node)
        return run(program, f"--kubeconfig={self.kubeconfig}", *arguments, seconds=seconds)

    def helm(self, *arguments: str, seconds: float = 300) -> str:
        """Run helm against this cluster."""
        return run(tools.helm(), f"--kubeconfig={self.kubeconfig}", *arguments, seconds=seconds)


def established(kubectl: Callable[..., str], crds: str) -> None:
    """Wait until the API server serves CRDs. kubectl fails on one whose status is still empty, so it is asked again.

    Raises:
        LabError: the API server takes too long.
    """

    def done() -> bool:
        try:
            kubectl("wait", "--for=condition=Established", crds, "--timeout=10s")
        except LabError:
            return False
        return True

    if not processes.poll(done, seconds=180, pause=1):
        raise LabError(f"the API server does not serve {crds}")


@dataclass(frozen=True)
class HostAddress:
    """The address of this machine for pods: a server listens on `listen`, and pods connect to `pods`."""

    listen: str
    pods: str


def default_name() -> str:
    """`sluice-` and four digits that distinguish this checkout's work folder from another's. So two checkouts never share a cluster."""
    return f"sluice-{hashlib.sha256(str(places.work()).encode()).hexdigest()[:4]}"


def exists(name: str) -> bool:
    """Whether there is a cluster of that name, in any state. This asks Docker alone; it needs no other program."""
    label = f"label=io.x-k8s.kind.cluster={name}"
    return bool(run("docker", "ps", "--all", "--quiet", "--filter", label).strip())


def lanes(name: str) -> list[str]:
    """The clusters of that name that exist, and those of tests that ran beside them: `sluice-1a2b`, `sluice-1a2b-more`."""
    label = "io.x-k8s.kind.cluster"
    found = run("docker", "ps", "--all", "--filter", f"label={label}", "--format", f'{{{{.Label "{label}"}}}}').split()
    return sorted({each for each in found if each == name or each.startswith(f"{name}-")})


def create(name: str, workers: int = 0) -> KindCluster:
    """Ensure a cluster of one control plane and `workers` workers. An existing cluster of that name that answers is used as it is."""
    work = places.work()
    with places.lock(work / f"{name}.lock"):
        return _create(name, workers, work)


def node(work: Path) -> str:
    """The image of a node: the published one, or one that is built here unless it is there."""
    return PUBLISHED if images.registry_answers(PUBLISHED) else node_image.ensure(work)


def find(name: str, work: Path) -> KindCluster | None:
    """The cluster of that name, in any state; None if there is none."""
    if not exists(name):
        return None
    cluster = KindCluster(name, work / f"{name}.kubeconfig", work)
    with contextlib.suppress(CommandFailedError):  # its containers may be stopped
        _kind(work, "export", "kubeconfig", f"--name={name}", f"--kubeconfig={cluster.kubeconfig}")
    return cluster


def delete(name: str) -> None:
    """Delete the cluster of that name, if it exists."""
    work = places.work()
    if find(name, work):
        with step(f"delete cluster {name}"):
            _kind(work, "delete", "cluster", f"--name={name}")
    (work / f"{name}.kubeconfig").unlink(missing_ok=True)


def healthy(cluster: KindCluster) -> bool:
    """Whether the API answers and all nodes are ready."""
    kubectl = (tools.kubectl(cluster.work, cluster.node), f"--kubeconfig={cluster.kubeconfig}")
    ready = answers(*kubectl, "get", "--raw=/readyz", "--request-timeout=5s")
    return ready and answers(*kubectl, "wait", "--for=condition=Ready", "node", "--all", "--timeout=10s")


def load_image(cluster: KindCluster, *tags: str) -> None:
    """Ensure images on all nodes of the cluster. Pods use them with `imagePullPolicy: IfNotPresent`."""
    for tag in tags:
        with step(f"load {tag}") as current, places.lock(cluster.work / f"{cluster.name}.lock"):
            if not _missing(cluster, tag):
                current.note("already there")
            elif (parts := loading.parts(tag)) is None:
                _load_whole(cluster, tag)
            else:
                base, _ = parts
                if _missing(cluster, base):
                    _load_whole(cluster, base)
                    current.note("with its base")
                for node in _missing(cluster, tag):
                    loading.compose(node, tag, cluster.work)


def nodes(cluster: KindCluster) -> list[str]:
    """The cluster's node containers."""
    return _kind(cluster.work, "get", "nodes", f"--name={cluster.name}").split()


def host_address(cluster: KindCluster) -> HostAddress:
    """The address at which pods reach this machine: the gateway of kind's network, or Docker Desktop's name for the host."""
    networks = json.loads(run("docker", "network", "inspect", NETWORK))
    gateways = [config.get("Gateway", "") for config in networks[0]["IPAM"]["Config"]]
    gateway = next((address for address in gateways if "." in address), None)
    if gateway and _ours(gateway):
        return HostAddress(gateway, gateway)
    desktop = run("docker", "exec", cluster.node, "getent", "ahostsv4", "host.docker.internal").split()
    if not desktop:
        raise LabError(f"pods cannot reach this machine: {gateway} is not one of its addresses, and Docker Desktop does not run here")
    return HostAddress("127.0.0.1", desktop[0])


def _create(name: str, workers: int, work: Path) -> KindCluster:
    if (cluster := find(name, work)) is not None:
        with step(f"cluster {name}") as current:
            if _runs(cluster) and processes.poll(partial(healthy, cluster), seconds=TIMEOUT_SECONDS, pause=2):
                current.note("already there")
                return cluster
            _kind(work, "delete", "cluster", f"--name={name}")
            current.note("did not answer, deleted")
    cluster = KindCluster(name, work / f"{name}.kubeconfig", work)
    image = node(work)
    with step(f"cluster {name}") as current:
        config = _config(work / "kind", workers)
        options = (f"--image={image}", f"--config={config}", f"--kubeconfig={cluster.kubeconfig}", "--wait=180s")
        _kind(work, "create", "cluster", f"--name={name}", *options)
        current.note(f"Kubernetes {image.partition(':')[2]}, {1 + workers} node{'s' if workers else ''}")
    with step("cluster DNS"):
        _spare_dns(cluster)
    return cluster


def _runs(cluster: KindCluster) -> bool:
    """Whether the control plane's container runs. It does not after the Docker daemon was stopped."""
    return run("docker", "inspect", "--format", "{{.State.Running}}", cluster.node).strip() == "true"


def _ours(address: str) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _missing(cluster: KindCluster, tag: str) -> list[str]:
    """The nodes that lack an image."""
    return [node for node in nodes(cluster) if tag not in loading.on_node(node)]


def _load_whole(cluster: KindCluster, tag: str) -> None:
    _kind(cluster.work, "load", "docker-image", f"--name={cluster.name}", tag)


def _kind(work: Path, *arguments: str) -> str:
    return run(tools.kind(), *arguments, env={"PATH": tools.path(work)}, cwd=Path(os.sep))


def _config(out: Path, workers: int) -> Path:
    """Write kind's configuration, with CPU requests that leave room for Spark on two cores."""
    patches = places.made(out / "patches")
    for name, cpu in _CPU.items():
        container = {"name": name, "resources": {"requests": {"cpu": cpu}}}
        (patches / f"{name}+strategic.json").write_text(json.dumps({"spec": {"containers": [container]}}))
    kubeadm = json.dumps({"kind": "InitConfiguration", "patches": {"directory": _PATCHES}})
    control_plane = {
        "role": "control-plane",
        "extraMounts": [{"hostPath": str(patches), "containerPath": _PATCHES, "readOnly": True}],
        "kubeadmConfigPatches": [kubeadm],
    }
    roles = [control_plane, *({"role": "worker"} for _ in range(workers))]
    config = out / "cluster.json"  # JSON is YAML
    config.write_text(json.dumps({"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": roles}))
    return config


def _spare_dns(cluster: KindCluster) -> None:
    """Run one CoreDNS with a small CPU request instead of two. Wait for it, because kind's --wait covers only nodes."""
    container = {"name": "coredns", "resources": {"requests": {"cpu": "25m"}}}
    strategy = {"type": "Recreate", "rollingUpdate": None}
    spec = {"replicas": 1, "strategy": strategy, "template": {"spec": {"containers": [container]}}}
    patch = json.dumps({"spec": spec})
    cluster.kubectl("--namespace=kube-system", "patch", "deployment/coredns", f"--patch={patch}")
    cluster.kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
