"""Reads OCI archives: which processors an image is for, and files in its layers. No daemon is asked, so what is read is what is published."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

Json = dict[str, Any]
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"


@dataclass(frozen=True)
class PlatformImage:
    """The image of one processor in an archive: `linux/amd64`, the digest of its manifest, those of its layers, lowest first."""

    archive: Path
    platform: str
    digest: str
    layers: tuple[str, ...]


def index(archive: Path) -> Json:
    """The archive's index.json."""
    with tarfile.open(archive) as tar:
        return _json(tar, "index.json")


def digest(archive: Path) -> str:
    """What a registry calls the image: the digest of the only manifest, or list of manifests, in the index."""
    (only,) = index(archive)["manifests"]
    return str(only["digest"])


def platforms(archive: Path) -> list[PlatformImage]:
    """The images in an archive, one a processor. Attestations that buildx adds are no images."""
    with tarfile.open(archive) as tar:
        return sorted(_images(tar, archive, _json(tar, "index.json")), key=lambda image: image.platform)


def _images(tar: tarfile.TarFile, archive: Path, listed: Json) -> Iterator[PlatformImage]:
    for entry in listed["manifests"]:
        manifest = _json(tar, _blob(entry["digest"]))
        if "manifests" in manifest:
            yield from _images(tar, archive, manifest)
            continue
        config = _json(tar, _blob(manifest["config"]["digest"]))
        if config.get("os", "unknown") != "unknown":
            layers = tuple(layer["digest"] for layer in manifest["layers"])
            yield PlatformImage(archive, f"{config['os']}/{config['architecture']}", entry["digest"], layers)


def read(image: PlatformImage, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The regular files that a container would see, among those whose path (without a leading `/`) is wanted."""
    found: dict[str, bytes] = {}
    with tarfile.open(image.archive) as tar:
        for layer in image.layers:
            blob = _open(tar, _blob(layer))
            with tarfile.open(fileobj=blob, mode="r|*") as files:
                for entry in files:
                    _apply(entry, files, found, wanted)
    return found


def _apply(entry: tarfile.TarInfo, files: tarfile.TarFile, found: dict[str, bytes], wanted: Callable[[str], bool]) -> None:
    """One entry of a layer: a file, or the mark that one of a lower layer is gone (OCI image spec, "Whiteouts")."""
    path = PurePosixPath(entry.name.removeprefix("./").lstrip("/"))
    if path.name.startswith(WHITEOUT):
        gone = path.parent if path.name == OPAQUE else path.with_name(path.name.removeprefix(WHITEOUT))
        for name in [name for name in found if PurePosixPath(name).is_relative_to(gone)]:
            del found[name]
        return
    found.pop(str(path), None)
    if entry.isfile() and wanted(str(path)) and (content := files.extractfile(entry)):
        found[str(path)] = content.read()


def sha256(path: Path) -> str:
    """The digest of a file, in hexadecimal."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _blob(named: str) -> str:
    return f"blobs/{named.replace(':', '/')}"


def _json(tar: tarfile.TarFile, name: str) -> Json:
    found: Json = json.loads(_open(tar, name).read())
    return found


def _open(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        content = tar.extractfile(name)
    except KeyError:
        content = tar.extractfile(f"./{name}")
    if content is None:
        raise ValueError(f"{name} is not a file of this archive")
    return content
