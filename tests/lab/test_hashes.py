"""What the images install is pinned by hash, and is what pyproject.toml and constraints.txt say."""

from __future__ import annotations

import re

import pytest

from sluice_lab import hashes, places
from sluice_lab.machine import images

DOCKERFILE = (places.REPO / "Dockerfile").read_text()
ENTRY = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def pinned(name: str) -> dict[str, str]:
    """Versions by name; nothing else stands in the file."""
    text = (hashes.FOLDER / f"{name}.txt").read_text().removeprefix(hashes.HEAD)
    assert ENTRY.sub("", text).strip() == ""
    return {entry[1]: entry[2] for entry in ENTRY.finditer(text)}


@pytest.mark.parametrize("extra", hashes.EXTRAS)
def test_hashes_are_of_the_versions_that_are_tested(extra: str) -> None:
    """Else: `make hashes`. Everything that is needed is there, and nothing more."""
    pins = hashes.constraints()
    assert pinned(extra) == {name: pins[name] for name in hashes.closure(hashes.extra_requirements(extra))}


@pytest.mark.parametrize("package", ["orjson", "aiohttp", "pydantic-core"])
def test_compiled_packages_are_there_for_both_processors(package: str) -> None:
    """An image for arm64 is built from the same file."""
    (entry,) = (found for found in ENTRY.finditer((hashes.FOLDER / "operator.txt").read_text()) if found[1] == package)
    assert entry[3].count("--hash") == len(hashes.PROCESSORS)


def test_the_images_install_nothing_else() -> None:
    """Every installation is of hashes, or of our own code without dependencies."""
    commands = "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#"))
    installed = re.findall(r"pip (?:--python \S+ )?install (.*)", commands)
    assert len([line for line in installed if "--require-hashes" in line]) == len(hashes.EXTRAS) + 1
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installed)
    assert "hashes" in images.INPUTS


def test_build_tools_are_pinned_as_well() -> None:
    """In a file of their own."""
    assert {"pip", "hatchling"} <= set(pinned("build"))


def test_the_base_can_be_pinned_and_is_the_labs_by_default() -> None:
    """Where no registry answers, the lab makes an image of that name, which has no digest."""
    assert f"ARG BASE={images.BASE}\nFROM ${{BASE}} AS python" in DOCKERFILE


def test_the_operators_image_has_no_pip() -> None:
    """Its environment is made without, and the Debian package brings none."""
    stage = DOCKERFILE.split("AS operator-dependencies\n", 1)[1].split("\n\n", 1)[0]
    assert "-m venv --without-pip /opt/venv" in stage
