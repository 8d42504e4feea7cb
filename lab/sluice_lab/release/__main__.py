"""`python -m sluice_lab.release make|publish|version`: programs behind `make release`, `make publish` and `make version`."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import click

from sluice_lab import places, program
from sluice_lab.machine import tools
from sluice_lab.machine.processes import run
from sluice_lab.release import making, publishing, versions
from sluice_lab.release.source import of_last_commit
from sluice_lab.steps import console

PLACEHOLDER = "registry.example"  # no registry is the project's own yet
_into = click.option("--out", type=click.Path(path_type=Path), default=places.REPO / "dist", show_default="dist", help="The folder of the release.")


@click.group()
def main() -> None:
    """Make and publish a release of Sluice."""


@main.command()
@click.argument("version")
@click.option("--registry", default=PLACEHOLDER, show_default=True, help="Where chart and install.yaml expect the images: host and path.")
@click.option("--downloads", help="Where the files of this release will be, for krew: an address of a folder.  [default: https://downloads.example]")
@click.option("--images/--no-images", default=True, help="Whether to build the images, which needs Docker.")
@click.option("--plugin/--no-plugin", default=True, help="Whether to build the archives of kubectl sluice, for which packages are downloaded.")
@_into
def make(version: str, registry: str, downloads: str | None, out: Path, *, images: bool, plugin: bool) -> None:
    """Make all files of VERSION from the last commit."""
    work = places.work()
    source = of_last_commit(places.REPO, work / "release" / "source")
    order = making.Order(source, version, registry.rstrip("/"), out, work)
    order = replace(order, downloads=downloads.rstrip("/")) if downloads else order
    release = making.make(order, with_images=images, with_plugin=plugin)
    console.print(f"{out}: Sluice {version} of {source.revision[:12]}, images in {release.registry}", soft_wrap=True)
    for line in release.untried:
        console.print(f"NOT MADE: {line}", soft_wrap=True)


@main.command()
@click.argument("registry")
@click.option("--plain-http", is_flag=True, help="The registry has no TLS: for one on this machine.")
@_into
def publish(registry: str, out: Path, *, plain_http: bool) -> None:
    """Push images and chart of a release to REGISTRY, as the user that docker is logged in as."""
    publishing.publish(out, publishing.Registry(registry.rstrip("/"), plain_http), tools.helm())


@main.command()
@click.argument("version")
def version(version: str) -> None:
    """Write VERSION into pyproject.toml, the chart, CHANGELOG.md, and the examples and documents that name it."""
    listed = run("git", "-C", str(places.REPO), "ls-files", "*.md", "examples/*").split()
    mentions = [places.REPO / name for name in listed if name != versions.CHANGES]
    changed = versions.write(places.REPO, version, datetime.datetime.now(datetime.UTC).date(), mentions)
    console.print(f"{version}: wrote {', '.join(changed)}" if changed else f"{version} is written everywhere already", soft_wrap=True)


if __name__ == "__main__":
    program.run(main)
