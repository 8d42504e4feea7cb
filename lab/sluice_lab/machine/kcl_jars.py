"""The real Kinesis Client Library and what it needs, as Maven resolves kcl-pom.xml."""

import re
import shutil
from pathlib import Path

from sluice_lab import places
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run

POM = Path(__file__).with_name("kcl-pom.xml")


def version() -> str:
    """Of the library, as the pom names it."""
    (found,) = re.findall(r"<artifactId>amazon-kinesis-client</artifactId>\s*<version>(\S+)</version>", POM.read_text())
    return str(found)


def cached(work: Path) -> Path:
    """The folder with the jars, fetched once into the work folder (100 MB).

    Raises:
        LabError: there is no Maven, or it cannot fetch them.
    """
    home = work / "jars" / "kcl"
    with places.lock(work / "jars" / "kcl.lock"):
        if not (home / POM.name).exists() or (home / POM.name).read_text() != POM.read_text():
            required("mvn", "Apache Maven (Debian: apt-get install maven)")
            shutil.rmtree(home, ignore_errors=True)
            new = home.with_suffix(".new")
            run("mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={new}")
            shutil.copy(POM, new)
            new.rename(home)
    return home
