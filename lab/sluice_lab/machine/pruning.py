"""Frees disk space. Each change of dependencies leaves 5 GB of old images, in Docker and on the cluster's nodes."""

import re

from sluice_lab.machine import cluster, images, loading, node_image
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

KEEP = 2
_OURS = re.compile(r"sluice-[a-z-]+:[0-9a-f]{12}")  # a tag made by hand stays
_KINDS = ("sluice-operator", "sluice-consumer", "sluice-operator-base", "sluice-consumer-base", "sluice-code")
_PARTS = ("kind-base", "kind-component", "kind-pause", node_image.IMAGE, images.BASE)


def prune(found: KindCluster | None) -> None:
    """Remove Sluice's images but the newest, and old build layers. The next build may take two minutes."""
    with step("prune docker's images") as current:
        listed = [_tags(kind) for kind in _KINDS]
        old = [tag for tags in listed for tag in tags[KEEP:]]
        if old:
            run("docker", "rmi", *old)
        run("docker", "image", "prune", "--force", "--filter=until=1h")
        current.note(f"{len(old)} removed")
    kept = {tag for tags in listed for tag in tags[:KEEP]}
    for node in cluster.nodes(found) if found else ():
        with step(f"prune images on {node}") as current:
            current.note(f"{_prune_node(node, kept)} removed")


def remove() -> None:
    """Remove every image that the lab built: Sluice's, the node's and its parts, and Debian's if it was built here."""
    with step("remove the images built here") as current:
        built = [tag for kind in _KINDS for tag in _tags(kind)] + [tag for tag in _PARTS if _built_here(tag)]
        if built:
            run("docker", "rmi", "--force", *built)
        run("docker", "image", "prune", "--force")
        current.note(f"{len(built)} removed")


def _built_here(tag: str) -> bool:
    """Whether an image exists and was not pulled from a registry."""
    return run("docker", "image", "ls", "--digests", "--format", "{{.Digest}}", tag).split()[:1] == ["<none>"]


def _tags(repository: str) -> list[str]:
    """The images of one kind that the lab built, newest first."""
    listed = run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository).split()
    return [tag for tag in listed if _OURS.fullmatch(tag)]


def _prune_node(node: str, kept: set[str]) -> int:
    """Remove Sluice's images that are not kept from a node. All names of an image are removed, because the last one keeps it."""
    images = loading.on_node(node)
    ours = {name for name in images if _OURS.fullmatch(name)}
    unused = {images[name] for name in ours - kept} - {images[name] for name in ours & kept}
    names = [name for name, digest in images.items() if digest in unused]
    full = [name if name.startswith("sha256:") else f"docker.io/library/{name}" for name in names]
    if full:
        run("docker", "exec", node, "ctr", "--namespace=k8s.io", "images", "remove", *full)
    return len(full)
