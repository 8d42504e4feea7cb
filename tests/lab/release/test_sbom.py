"""SBOMs are valid SPDX 2.3, by another reader's judgement, and the same for the same content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_images import oci_archive
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from sluice_lab.release import making, oci, sbom
from sluice_lab.release.components import Component
from sluice_lab.release.source import SourceTree

pytestmark = pytest.mark.built

EPOCH = 1_700_000_000
WHOLE = Component("sluice-operator", "1.2.3", "pkg:oci/sluice-operator@sha256%3Aab?tag=1.2.3", "ab" * 32, "Apache-2.0")
PARTS = [
    Component("org.one:one", "1", "pkg:maven/org.one/one@1", "cd" * 32),
    Component("six", "1.17.0", "pkg:pypi/six@1.17.0", license="MIT"),
    Component("classpath", "", sha256="ef" * 32),
    Component("aiohttp", "3", license="Apache-2.0 AND MIT"),
    Component("odd", "1", license="see the file, please"),
]


def written(path: Path, *, optional: bool = False) -> dict[str, object]:
    sbom.write(sbom.Subject(WHOLE, optional=optional), PARTS, EPOCH, path)
    assert validate_full_spdx_document(parse_file(str(path))) == []
    found: dict[str, object] = json.loads(path.read_text())
    return found


def test_a_document_lists_every_component_with_what_is_known_of_it(tmp_path: Path) -> None:
    document = parse_file(str(tmp_path / "one.spdx.json")) if written(tmp_path / "one.spdx.json") else None
    assert document is not None
    assert document.creation_info.spdx_version == "SPDX-2.3"
    said = {package.name: (package.version, str(package.license_declared)) for package in document.packages}
    assert said == {
        "sluice-operator": ("1.2.3", "Apache-2.0"),
        "org.one:one": ("1", "NOASSERTION"),
        "six": ("1.17.0", "MIT"),
        "classpath": (None, "NOASSERTION"),
        "aiohttp": ("3", "Apache-2.0 AND MIT"),
        "odd": ("1", "NOASSERTION"),
    }
    kinds = [relationship.relationship_type.name for relationship in document.relationships]
    assert sorted(kinds) == ["CONTAINS"] * len(PARTS) + ["DESCRIBES"]


def test_extras_of_the_wheel_are_optional(tmp_path: Path) -> None:
    written(tmp_path / "wheel.spdx.json", optional=True)
    kinds = {each.relationship_type.name for each in parse_file(str(tmp_path / "wheel.spdx.json")).relationships}
    assert kinds == {"DESCRIBES", "OPTIONAL_DEPENDENCY_OF"}


def test_the_same_content_gives_the_same_document_and_another_one_another_name(tmp_path: Path) -> None:
    """The namespace has to tell two documents apart."""
    first, second = (written(tmp_path / f"{name}.spdx.json") for name in ("first", "second"))
    assert first == second
    sbom.write(sbom.Subject(WHOLE), PARTS[:1], EPOCH, tmp_path / "other.spdx.json")
    assert json.loads((tmp_path / "other.spdx.json").read_text())["documentNamespace"] != first["documentNamespace"]


def test_a_document_that_is_not_valid_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="64 lowercase hexadecimal digits"):
        sbom.write(sbom.Subject(Component("one", "1", sha256="ab")), [], EPOCH, tmp_path / "bad.spdx.json")
    assert not (tmp_path / "bad.spdx.json").exists()


def test_an_images_document_is_read_out_of_its_archive(tmp_path: Path, source: SourceTree, skopeo: str) -> None:
    assert skopeo
    status = b"Package: tini\nStatus: install ok installed\nArchitecture: arm64\nVersion: 0.19.0-1\n"
    archive = oci_archive(tmp_path / "sluice-operator-1.2.3.oci.tar", "sluice-operator:1.2.3", {"var/lib/dpkg/status": status}, processor="arm64")
    (image,) = oci.platforms(archive)
    order = making.Order(source, "1.2.3", "registry.example/sluice", tmp_path, tmp_path)
    assert making.describe(order, archive, image) == 1
    document = parse_file(str(tmp_path / "sluice-operator-1.2.3-linux-arm64.spdx.json"))
    whole, part = document.packages
    assert whole.checksums[0].value == oci.digest(archive).removeprefix("sha256:")
    assert whole.external_references[0].locator.endswith("?arch=arm64&repository_url=registry.example/sluice/sluice-operator&tag=1.2.3")
    assert part.external_references[0].locator == "pkg:deb/debian/tini@0.19.0-1?arch=arm64"
