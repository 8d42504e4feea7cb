"""Adds a node to an existing cluster. kind creates nodes only together with their cluster.

Tests of a drain or a lost node need two nodes. Otherwise a cluster has one, so that images are loaded once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sluice_lab.errors import LabError
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import processes, tools
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.processes import answers, run
from sluice_lab.steps import step

BOOT_SECONDS, READY_SECONDS = 60.0, 90.0
ADDED = "dev.sluice.added"  # the label of an added node's container
# The options of kind's own nodes, so that kind loads images to this one too, and deletes it with the cluster.
_AS_KIND = (
    *("--detach", "--tty", "--privileged", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
    *("--tmpfs", "/tmp", "--tmpfs", "/run", "--volume", "/var", "--volume", "/lib/modules:/lib/modules:ro"),  # noqa: S108 - in the container
    *("--net", "kind", "--restart=on-failure:1", "--init=false", "--cgroupns=private"),
)


_IMAGES = ("ctr", "--namespace=k8s.io", "images")


@contextmanager
def worker(cluster: KindCluster, *tags: str) -> Iterator[str]:
    """Add a ready node while entered; yields its name, which is also its container's. Pods that remain on it are lost afterwards.

    Args:
        cluster: the cluster that it joins.
        tags: images to copy from the first node.

    Raises:
        LabError: it does not become ready.
    """
    name = f"{cluster.name}-worker"
    tidy(cluster)
    try:
        with step(f"node {name}"):
            _start(cluster, name)
            _join(cluster, name)
        for tag in tags:
            with step(f"load {tag} on {name}"):
                _copy_image(cluster, name, tag)
        yield name
    finally:
        with step(f"remove node {name}"):
            remove(cluster, name)


def tidy(cluster: KindCluster) -> None:
    """Restore a single schedulable node after a run that was interrupted while there were two.

    Raises:
        LabError: the cluster has other nodes that the lab did not add.
    """
    for name in run("docker", "ps", "--all", f"--filter=label={ADDED}={cluster.name}", "--format={{.Names}}").split():
        with step(f"remove node {name} of an earlier run"):
            remove(cluster, name)
    cluster.kubectl("uncordon", cluster.node)
    if len(found := clusters.nodes(cluster)) > 1:
        raise LabError(
            f"cluster {cluster.name} has the nodes {', '.join(sorted(found))}; it needs one, because pods share a folder of it. Delete it first"
        )


def remove(cluster: KindCluster, name: str) -> None:
    """Remove a node if it exists. Its pods are deleted at once, because they would count as running for a minute."""
    cluster.kubectl("delete", "node", name, "--ignore-not-found")
    if answers("docker", "inspect", name):
        run("docker", "rm", "--force", "--volumes", name)
    cluster.kubectl("delete", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={name}", "--grace-period=0", "--force")


def _start(cluster: KindCluster, name: str) -> None:
    """Start the node's container, and wait until its container runtime answers."""
    image = run("docker", "inspect", "--format", "{{.Config.Image}}", cluster.node).strip()
    labels = (f"--label={ADDED}={cluster.name}", f"--label=io.x-k8s.kind.cluster={cluster.name}", "--label=io.x-k8s.kind.role=worker")
    path = {"PATH": tools.path(cluster.work)}  # the docker that kind calls (lab/kind/node/docker)
    run("docker", "run", f"--name={name}", f"--hostname={name}", *labels, *_AS_KIND, image, cwd=cluster.work, env=path)
    if not processes.poll(partial(answers, "docker", "exec", name, "ctr", "version"), seconds=BOOT_SECONDS, pause=0.5):
        raise LabError(f"{name}: no container runtime after {BOOT_SECONDS:.0f} s:\n{processes.tail(run('docker', 'logs', name))}")


def _join(cluster: KindCluster, name: str) -> None:
    """Run the join command that kubeadm prints. Its preflight checks are skipped: they are for machines, not containers."""
    command = run("docker", "exec", cluster.node, "kubeadm", "token", "create", "--ttl=10m", "--print-join-command").split()
    run("docker", "exec", name, *command, "--skip-phases=preflight")
    # Its kubelet creates the node a moment later. `kubectl wait` fails on a node that does not exist yet.
    if not processes.poll(partial(_registered, cluster, name), seconds=READY_SECONDS, pause=0.5):
        raise LabError(f"{name} did not join within {READY_SECONDS:.0f} s:\n{processes.tail(run('docker', 'logs', name))}")
    cluster.kubectl("wait", "--for=condition=Ready", f"node/{name}", f"--timeout={READY_SECONDS:.0f}s")


def _registered(cluster: KindCluster, name: str) -> bool:
    return bool(cluster.kubectl("get", "node", name, "--ignore-not-found", "--output=name").strip())


def _copy_image(cluster: KindCluster, name: str, tag: str) -> None:
    """Copy an image from the first node, unchanged. `kind load` would pack it again."""
    export = ("docker", "exec", cluster.node, *_IMAGES, "export", "-", f"docker.io/library/{tag}")
    processes.pipe(export, ("docker", "exec", "-i", name, *_IMAGES, "import", "-"))
