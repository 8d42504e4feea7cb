"""A release that is made of these files and pushed to a registry of this machine, from which nodes and Helm take it as from any other."""

from __future__ import annotations

import datetime
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster_bench import Bench

from sluice_lab import places
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import pulling, tools
from sluice_lab.machine import registry as registries
from sluice_lab.machine.processes import run
from sluice_lab.release import images, making, publishing, versions
from sluice_lab.release.charts import CONSUMER
from sluice_lab.release.source import of_last_commit
from sluice_lab.scenario.installing import NAMESPACE

VERSION = "99.0.0-rc.1"  # of no release, so that nothing else can be meant
BEFORE = "before"  # the tag of the last release's operator


@dataclass(frozen=True)
class Published:
    folder: Path
    registry: publishing.Registry

    @property
    def chart(self) -> tuple[str, ...]:
        return (f"oci://{self.registry.name}/{publishing.CHARTS}/sluice", f"--version={VERSION}", "--plain-http")

    @property
    def consumers(self) -> dict[str, object]:
        """Values for consumers that run the published image, whichever chart they are for: a changed image would restart them."""
        return {"image": f"{self.registry.name}/{CONSUMER}:{VERSION}", "namespaces": [NAMESPACE]}

    def push(self, tag: str, name: str) -> str:
        archive = self.folder.parent / "another.oci.tar"
        images.of_saved(tag, archive, 0, places.work())
        self.registry.push_image(archive, name)
        archive.unlink()
        return f"{self.registry.name}/{name}"

    def push_chart(self, folder: Path) -> tuple[str, ...]:
        earlier, program = publishing.Registry(f"{self.registry.name}/{BEFORE}", plain_http=True), tools.helm()
        archive = Path(run(program, "package", str(folder), f"--destination={self.folder.parent}").strip().rpartition(" ")[2])
        earlier.push_chart(archive, program)
        version = archive.stem.removeprefix("sluice-")
        return (f"oci://{earlier.name}/{publishing.CHARTS}/sluice", f"--version={version}", "--plain-http")


@contextmanager
def published(bench: Bench, folder: Path) -> Iterator[Published]:
    work, host = places.work(), clusters.host_address(bench.cluster)
    with registries.registry(work, host.listen) as address:
        registry = publishing.Registry(f"{address.replace(host.listen, host.pods)}/sluice", plain_http=True)
        pulling.over_http(bench.cluster, registry.name.partition("/")[0])
        source = of_last_commit(_committed(folder / "repository"), folder / "source")
        making.make(making.Order(source, VERSION, registry.name, folder / "dist", work), with_plugin=False)
        publishing.publish(folder / "dist", registry, tools.helm())
        yield Published(folder / "dist", registry)


def _committed(folder: Path) -> Path:
    """A repository with this clone's files, as they are now, as a commit of the version."""
    git = ("git", "-C", str(places.REPO))
    listed = subprocess.run([*git, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True).stdout.splitlines()
    places.made(folder)
    with tarfile.open(folder.with_suffix(".tar"), "w") as tar:
        for name in listed:
            if (places.REPO / name).exists():
                tar.add(places.REPO / name, name)
    with tarfile.open(folder.with_suffix(".tar")) as tar:
        tar.extractall(folder, filter="data")
    changes = folder / versions.CHANGES
    changes.write_text(f"{changes.read_text()}\n## {VERSION}\n\n* A release for tests.\n")
    versions.write(folder, VERSION, datetime.date(2026, 1, 1), [])
    mine = ("git", "-C", str(folder), "-c", "user.name=tests", "-c", "user.email=tests@example.com")
    for command in (("init", "--quiet"), ("add", "--all", "--force"), ("commit", "--quiet", "--message=Release")):
        run(*mine, *command)
    return folder
