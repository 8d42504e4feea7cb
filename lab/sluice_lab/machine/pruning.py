"""Taking back disk: every change of dependencies leaves 5 GB behind, in Docker's cache and on the cluster's nodes."""

import re

from sluice_lab.machine import cluster, images, loading, node_image
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

KEEP = 2
_OURS = re.compile(r"sluice-[a-z-]+:[0-9a-f]{12}")  # a tag that somebody gave by hand stays
_KINDS = ("sluice-operator", "sluice-consumer", "sluice-operator-base", "sluice-consumer-base", "sluice-code")
_PARTS = ("kind-base", "kind-component", "kind-pause", node_image.IMAGE, images.BASE)


def prune(there: KindCluster | None) -> None:
    """Remove all but the newest of Sluice's images, and old leftovers of builds. The next build may take two minutes."""
    with step("prune docker's images") as current:
        listed = [_tags(kind) for kind in _KINDS]
        old = [tag for tags in listed for tag in tags[KEEP:]]
        if old:
            run("docker", "rmi", *old)
        run("docker", "image", "prune", "--force", "--filter=until=1h")
        current.note(f"{len(old)} removed")
    kept = {tag for tags in listed for tag in tags[:KEEP]}
    for node in cluster.nodes(there) if there else ():
        with step(f"prune images on {node}") as current:
            current.note(f"{_prune_node(node, kept)} removed")


def remove() -> None:
    """Remove every image that the lab built: ours, the node's and its parts, and Debian's if no registry gave it."""
    with step("remove the images built here") as current:
        built = [tag for kind in _KINDS for tag in _tags(kind)] + [tag for tag in _PARTS if _built_here(tag)]
        if built:
            run("docker", "rmi", "--force", *built)
        run("docker", "image", "prune", "--force")
        current.note(f"{len(built)} removed")


def _built_here(tag: str) -> bool:
    """Whether an image is there and came from no registry."""
    return run("docker", "image", "ls", "--digests", "--format", "{{.Digest}}", tag).split()[:1] == ["<none>"]


def _tags(repository: str) -> list[str]:
    """The images of one kind that the lab built, newest first."""
    listed = run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository).split()
    return [tag for tag in listed if _OURS.fullmatch(tag)]


def _prune_node(node: str, kept: set[str]) -> int:
    """Remove a node's images of ours that are not kept, by each of their names: an image goes with its last one."""
    images = loading.on_node(node)
    ours = {name for name in images if _OURS.fullmatch(name)}
    goes = {images[name] for name in ours - kept} - {images[name] for name in ours & kept}
    names = [name for name, digest in images.items() if digest in goes]
    full = [name if name.startswith("sha256:") else f"docker.io/library/{name}" for name in names]
    if full:
        run("docker", "exec", node, "ctr", "--namespace=k8s.io", "images", "remove", *full)
    return len(full)
