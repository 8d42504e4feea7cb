"""What the images install is pinned by hash, and is what pyproject.toml and constraints/all.txt say."""

from __future__ import annotations

import re

import pytest

from sluice_lab import hashes, places
from sluice_lab.machine import images

DOCKERFILE = (places.REPO / "Dockerfile").read_text()
JAR = re.compile(r"^[0-9a-f]{64}  (\S+)/([^/\s]+)/([^/\s]+)/([^/\s]+\.jar)$", re.MULTILINE)
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
    assert "-m venv --without-pip /opt/venv" in DOCKERFILE.split("AS operator-dependencies\n", 1)[1].split("\n\n", 1)[0]


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


@pytest.mark.parametrize("line", hashes.SPARK_LINES)
def test_no_jar_is_one_that_pyspark_has_or_for_one_processor(line: str) -> None:
    """Two versions of one library on a class path are a matter of luck. An image for arm64 is built from the same list."""
    pysparks = {"io.netty", "org.slf4j", "com.fasterxml.jackson.core", "org.apache.parquet", "org.apache.logging.log4j", "commons-logging"}
    assert not pysparks & {name.partition(":")[0] for name in jars(line)}
    assert not {"org.apache.hadoop:hadoop-client-api", "software.amazon.awssdk:bundle"} & set(jars(line))
    for entry in JAR.finditer((hashes.FOLDER / f"jars-{line}.txt").read_text()):
        assert entry[4] == f"{entry[2]}-{entry[3]}.jar"


def test_a_jar_that_is_not_listed_is_refused() -> None:
    stage = DOCKERFILE.split("AS jars\n", 1)[1].split("\n\n", 1)[0]
    assert "sha256sum --check --strict --quiet ../jars.txt" in stage
    assert "diff - ../found.txt" in stage
