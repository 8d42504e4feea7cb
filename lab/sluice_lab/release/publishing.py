"""Pushes what `make release` made to a registry: images with skopeo, the chart with Helm.

A version that is there with other content is never replaced: somebody may have installed it. What is there already with the same content is left
alone, so an interrupted publication is run again. Credentials are docker's (`docker login`, or DOCKER_CONFIG). Plain HTTP is spoken only on request.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sluice_lab.errors import CommandFailedError, LabError
from sluice_lab.machine import tools
from sluice_lab.machine.processes import run
from sluice_lab.release import dist, oci
from sluice_lab.release.charts import CONSUMER, OPERATOR
from sluice_lab.steps import step

CHARTS = "charts"
ABSENT = ("manifest unknown", "name unknown", "repository name not known", "not found")


@dataclass(frozen=True)
class Registry:
    """Where to push: `registry.example`, a host and perhaps a path."""

    name: str
    plain_http: bool = False

    def manifest(self, reference: str) -> bytes | None:
        """The raw manifest of a reference below it; None if there is none.

        Raises:
            CommandFailedError: the registry does not answer, or refuses.
        """
        try:
            return run(tools.skopeo(), "inspect", "--raw", *self._options(""), f"docker://{self.name}/{reference}").encode()
        except CommandFailedError as error:
            if any(words in str(error).lower() for words in ABSENT):
                return None
            raise

    def push_image(self, archive: Path, reference: str) -> None:
        """Copy all images of an OCI archive, byte for byte."""
        options = ("--quiet", "--all", "--preserve-digests", *self._options("dest-"))
        run(tools.skopeo(), "copy", *options, f"oci-archive:{archive}", f"docker://{self.name}/{reference}")

    def push_chart(self, archive: Path, helm: str) -> None:
        """Push an archive of Helm's."""
        run(helm, "push", str(archive), f"oci://{self.name}/{CHARTS}", *(["--plain-http"] if self.plain_http else []))

    def _options(self, side: str) -> list[str]:
        credentials = docker_configuration()
        named = [f"--{side}authfile={credentials}"] if credentials.is_file() else []
        return [*named, f"--{side}tls-verify=false"] if self.plain_http else named


def docker_configuration() -> Path:
    """Where `docker login` writes."""
    return Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker")) / "config.json"


def publish(folder: Path, registry: Registry, helm: str) -> None:
    """Push the images and the chart of a release.

    Raises:
        LabError: the files are not those of a release for this registry, or the registry has this version with other content.
        CommandFailedError: the registry does not answer, or refuses.
    """
    release = dist.read(folder)
    if release.registry != registry.name:
        raise LabError(
            f"REGISTRY: {folder} is a release for {release.registry}: its chart and install.yaml name images there. "
            f"Next: make release VERSION={release.version} REGISTRY={registry.name}"
        )
    for name in (OPERATOR, CONSUMER):
        archive, reference = folder / f"{name}-{release.version}.oci.tar", f"{name}:{release.version}"
        with step(f"push {registry.name}/{reference}") as current:
            if _is_there(registry, reference, oci.digest(archive), of_manifest):
                current.note("already there")
            else:
                registry.push_image(archive, reference)
                current.note(oci.digest(archive))
    chart = folder / f"sluice-{release.version}.tgz"
    with step(f"push oci://{registry.name}/{CHARTS}/sluice:{release.version}") as current:
        if _is_there(registry, f"{CHARTS}/sluice:{release.version}", f"sha256:{oci.sha256(chart)}", of_content):
            current.note("already there")
        else:
            registry.push_chart(chart, helm)


def _is_there(registry: Registry, reference: str, digest: str, of: Callable[[bytes], str]) -> bool:
    manifest = registry.manifest(reference)
    if manifest is not None and of(manifest) != digest:
        raise LabError(f"{registry.name}/{reference} is published, with other content: {of(manifest)}, not {digest}. Next: release another version")
    return manifest is not None


def of_manifest(manifest: bytes) -> str:
    """The digest of a manifest: an image is the same if its manifest is."""
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def of_content(manifest: bytes) -> str:
    """The digest of an artifact's first layer: Helm puts the time of the push into the manifest."""
    return str(json.loads(manifest)["layers"][0]["digest"])
