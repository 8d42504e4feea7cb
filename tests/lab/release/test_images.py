"""What is in an image, read out of its archive, and written down as SPDX 2.3 that another reader takes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from small_images import oci_archive, of_several
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from sluice_lab import hashes
from sluice_lab.release import components, making, oci, sbom
from sluice_lab.release.components import Component
from sluice_lab.release.source import SourceTree

pytestmark = pytest.mark.built

EPOCH = 1_700_000_000
DPKG = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u14

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
WHOLE = Component("sluice-operator", "1.2.3", "pkg:oci/sluice-operator@sha256%3Aab?tag=1.2.3", "ab" * 32, "Apache-2.0")
PARTS = [
    Component("org.one:one", "1", "pkg:maven/org.one/one@1", "cd" * 32),
    Component("classpath", "", sha256="ef" * 32),
    Component("aiohttp", "3", license="Apache-2.0 AND MIT"),
    Component("odd", "1", license="see the file, please"),
]


def test_files_are_read_as_a_container_of_each_processor_sees_them(skopeo: str, tmp_path: Path) -> None:
    assert skopeo
    lower = {"a/one": b"1", "a/two": b"1", "b/three": b"1", "b/c/four": b"1", "not-wanted": b"1"}
    higher = {"a/one": b"2", "a/.wh.two": b"", "b/.wh..wh..opq": b"", "./five": b"2"}
    parts = [oci_archive(tmp_path / f"{each}.tar", "two:1", lower, {**higher, "own": each.encode()}, processor=each) for each in ("arm64", "amd64")]
    found = oci.platforms(of_several(tmp_path / "both.tar", parts, tmp_path / "layout"))
    assert [(image.platform, oci.read(image, lambda path: path != "not-wanted")) for image in found] == [
        ("linux/amd64", {"a/one": b"2", "five": b"2", "own": b"amd64"}),
        ("linux/arm64", {"a/one": b"2", "five": b"2", "own": b"arm64"}),
    ]


def packed(properties: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in properties.items():
            archive.writestr(name, text)
    return content.getvalue()


POM = "META-INF/maven/org.one/one/pom.properties"
SHADED = {"META-INF/maven/com.inner/inner/pom.properties": "version=9\ngroupId=com.inner\nartifactId=inner\n"}


@pytest.mark.parametrize(
    ("file", "properties", "name", "version", "purl"),
    [
        ("one-1.2.jar", {POM: "#made\nversion=1.2\ngroupId=org.one\nartifactId=one\n"}, "org.one:one", "1.2", "pkg:maven/org.one/one@1.2"),
        ("one-two_2.13-1.2.jar", SHADED, "one-two_2.13", "1.2", ""),
        ("classpath.jar", {}, "classpath", "", ""),
    ],
)
def test_a_jar_is_named_by_its_own_record_or_else_by_its_file(file: str, properties: dict[str, str], name: str, version: str, purl: str) -> None:
    found = components.jar(file, packed(properties))
    assert (found.name, found.version, found.purl) == (name, version, purl)


def test_what_is_installed_is_what_its_installers_wrote_and_the_list_of_jars_says() -> None:
    """Delta's and Iceberg's jars have no record of Maven's, and their versions stand beside Spark's in their names."""
    jar = packed({})
    digest = hashlib.sha256(jar).hexdigest()
    files = {
        components.DPKG: DPKG.encode(),
        "opt/venv/lib/python3.11/site-packages/Some_Thing-1.dist-info/METADATA": b"Name: Some_Thing\nVersion: 1+local\n\nBody: 1\n",
        "jars/delta-spark_4.1_2.13-4.4.0.jar": jar,
    }
    known = components.listed(f"# Written.\n{digest}  io/delta/delta-spark_4.1_2.13/4.4.0/delta-spark_4.1_2.13-4.4.0.jar\n")
    assert all(map(components.wanted, files))
    assert not components.wanted("var/lib/dpkg/info/libc6.list")
    assert components.found(files, known) == [
        Component("io.delta:delta-spark_4.1_2.13", "4.4.0", "pkg:maven/io.delta/delta-spark_4.1_2.13@4.4.0", digest),
        Component("libc6", "2.36-9+deb12u14", "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64"),
        Component("some-thing", "1+local", "pkg:pypi/some-thing@1%2Blocal"),
    ]


@pytest.mark.parametrize("path", sorted(hashes.FOLDER.glob("jars-*.txt")), ids=lambda path: path.stem)
def test_every_jar_of_the_lists_is_understood(path: Path) -> None:
    text = path.read_text()
    assert len(components.listed(text)) == len([line for line in text.splitlines() if line.endswith(".jar")]) > 0


@pytest.mark.parametrize(("optional", "kind"), [(False, "CONTAINS"), (True, "OPTIONAL_DEPENDENCY_OF")])
def test_a_document_lists_every_component_with_what_is_known_of_it(tmp_path: Path, *, optional: bool, kind: str) -> None:
    """Those of the wheel come with extras only."""
    path = tmp_path / "one.spdx.json"
    sbom.write(sbom.Subject(WHOLE, optional=optional), PARTS, EPOCH, path)
    document = parse_file(str(path))
    assert validate_full_spdx_document(document) == []
    assert {package.name: (package.version, str(package.license_declared)) for package in document.packages} == {
        "sluice-operator": ("1.2.3", "Apache-2.0"),
        "org.one:one": ("1", "NOASSERTION"),
        "classpath": (None, "NOASSERTION"),
        "aiohttp": ("3", "Apache-2.0 AND MIT"),
        "odd": ("1", "NOASSERTION"),
    }
    assert sorted(each.relationship_type.name for each in document.relationships) == sorted([kind] * len(PARTS) + ["DESCRIBES"])


def test_an_images_document_is_read_out_of_its_archive(tmp_path: Path, source: SourceTree, skopeo: str) -> None:
    assert skopeo
    archive = oci_archive(tmp_path / "sluice-operator-1.2.3.oci.tar", "sluice-operator:1.2.3", {components.DPKG: DPKG.encode()}, processor="arm64")
    (image,) = oci.platforms(archive)
    assert making.describe(making.Order(source, "1.2.3", "registry.example/sluice", tmp_path, tmp_path), archive, image) == 1
    whole, part = parse_file(str(tmp_path / "sluice-operator-1.2.3-linux-arm64.spdx.json")).packages
    assert whole.checksums[0].value == oci.digest(archive).removeprefix("sha256:")
    assert whole.external_references[0].locator.endswith("?arch=arm64&repository_url=registry.example/sluice/sluice-operator&tag=1.2.3")
    assert part.external_references[0].locator == "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64"
