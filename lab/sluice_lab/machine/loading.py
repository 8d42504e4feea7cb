"""Loads images to a cluster's nodes. If only code changed, it loads only the layer of code.

`kind load` saves, copies and unpacks a whole image: 40 s for Spark's 1.2 GB. A Sluice image is a base and one layer of code (see the Dockerfile); two
labels name them. `kind load` loads the base once. Then the image is composed on the node from the base's manifest and the layer of code. The
composed OCI archive names the layers that the node has, and contains only the one that it lacks.
"""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from sluice_lab.machine import processes
from sluice_lab.machine.docker import BASE_LABEL, CODE_LABEL, has_image, labels, layers
from sluice_lab.machine.processes import run

_CTR = ("ctr", "--namespace=k8s.io")
_LAYER = "application/vnd.docker.image.rootfs.diff.tar"


def parts(tag: str) -> tuple[str, str] | None:
    """The base and the layer of code of an image, as image names; None if it has any other layer.

    An image built on one of Sluice's inherits its labels, but has more layers.
    """
    labelled = labels(tag)
    if BASE_LABEL not in labelled or CODE_LABEL not in labelled:
        return None
    base, code = labelled[BASE_LABEL], labelled[CODE_LABEL]
    return (base, code) if has_image(base) and has_image(code) and layers(tag)[:-1] == layers(base) else None


def on_node(node: str) -> dict[str, str]:
    """The digests of the manifests of the images on a node, by docker's names."""
    listed = run("docker", "exec", node, *_CTR, "images", "list").splitlines()[1:]
    named = (line.split()[:3] for line in listed)
    return {name.removeprefix("docker.io/library/").removeprefix("docker.io/"): digest for name, _, digest in named}


def compose(node: str, tag: str, work: Path) -> None:
    """Compose an image on a node that has its base.

    Raises:
        CommandFailedError: the node refused the archive.
    """
    base, code = parts(tag) or ("", "")
    layer = _layer(code, work / "images" / "code.tar")
    manifest = json.loads(_content(node, on_node(node)[base]))
    config = json.loads(_content(node, manifest["config"]["digest"]))
    config["rootfs"]["diff_ids"].append(_digest(layer))
    config["history"].append({"created_by": f"layer of {code}"})
    blob = json.dumps(config).encode()
    manifest["config"] |= {"digest": _digest(blob), "size": len(blob)}
    manifest["layers"].append({"mediaType": _LAYER, "digest": _digest(layer), "size": len(layer)})
    archive = work / "images" / "composed.tar"
    _write(archive, tag, manifest, (blob, layer))
    processes.pipe(("cat", str(archive)), ("docker", "exec", "-i", node, *_CTR, "images", "import", "-"))


def _layer(code: str, archive: Path) -> bytes:
    """The only layer of an image, uncompressed."""
    run("docker", "save", f"--output={archive}", code)
    with tarfile.open(archive) as saved:
        (name,) = json.loads(_member(saved, "manifest.json"))[0]["Layers"]
        layer = _member(saved, name)
    return gzip.decompress(layer) if layer.startswith(b"\x1f\x8b") else layer


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    return file.read() if file else b""


def _content(node: str, digest: str) -> str:
    return run("docker", "exec", node, *_CTR, "content", "get", digest)


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _write(archive: Path, tag: str, manifest: dict[str, Any], blobs: tuple[bytes, ...]) -> None:
    """Write an OCI archive of one image, under the name that the kubelet will use."""
    described = json.dumps(manifest).encode()
    index = {
        "mediaType": manifest["mediaType"],
        "digest": _digest(described),
        "size": len(described),
        "annotations": {"io.containerd.image.name": f"docker.io/library/{tag}"},
    }
    files = {
        "oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [index]}).encode(),
        **{f"blobs/{_digest(blob).replace(':', '/')}": blob for blob in (described, *blobs)},
    }
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
