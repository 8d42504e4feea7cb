"""Images of a few files: as `docker save` writes them, and as OCI archives."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sluice_lab.release import archives, images

Files = Mapping[str, bytes]
EPOCH = 1_700_000_000
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def layer(files: Files) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def saved(path: Path, tag: str, *layers: Files, processor: str = "amd64") -> Path:
    """What `docker save` writes of an image with these layers, the lowest first."""
    blobs = [layer(files) for files in layers]
    digests = [hashlib.sha256(blob).hexdigest() for blob in blobs]
    config = {"os": "linux", "architecture": processor, "config": {}, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in digests]}}
    written = json.dumps(config).encode()
    name = f"{hashlib.sha256(written).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [tag], "Layers": [f"{one}/layer.tar" for one in digests]}]
    content = {name: written, **{f"{one}/layer.tar": blob for one, blob in zip(digests, blobs, strict=True)}}
    path.write_bytes(layer({**content, "manifest.json": json.dumps(manifest).encode()}))
    return path


def oci_archive(path: Path, tag: str, *layers: Files, processor: str = "amd64") -> Path:
    images.of_docker_archive(saved(path.with_suffix(".saved"), tag, *layers, processor=processor), tag, path, EPOCH)
    path.with_suffix(".saved").unlink()
    return path


def of_several(path: Path, parts: Sequence[Path], folder: Path) -> Path:
    """One archive of several processors, as buildx writes it: the index names a list, and the list names the images."""
    entries = []
    for part in parts:
        with tarfile.open(part) as tar:
            tar.extractall(folder, filter="data")
        found = json.loads((folder / "index.json").read_text())["manifests"][0]
        manifest = json.loads((folder / "blobs" / found["digest"].replace(":", "/")).read_text())
        config = json.loads((folder / "blobs" / manifest["config"]["digest"].replace(":", "/")).read_text())
        platform = {"os": config["os"], "architecture": config["architecture"]}
        entries.append({"mediaType": MANIFEST, "digest": found["digest"], "size": found["size"], "platform": platform})
    listed = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    digest = hashlib.sha256(listed).hexdigest()
    (folder / "blobs" / "sha256" / digest).write_bytes(listed)
    only = {"mediaType": INDEX, "digest": f"sha256:{digest}", "size": len(listed)}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [only]}))
    archives.pack(folder, path, EPOCH)
    return path
