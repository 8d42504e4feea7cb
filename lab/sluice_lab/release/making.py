"""Makes a release, part by part, into one folder. Each part is a function of the commit; images also need Docker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice_checkpoints.names import counted
from sluice_lab import hashes, places
from sluice_lab.machine import docker, tools
from sluice_lab.machine import images as machine_images
from sluice_lab.release import charts, components, dist, images, krew, notes, oci, sbom, versions, wheels
from sluice_lab.release.components import Component
from sluice_lab.release.source import SourceTree
from sluice_lab.steps import step

CRDS, INSTALL, NOTES = ("kinesisconsumers.sluice.dev.yaml", "kinesisconsumerpools.sluice.dev.yaml"), "install.yaml", "release-notes.md"
DISTRIBUTION, EXTRAS = "sluice-kinesis", ("operator", "consumer", "local")


@dataclass(frozen=True)
class Order:
    """What to release, for which registry, and where to."""

    source: SourceTree
    version: str
    registry: str
    out: Path
    work: Path
    downloads: str = "https://downloads.example"  # the address of the folder of this release's files; none is the project's own yet


def make(order: Order, *, with_images: bool = True, with_plugin: bool = True) -> dist.Release:
    """Write all files of a release. The folder is emptied first.

    Raises:
        LabError: the sources are not of this version, or a part cannot be made here; the message says what to do.
    """
    versions.check(order.source.folder, order.version)
    shutil.rmtree(order.out, ignore_errors=True)
    places.made(order.out)
    wheel = make_packages(order)
    make_manifests(order)
    untried = [] if with_plugin else ["plugin of kubectl: left out (PLUGIN=no)"]
    if with_plugin:
        make_plugin(order, wheel)
    untried += make_images(order) if with_images else ["images: left out (IMAGES=no)"]
    release = dist.Release(order.version, order.source.revision, order.source.epoch, order.registry, untried)
    with step(dist.SUMS):
        dist.write(order.out, release)
    return release


def make_packages(order: Order) -> Path:
    """Wheel, sdist, and the SBOM of what the wheel's extras ask for, in the versions that are tested; returns the wheel."""
    version = versions.of_python(order.version)
    with step("wheel and sdist") as current:
        built = wheels.build(order.source, version, order.out)
        current.note(f"{built.wheel.name}, {built.sdist.name}")
    with step("SBOM of the wheel") as current:
        pins = {name: pinned for extra in EXTRAS for name, pinned in hashes.versions(extra).items()}
        needed = [Component(name, pinned, components.pypi(name, pinned)) for name, pinned in pins.items()]
        purl = components.pypi(DISTRIBUTION, version)
        whole = Component(DISTRIBUTION, version, purl, oci.sha256(built.wheel), "Apache-2.0")
        sbom.write(sbom.Subject(whole, optional=True), needed, order.source.epoch, order.out / f"{built.wheel.name}.spdx.json")
        current.note(counted(len(needed), "package"))
    return built.wheel


def make_plugin(order: Order, wheel: Path) -> None:
    """Archives of `kubectl sluice` and krew's manifest of them; packages come from the registry of Python packages."""
    with step("plugin of kubectl") as current:
        built = krew.build(order.source, order.version, wheel, order.out)
        (order.out / krew.MANIFEST).write_text(krew.manifest(order.version, order.downloads, built))
        current.note(f"{counted(len(built), 'platform')}, {sum(path.stat().st_size for path in built) // 10**6} MB")


def make_manifests(order: Order) -> None:
    """Chart, install.yaml, CRDs, notes."""
    helm = tools.helm()
    with step("chart, install.yaml, CRDs, notes"):
        chart = charts.package(order.source, order.version, order.registry, order.out, helm)
        (order.out / INSTALL).write_text(charts.manifests(chart, order.version, order.registry, helm))
        for name in CRDS:
            shutil.copyfile(order.source.folder / "crds" / name, order.out / name)
        (order.out / NOTES).write_text(notes.section((order.source.folder / versions.CHANGES).read_text(), order.version))


def make_images(order: Order) -> Iterator[str]:
    """Both images, and an SBOM for each processor of each. Yields what was not built or tried."""
    docker.ensure(order.work)
    machine_images.base(order.work)
    how = images.builder()
    built = images.build(order.source, order.version, order.out, order.work, how)
    for archive in built:
        for image in oci.platforms(archive):
            with step(f"SBOM of {archive.name}, {image.platform}") as current:
                current.note(counted(describe(order, archive, image), "package"))
    if how.untried:
        yield how.untried


def describe(order: Order, archive: Path, image: oci.PlatformImage) -> int:
    """Write the SBOM of an image; returns its number of components."""
    name = archive.name.removesuffix(f"-{order.version}.oci.tar")
    jars = {digest: jar for path in hashes.FOLDER.glob("jars-*.txt") for digest, jar in components.listed(path.read_text()).items()}
    found = components.found(oci.read(image, components.wanted), jars)
    processor = image.platform.split("/")[1]
    purl = f"pkg:oci/{name}@{image.digest.replace(':', '%3A')}?arch={processor}&repository_url={order.registry}/{name}&tag={order.version}"
    whole = Component(name, order.version, purl, image.digest.removeprefix("sha256:"), "Apache-2.0")
    path = order.out / f"{name}-{order.version}-{image.platform.replace('/', '-')}.spdx.json"
    sbom.write(sbom.Subject(whole), found, order.source.epoch, path)
    return len(found)
