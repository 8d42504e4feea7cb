"""The jars that the consumer image adds to a line of Spark, as Maven resolves consumer/image/jars/pom.xml."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import parts
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

POM = places.REPO / "consumer" / "image" / "jars" / "pom.xml"
LOG_STORE = places.REPO / "consumer" / "image" / "delta" / "ConditionalS3LogStore.java"
AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
LOG_STORE_CLASS = "dev.sluice.delta.ConditionalS3LogStore"


def resolve(line: str, folder: Path) -> Path:
    """Have the jars of a line in a folder, laid out as a repository: group/artifact/version/file."""
    required("mvn", "Apache Maven (Debian: apt-get install maven)")
    goal = ("dependency:copy-dependencies", "-Dmdep.useRepositoryLayout=true", f"-DoutputDirectory={folder}")
    run("mvn", "-q", "-B", "-f", str(POM), "-P", line, *goal)
    return folder


def fetched(line: str) -> list[Path]:
    """The jars of a line (92 MB, 40 s once).

    Raises:
        LabError: a jar is not the one that constraints/hashes/ lists, or one is missing.
    """
    listing = places.REPO / "constraints" / "hashes" / f"jars-{line}.txt"
    rows = (row.split("  ", 1) for row in listing.read_text().splitlines() if not row.startswith("#"))
    wanted = {name: digest for digest, name in rows}

    def fetch(folder: Path) -> None:
        with step(f"jars of Spark {line}"):
            resolve(line, folder)
        odd = [name for name, digest in wanted.items() if not (folder / name).exists() or _digest(folder / name) != digest]
        if odd:
            raise LabError(f"{odd[0]}: not the jar that {listing.relative_to(places.REPO)} lists; `make hashes` writes the lists anew")

    home = parts.part(f"jars-spark-{line}", wanted, fetch)
    return [home / name for name in sorted(wanted)]


def avro() -> Path:
    """Spark's own functions for Avro (docs/how-to/decode.md). It is of the default line; not each of its releases is published."""

    def fetch(folder: Path) -> None:
        required("mvn", "Apache Maven (Debian: apt-get install maven)")
        run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={AVRO}", f"-DoutputDirectory={folder}")

    (found,) = parts.part("spark-avro", AVRO, fetch).glob("*.jar")
    return found


def log_store(line: str, classpath: Sequence[Path]) -> Path:
    """Delta's log store of ours as a jar, compiled as the Dockerfile does it."""

    def compiled(folder: Path) -> None:
        required("javac", "a JDK, 17 or newer (Debian: apt-get install openjdk-17-jdk-headless)")
        classes = places.made(folder / "classes")
        run("javac", "--release", "17", "-cp", ":".join(map(str, classpath)), "-d", str(classes), str(LOG_STORE))
        run("jar", "--create", f"--file={folder / 'log-store.jar'}", "-C", str(classes), ".")

    return parts.part(f"log-store-{line}", [LOG_STORE.read_text(), *(path.name for path in classpath)], compiled) / "log-store.jar"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
