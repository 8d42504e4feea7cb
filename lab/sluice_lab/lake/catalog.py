"""Iceberg's own REST catalog on one address, over a database in a file. Metadata goes to the S3 server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.lake.storage import Storage
from sluice_lab.machine import downloads, parts
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, run

HERE = Path(__file__).parent
SPARK = "org.apache.iceberg.spark.SparkCatalog"


def jars() -> Path:
    """The folder with the catalog's jars (47 MB, 15 s once)."""
    pom = HERE / "pom.xml"

    def fetch(folder: Path) -> None:
        downloads.required("mvn", "Apache Maven (Debian: apt-get install maven)")
        run("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}")

    return parts.part("iceberg-catalog", pom.read_text(), fetch)


@contextmanager
def iceberg_catalog(work: Path, storage: Storage, host: str = LOOPBACK) -> Iterator[str]:
    """Run a catalog while the block lasts; yields its endpoint. What it knows goes with it."""
    port = free_port(host)
    home = places.made(work / "run" / f"iceberg-catalog-{port}")
    backend = {"uri": f"jdbc:sqlite:{home}/catalog.db", "jdbc.schema-version": "V1", "warehouse": f"s3://{storage.bucket}/warehouse"}
    properties = backend | storage.iceberg_java() | {"http-client.type": "urlconnection"}
    java = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jars()}/*", str(HERE / "IcebergCatalog.java"))
    arguments = (host, str(port), *(f"{name}={value}" for name, value in properties.items()))
    downloads.required("javac", "a JDK, 17 or newer (Debian: apt-get install openjdk-17-jdk-headless)")
    found = emulators.start(work, Program(f"iceberg-catalog-{port}", (*java, *arguments)), host, port)
    try:
        yield found.endpoint
    finally:
        found.stop()
        shutil.rmtree(home, ignore_errors=True)


def spark(name: str, endpoint: str, storage: Storage) -> dict[str, str]:
    """Settings of Spark for a catalog of this name."""
    properties = {"type": "rest", "uri": endpoint} | storage.iceberg_java()
    return {f"spark.sql.catalog.{name}": SPARK} | {f"spark.sql.catalog.{name}.{key}": value for key, value in properties.items()}
