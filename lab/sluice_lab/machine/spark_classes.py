"""An archive of Spark's classes for the JVMs of tests on this machine, as the image has one of its own (consumer/image/training).

A driver loads 17,000 classes until its first batch is done. Java maps 12,000 of them from the archive, and reads and checks them else: 6 of the 14
CPU-s of a small program. The archive fits one Java and one class path. A JVM that it does not fit does without it and says nothing.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pyspark

from sluice_consumer.spark import spark_home
from sluice_lab import places
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

TRAINING = places.REPO / "consumer" / "image" / "training"
TESTED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM of a test lives for seconds: the compiler for long runs and a parallel collector cost more than they give (a small job: 48 s, not 21)."""
QUIET = "-Xlog:cds*=off"


def place(work: Path) -> Path:
    """Its name says what it is for: this Java, and the jars of this PySpark by the paths that a driver gives them."""
    java = Path(shutil.which("java") or "java").resolve()
    home = {**os.environ, **spark_home.lean(os.environ)}.get("SPARK_HOME", "")
    built = java.stat().st_mtime if java.exists() else 0
    digest = hashlib.sha256(repr((str(java), built, home, pyspark.__version__)).encode()).hexdigest()[:16]
    return work / "classes" / f"{digest}.jsa"


def options(work: Path) -> str:
    """What a JVM of a test is started with: from the archive, if it was built."""
    archive = place(work)
    return f"{TESTED} -XX:SharedArchiveFile={archive} {QUIET}" if archive.exists() else TESTED


def build(work: Path) -> None:
    """Build the archive unless it is there: a small job runs, and its JVM writes what it loaded (half a minute, 170 MB)."""
    archive = place(work)
    with places.lock(archive.parent / "lock"), step("archive of Spark's classes") as current:
        if archive.exists():
            current.note("already there")
            return
        for older in archive.parent.glob("*.jsa"):
            older.unlink()
        new = archive.with_suffix(".new")
        _train(new)
        new.rename(archive)


def _train(archive: Path) -> None:
    """The options are for Spark's JVM alone, so they come in its own variable. Its Python workers are of this environment, whatever the PATH has."""
    home, paths = spark_home.lean(os.environ), os.pathsep.join([str(TRAINING), str(places.REPO / "consumer")])
    python = {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    told = {"SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={archive} {QUIET}", "JAVA_TOOL_OPTIONS": TESTED, **python}
    run(sys.executable, str(TRAINING / "job.py"), "local[2]", "", "", "", env={**home, **told})
