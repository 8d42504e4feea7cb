"""The real Kinesis Client Library and what it needs, as Maven resolves kcl-pom.xml."""

import re
from pathlib import Path

from sluice_lab.machine import parts
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run

POM = Path(__file__).with_name("kcl-pom.xml")


def version() -> str:
    """Of the library, as the pom names it."""
    (found,) = re.findall(r"<artifactId>amazon-kinesis-client</artifactId>\s*<version>(\S+)</version>", POM.read_text())
    return str(found)


def fetched() -> Path:
    """The folder with the jars (100 MB, 20 s once).

    Raises:
        LabError: there is no Maven, or it cannot fetch them.
    """

    def fetch(folder: Path) -> None:
        required("mvn", "Apache Maven (Debian: apt-get install maven)")
        run("mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={folder}")

    return parts.part("kcl-jars", POM.read_text(), fetch)
