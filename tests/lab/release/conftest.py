"""A small release, as `make release` lays one out: the real chart, and images of a few files instead of a gigabyte."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_images import oci_archive

from sluice_lab import places
from sluice_lab.machine import tools
from sluice_lab.release import charts, dist, versions
from sluice_lab.release.source import SourceTree

EPOCH = 1_700_000_000


@pytest.fixture(scope="session")
def source() -> SourceTree:
    return SourceTree(places.REPO, "0123456789abcdef0123456789abcdef01234567", EPOCH)


@pytest.fixture(scope="session")
def helm() -> str:
    return tools.helm()


@pytest.fixture(scope="session")
def skopeo() -> str:
    return tools.skopeo()


@pytest.fixture
def released(tmp_path: Path, source: SourceTree, helm: str, skopeo: str) -> Callable[..., Path]:
    assert skopeo

    def made(registry: str, text: str = "one") -> Path:
        out, version = places.made(tmp_path / f"dist-{text}"), versions.declared(places.REPO)
        for name in (charts.OPERATOR, charts.CONSUMER):
            oci_archive(out / f"{name}-{version}.oci.tar", f"{name}:{version}", {"etc/sluice": text.encode()})
        charts.package(source, version, registry, out, helm)
        dist.write(out, dist.Release(version, source.revision, source.epoch, registry, []))
        return out

    return made
