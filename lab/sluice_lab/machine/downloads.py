"""Downloads the emulators, and scripts of the documentation's site, once, with the clients of Maven Central and npm."""

import json
import shutil
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sluice_lab.errors import CommandFailedError, LabError, MissingPartError
from sluice_lab.machine import parts
from sluice_lab.machine.processes import run

NODE_PACKAGES = {"kinesis-local": "0.6.2", "kinesalite": "3.3.3"}
DYNALITE_PACKAGES = {"dynalite": "4.0.0"}
SITE_SCRIPTS = {"mermaid@11.17.2": "dist/mermaid.min.js", "iframe-worker@1.0.4": "shim/index.js"}  # of npm, and a file of each


@dataclass(frozen=True)
class DynamoDBLocal:
    """A release of DynamoDB Local on Maven Central. 3.x needs parts of the AWS SDK that may not resolve without a BOM."""

    group: str
    version: str
    main: str
    sdk_bom: str | None = None


DYNAMODB_LOCALS = (
    DynamoDBLocal(
        group="software.amazon.dynamodb",
        version="3.3.1",
        main="software.amazon.dynamodb.services.local.main.ServerRunner",
        sdk_bom="2.33.0",
    ),
    DynamoDBLocal("com.amazonaws", "2.6.1", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"),
)

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice.lab</groupId><artifactId>dynamodb-local</artifactId><version>1</version>
  {management}
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>DynamoDBLocal</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""
_BOM = """<dependencyManagement><dependencies><dependency>
    <groupId>software.amazon.awssdk</groupId><artifactId>bom</artifactId><version>{version}</version>
    <type>pom</type><scope>import</scope>
  </dependency></dependencies></dependencyManagement>"""


def dynamodb_local() -> tuple[DynamoDBLocal, Path]:
    """The newest release that resolves, and the folder with its jars and native libraries (50 MB, 20 s once)."""
    required("java", "a Java runtime, 17 or newer (Debian: apt-get install openjdk-17-jre-headless)")
    *preferred, last = DYNAMODB_LOCALS
    for release in preferred:
        with suppress(CommandFailedError, MissingPartError):
            return release, parts.part("dynamodb-local", release, partial(_copy_jars, release))
    return last, parts.part("dynamodb-local", last, partial(_copy_jars, last))


def node_modules() -> Path:
    """The folder `node_modules` with both Kinesis emulators (31 MB, 5 s once)."""
    return _installed("kinesis-emulators", NODE_PACKAGES)


def dynalite_modules() -> Path:
    """The folder `node_modules` with dynalite, a DynamoDB with slow table creation and deletion (a few seconds once)."""
    return _installed("dynalite", DYNALITE_PACKAGES)


def site_scripts() -> Path:
    """A folder with the scripts that pages of the site need: `mermaid.js` and `iframe-worker.js` (15 MB, 5 s once)."""

    def fetch(folder: Path) -> None:
        required("npm", "npm (Debian: apt-get install npm)")
        for package, file in SITE_SCRIPTS.items():
            _unpack(package, file, folder)

    return parts.part("site-scripts", SITE_SCRIPTS, fetch)


def _unpack(package: str, file: str, home: Path) -> None:
    """One file of a package, under the package's name. What the package depends on is in that file."""
    (packed,) = json.loads(run("npm", "pack", package, "--json", "--loglevel=error", f"--pack-destination={home}"))
    archive = home / packed["filename"]
    with tarfile.open(archive) as opened:
        found = opened.extractfile(f"package/{file}")
        if found is None:
            raise LabError(f"{package} has no file {file}")
        (home / f"{packed['name']}.js").write_bytes(found.read())
    archive.unlink()


def _installed(name: str, packages: dict[str, str]) -> Path:
    required("node", "Node.js, 18 or newer (Debian: apt-get install nodejs npm)")

    def install(folder: Path) -> None:
        required("npm", "npm (Debian: apt-get install npm)")
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": packages}))
        run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)

    return parts.part(name, packages, install) / "node_modules"


def required(program: str, what: str) -> None:
    """Fail with a hint what to install if a program is not on PATH."""
    if shutil.which(program) is None:
        raise MissingPartError(f"`{program}` is not on PATH. Install {what} and try again.")


def _copy_jars(release: DynamoDBLocal, folder: Path) -> None:
    required("mvn", "Apache Maven (Debian: apt-get install maven)")
    management = _BOM.format(version=release.sdk_bom) if release.sdk_bom else ""
    pom = _POM.format(management=management, group=release.group, version=release.version)
    (folder / "pom.xml").write_text(pom)
    run("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}", cwd=folder)
