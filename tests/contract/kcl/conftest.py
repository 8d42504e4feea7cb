"""The real Kinesis Client Library, from Maven Central."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sluice_lab import places

MAVEN = ("mvn", "-q", "-B", "-f", str(Path(__file__).parent / "pom.xml"), "dependency:copy-dependencies")


@pytest.fixture(scope="session")
def jars() -> Path:
    """KCL and what it needs, from Maven Central."""
    folder = places.made(places.work() / "kcl")
    if shutil.which("mvn") is None:
        pytest.skip("not run: no Maven, which brings the real KCL")
    with places.lock(places.work() / "kcl.lock"):
        done = subprocess.run([*MAVEN, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"not run: KCL could not be had from Maven Central: {done.stdout[-300:]}")
    return folder
