"""Both images as OCI archives. buildx makes them for all processors where it has a builder that can; else Docker for the one of this machine.

Their bytes are not the same twice: Debian's packages are the newest of the day, and the archive of Spark's classes is a memory image. What they
install of Python and Java is pinned by hash, and the code is of the commit.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.machine import images, tools
from sluice_lab.machine.processes import answers, run
from sluice_lab.release import archives
from sluice_lab.release.charts import CONSUMER, OPERATOR
from sluice_lab.release.source import SourceTree
from sluice_lab.steps import step

TARGETS = {OPERATOR: "operator", CONSUMER: "consumer"}
PLATFORMS = ("linux/amd64", "linux/arm64")


@dataclass(frozen=True)
class Builder:
    """What builds: buildx for these platforms, or with none of them Docker's classic way, for this machine's own."""

    platforms: tuple[str, ...] = ()

    @property
    def untried(self) -> str:
        """Notes on what was not built; empty if nothing was left out."""
        left = [platform for platform in PLATFORMS if platform not in self.platforms]
        if not self.platforms:
            return "images: of this machine's processor alone; buildx has no builder here that writes OCI archives (docker buildx create --use)"
        return f"images: not for {', '.join(left)}; this builder cannot" if left else ""


def builder() -> Builder:
    """The one of this machine. A builder of a container pulls the base, so a registry has to answer."""
    if not answers("docker", "buildx", "version") or not images.registry_answers():
        return Builder()
    return chosen(run("docker", "buildx", "inspect", "--bootstrap", seconds=300))


def chosen(inspected: str) -> Builder:
    """What the words of `docker buildx inspect` mean: Docker's own builder (driver `docker`) writes no OCI archive of several platforms."""
    said = dict(line.split(":", 1) for line in inspected.splitlines() if ":" in line)
    if said.get("Driver", "").strip() in {"", "docker"}:
        return Builder()
    able = {platform.strip().rstrip("*") for platform in said.get("Platforms", "").split(",")}
    return Builder(tuple(platform for platform in PLATFORMS if platform in able))


def build(source: SourceTree, version: str, out: Path, work: Path, how: Builder) -> list[Path]:
    """Write `sluice-operator-<version>.oci.tar` and `sluice-consumer-<version>.oci.tar`.

    Raises:
        CommandFailedError: a build failed.
    """
    places.made(out)
    if bundle := images.own_authority():
        shutil.copy(bundle, source.folder / "ca.crt")
    arguments = {"VERSION": version, "REVISION": source.revision}
    built = []
    for name, target in TARGETS.items():
        archive = out / f"{name}-{version}.oci.tar"
        with step(f"image {name}:{version}") as current:
            if how.platforms:
                _with_buildx(source, target, arguments, how, archive)
            else:
                tag = f"{name}:{version}"
                images.build_image(current, source.folder, target, tag, arguments=arguments)
                of_saved(tag, archive, source.epoch, work)
            current.note(f"{archive.stat().st_size // 10**6} MB")
        built.append(archive)
    return built


def _with_buildx(source: SourceTree, target: str, arguments: dict[str, str], how: Builder, archive: Path) -> None:
    named = [f"--build-arg={name}={value}" for name, value in {**arguments, **source.environment}.items()]
    output = (f"--output=type=oci,dest={archive},rewrite-timestamp=true", "--provenance=false", "--sbom=false", f"--target={target}")
    run("docker", "buildx", "build", f"--platform={','.join(how.platforms)}", *output, *named, str(source.folder), seconds=7200)


def of_saved(tag: str, archive: Path, epoch: int, work: Path) -> None:
    """Write an image of the daemon as an OCI archive."""
    with tempfile.TemporaryDirectory(dir=places.made(work / "release")) as folder:
        saved = Path(folder) / "saved.tar"
        run("docker", "save", f"--output={saved}", tag)
        of_docker_archive(saved, tag, archive, epoch)


def of_docker_archive(saved: Path, tag: str, archive: Path, epoch: int) -> None:
    """Write what `docker save` wrote as an OCI archive. The same image gives the same bytes."""
    with tempfile.TemporaryDirectory(dir=places.made(archive.parent)) as folder:
        layout = Path(folder) / "layout"
        run(tools.skopeo(), "copy", "--quiet", f"docker-archive:{saved}", f"oci:{layout}:{tag.rpartition(':')[2]}")
        archives.pack(layout, archive, epoch)
