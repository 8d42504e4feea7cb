"""One more node for a cluster that is there already: kind makes nodes only together with their cluster.

For what needs two nodes (a drain, a node that is lost). A cluster has one node otherwise, and images are loaded once.
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
ADDED = "dev.sluice.added"  # the label of a container that is such a node
# As kind starts its own, so that whatever kind does with nodes (load images, delete them with their cluster) finds this one too.
_AS_KIND = (
    *("--detach", "--tty", "--privileged", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
    *("--tmpfs", "/tmp", "--tmpfs", "/run", "--volume", "/var", "--volume", "/lib/modules:/lib/modules:ro"),  # noqa: S108 - in the container
    *("--net", "kind", "--restart=on-failure:1", "--init=false", "--cgroupns=private"),
)


_IMAGES = ("ctr", "--namespace=k8s.io", "images")


@contextmanager
def worker(cluster: KindCluster, *tags: str) -> Iterator[str]:
    """A second node, ready, while entered; gives the name of node and container. Pods that are still on it afterwards are lost with it.

    Args:
        cluster: what it joins.
        tags: images that the first node has, and this one needs.

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
            with step(f"load {tag} there"):
                _bring(cluster, name, tag)
        yield name
    finally:
        with step(f"remove node {name}"):
            remove(cluster, name)


def tidy(cluster: KindCluster) -> None:
    """Have one node again, which takes pods, if a run was interrupted while there were two.

    Raises:
        LabError: somebody's own cluster, with nodes that were not added here.
    """
    for name in run("docker", "ps", "--all", f"--filter=label={ADDED}={cluster.name}", "--format={{.Names}}").split():
        with step(f"remove node {name}, which an earlier run left"):
            remove(cluster, name)
    cluster.kubectl("uncordon", cluster.node)
    if len(found := clusters.nodes(cluster)) > 1:
        raise LabError(
            f"cluster {cluster.name} has the nodes {', '.join(sorted(found))}: one is needed, for pods meet in a folder of it. Delete it first"
        )


def remove(cluster: KindCluster, name: str) -> None:
    """Remove a node, if it is there, and the pods on it at once: for a minute they would count as running."""
    cluster.kubectl("delete", "node", name, "--ignore-not-found")
    if answers("docker", "inspect", name):
        run("docker", "rm", "--force", "--volumes", name)
    cluster.kubectl("delete", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={name}", "--grace-period=0", "--force")


def _start(cluster: KindCluster, name: str) -> None:
    """Its container, with a container runtime that answers."""
    image = run("docker", "inspect", "--format", "{{.Config.Image}}", cluster.node).strip()
    labels = (f"--label={ADDED}={cluster.name}", f"--label=io.x-k8s.kind.cluster={cluster.name}", "--label=io.x-k8s.kind.role=worker")
    path = {"PATH": tools.path(cluster.work)}  # the docker that kind calls (lab/kind/node/docker)
    run("docker", "run", f"--name={name}", f"--hostname={name}", *labels, *_AS_KIND, image, cwd=cluster.work, env=path)
    if not processes.poll(partial(answers, "docker", "exec", name, "ctr", "version"), seconds=BOOT_SECONDS, pause=0.5):
        raise LabError(f"{name}: no container runtime after {BOOT_SECONDS:.0f} s:\n{processes.tail(run('docker', 'logs', name))}")


def _join(cluster: KindCluster, name: str) -> None:
    """What kubeadm prints for the purpose; its checks are for machines, which this is not."""
    command = run("docker", "exec", cluster.node, "kubeadm", "token", "create", "--ttl=10m", "--print-join-command").split()
    run("docker", "exec", name, *command, "--skip-phases=preflight")
    # Its kubelet makes the node a moment later, and one that does not exist yet is not waited for.
    if not processes.poll(partial(_registered, cluster, name), seconds=READY_SECONDS, pause=0.5):
        raise LabError(f"{name} did not join within {READY_SECONDS:.0f} s:\n{processes.tail(run('docker', 'logs', name))}")
    cluster.kubectl("wait", "--for=condition=Ready", f"node/{name}", f"--timeout={READY_SECONDS:.0f}s")


def _registered(cluster: KindCluster, name: str) -> bool:
    return bool(cluster.kubectl("get", "node", name, "--ignore-not-found", "--output=name").strip())


def _bring(cluster: KindCluster, name: str, tag: str) -> None:
    """From node to node, as it lies there: `kind load` would pack it again."""
    export = ("docker", "exec", cluster.node, *_IMAGES, "export", "-", f"docker.io/library/{tag}")
    processes.pipe(export, ("docker", "exec", "-i", name, *_IMAGES, "import", "-"))
