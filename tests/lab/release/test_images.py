"""What builds the images, what is in them, and how an image of the daemon becomes an OCI archive."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from small_images import EPOCH, Files, oci_archive, of_several

from sluice_lab import hashes
from sluice_lab.errors import CommandFailedError
from sluice_lab.release import components, images, oci
from sluice_lab.release.components import Component

pytestmark = pytest.mark.built

ONE = """Name:          default
Driver:        docker

Nodes:
Name:             default
Endpoint:         default
Status:           running
Platforms:        linux/amd64, linux/arm64
"""
SEVERAL = """Name:          release
Driver:        docker-container
Last Activity: 2026-11-25 03:00:00 +0000 UTC

Nodes:
Name:             release0
Endpoint:         unix:///var/run/docker.sock
Status:           running
Platforms:        linux/amd64*, linux/arm64, linux/riscv64
"""
DPKG = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u14

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


@pytest.mark.parametrize(
    ("inspected", "platforms"),
    [("", ()), (ONE, ()), (SEVERAL, ("linux/amd64", "linux/arm64")), (SEVERAL.replace(", linux/arm64", ""), ("linux/amd64",))],
)
def test_buildx_builds_for_the_processors_that_its_builder_can(inspected: str, platforms: tuple[str, ...]) -> None:
    """Docker's own builder writes no OCI archive of several, so there Docker builds for this machine."""
    assert images.chosen(inspected).platforms == platforms


@pytest.mark.parametrize(
    ("platforms", "words"), [((), "of this machine's processor alone"), (("linux/amd64",), "not for linux/arm64"), (images.PLATFORMS, "")]
)
def test_what_was_not_built_is_said(platforms: tuple[str, ...], words: str) -> None:
    said = images.Builder(platforms).untried
    assert words in said
    assert bool(said) == bool(words)


def test_the_same_image_gives_the_same_archive(skopeo: str, tmp_path: Path) -> None:
    assert skopeo
    layers: tuple[Files, ...] = ({"one": b"1"}, {"two": b"2"})
    first, second = (oci_archive(tmp_path / f"{name}.tar", "small:1", *layers) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert oci.digest(first).startswith("sha256:")


def test_files_are_read_as_a_container_sees_them(skopeo: str, tmp_path: Path) -> None:
    assert skopeo
    lower = {"a/one": b"1", "a/two": b"1", "b/three": b"1", "b/c/four": b"1", "not-wanted": b"1"}
    higher = {"a/one": b"2", "a/.wh.two": b"", "b/.wh..wh..opq": b"", "./five": b"2"}
    (image,) = oci.platforms(oci_archive(tmp_path / "image.tar", "small:1", lower, higher))
    assert oci.read(image, lambda path: path != "not-wanted") == {"a/one": b"2", "five": b"2"}


def test_an_archive_of_several_processors_is_read_one_by_one(skopeo: str, tmp_path: Path) -> None:
    assert skopeo
    parts = [oci_archive(tmp_path / f"{each}.tar", "two:1", {"processor": each.encode()}, processor=each) for each in ("arm64", "amd64")]
    found = oci.platforms(of_several(tmp_path / "both.tar", parts, tmp_path / "layout"))
    assert [(image.platform, oci.read(image, bool)) for image in found] == [
        ("linux/amd64", {"processor": b"amd64"}),
        ("linux/arm64", {"processor": b"arm64"}),
    ]


def test_an_image_of_docker_is_refused_without_its_file(skopeo: str, tmp_path: Path) -> None:
    assert skopeo
    with pytest.raises(CommandFailedError, match="absent"):
        images.of_docker_archive(tmp_path / "absent", "small:1", tmp_path / "image.tar", EPOCH)
    assert not (tmp_path / "image.tar").exists()


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
    assert len(found.sha256) == 64


def test_what_is_installed_is_what_its_installers_wrote() -> None:
    files = {
        components.DPKG: DPKG.encode(),
        "opt/venv/lib/python3.11/site-packages/Some_Thing-1.dist-info/METADATA": b"Name: Some_Thing\nVersion: 1+local\n\nBody: 1\n",
    }
    assert all(map(components.wanted, files))
    assert not components.wanted("var/lib/dpkg/info/libc6.list")
    assert components.found(files, {}) == [
        Component("libc6", "2.36-9+deb12u14", "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64"),
        Component("some-thing", "1+local", "pkg:pypi/some-thing@1%2Blocal"),
    ]


def test_a_jar_that_the_build_checks_is_what_the_list_says() -> None:
    """Delta's and Iceberg's jars have no record of Maven's, and their versions stand beside Spark's in their names."""
    content = packed({})
    digest = hashlib.sha256(content).hexdigest()
    known = components.listed(f"# Written.\n{digest}  io/delta/delta-spark_4.1_2.13/4.4.0/delta-spark_4.1_2.13-4.4.0.jar\n")
    expected = Component("io.delta:delta-spark_4.1_2.13", "4.4.0", "pkg:maven/io.delta/delta-spark_4.1_2.13@4.4.0", digest)
    assert components.found({"jars/delta-spark_4.1_2.13-4.4.0.jar": content}, known) == [expected]


@pytest.mark.parametrize("path", sorted(hashes.FOLDER.glob("jars-*.txt")), ids=lambda path: path.stem)
def test_every_jar_of_the_lists_is_understood(path: Path) -> None:
    text = path.read_text()
    assert len(components.listed(text)) == len([line for line in text.splitlines() if line.endswith(".jar")]) > 0
