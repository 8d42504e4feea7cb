"""What the images install is pinned by hash, and is what pyproject.toml and constraints/all.txt say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sluice_lab import hashes, places
from sluice_lab.machine import images

DOCKERFILE = (places.REPO / "Dockerfile").read_text()
JAR = re.compile(r"^[0-9a-f]{64}  (\S+)/([^/\s]+)/([^/\s]+)/([^/\s]+\.jar)$", re.MULTILINE)
FORMAT = re.compile(r"iceberg|delta-spark")
ENTRY = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def pinned(name: str) -> dict[str, str]:
    text = (hashes.FOLDER / f"{name}.txt").read_text().removeprefix(hashes.HEAD)
    assert ENTRY.sub("", text).strip() == ""
    return {entry[1]: entry[2] for entry in ENTRY.finditer(text)}


def test_hashes_of_the_operator_are_of_the_versions_that_are_tested() -> None:
    """Else: `make hashes`. Everything that is needed is there, and nothing more."""
    assert pinned("operator") == hashes.versions("operator")


@pytest.mark.parametrize("line", hashes.SPARK_LINES)
def test_hashes_of_the_consumer_are_of_the_versions_of_its_line(line: str) -> None:
    """Else: `make hashes`."""
    found = pinned(f"consumer-{line}")
    assert found == hashes.versions("consumer", line)
    assert found["pyspark"].startswith(f"{line}.")


@pytest.mark.parametrize("package", ["orjson", "aiohttp", "pydantic-core"])
def test_compiled_packages_are_there_for_both_processors(package: str) -> None:
    """An image for arm64 is built from the same file."""
    (entry,) = (found for found in ENTRY.finditer((hashes.FOLDER / "operator.txt").read_text()) if found[1] == package)
    assert entry[3].count("--hash") == len(hashes.PROCESSORS)


def test_the_images_install_nothing_else() -> None:
    commands = "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#"))
    installed = re.findall(r"pip (?:--python \S+ )?install (.*)", commands)
    assert len([line for line in installed if "--require-hashes" in line]) == 3
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installed)
    assert "constraints/hashes" in images.INPUTS


def test_build_tools_are_pinned_as_well() -> None:
    assert {"pip", "hatchling"} <= set(pinned("build"))


def test_the_base_can_be_pinned_and_is_the_labs_by_default() -> None:
    """Where no registry answers, the lab makes an image of that name, which has no digest."""
    assert f"ARG BASE={images.BASE}\nFROM ${{BASE}} AS python" in DOCKERFILE


def test_the_operators_image_has_no_pip() -> None:
    stage = DOCKERFILE.split("AS operator-dependencies\n", 1)[1].split("\n\n", 1)[0]
    assert "-m venv --without-pip /opt/venv" in stage


def jars(line: str) -> dict[str, str]:
    text = (hashes.FOLDER / f"jars-{line}.txt").read_text()
    assert not JAR.sub("", text.removeprefix(hashes.HEAD)).strip()
    return {f"{found[1].replace('/', '.')}:{found[2]}": found[3] for found in JAR.finditer(text)}


def test_every_line_has_s3_and_its_table_formats() -> None:
    """Iceberg is there for 4.1 alone, Delta for 4.1 and 4.2."""
    found = {line: set(jars(line)) for line in hashes.SPARK_LINES}
    assert all({"org.apache.hadoop:hadoop-aws", "software.amazon.awssdk:s3", "software.amazon.awssdk:sts"} <= names for names in found.values())
    assert {line for line, names in found.items() if any(name.startswith("org.apache.iceberg:") for name in names)} == {"4.1"}
    assert {line for line, names in found.items() if any(name.startswith("io.delta:delta-spark") for name in names)} == {"4.1", "4.2"}


def test_the_default_line_is_the_newest_with_both_formats() -> None:
    """A user needs a lake before the newest Spark."""
    both = [line for line in hashes.SPARK_LINES if {"iceberg", "delta-spark"} <= {part for name in jars(line) for part in FORMAT.findall(name)}]
    assert re.findall(r"^ARG SPARK_LINE=(.*)$", DOCKERFILE, re.MULTILINE) == [max(both)]


@pytest.mark.parametrize("line", hashes.SPARK_LINES)
def test_jars_that_pyspark_has_are_not_added_again(line: str) -> None:
    """Two versions of one library on a class path are a matter of luck."""
    pysparks = {"io.netty", "org.slf4j", "com.fasterxml.jackson.core", "org.apache.parquet", "org.apache.logging.log4j", "commons-logging"}
    assert not pysparks & {name.partition(":")[0] for name in jars(line)}
    assert not {"org.apache.hadoop:hadoop-client-api", "software.amazon.awssdk:bundle"} & set(jars(line))


@pytest.mark.parametrize("line", hashes.SPARK_LINES)
def test_no_jar_is_for_one_processor(line: str) -> None:
    """The list is of jars without classifier, so an image for arm64 is built from the same one."""
    for entry in JAR.finditer((hashes.FOLDER / f"jars-{line}.txt").read_text()):
        assert entry[4] == f"{entry[2]}-{entry[3]}.jar"


def test_the_dockerfile_refuses_a_jar_that_is_not_listed() -> None:
    stage = DOCKERFILE.split("AS jars\n", 1)[1].split("\n\n", 1)[0]
    assert "sha256sum --check --strict --quiet ../jars.txt" in stage
    assert "diff - ../found.txt" in stage


def test_a_list_of_jars_is_what_sha256sum_checks(tmp_path: Path) -> None:
    """Laid out as Maven does, so that a name is group, artifact and version."""
    jar = tmp_path / "found" / "org" / "one" / "1" / "one-1.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"one")
    said = hashes.write_jars(tmp_path / "jars.txt", tmp_path / "found")
    assert said == "1 jar, 0 MB"
    assert JAR.findall((tmp_path / "jars.txt").read_text()) == [("org", "one", "1", "one-1.jar")]
    check = ("sha256sum", "--check", "--strict", "--quiet", str(tmp_path / "jars.txt"))
    assert subprocess.run(check, cwd=tmp_path / "found", check=False).returncode == 0
    jar.write_bytes(b"another")
    assert subprocess.run(check, cwd=tmp_path / "found", check=False, capture_output=True).returncode == 1
