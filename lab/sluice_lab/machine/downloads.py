"""Downloads the emulators, and scripts of the documentation's site, into the work folder once, with the clients of Maven Central and npm."""

import json
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import CommandFailedError, LabError
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


def dynamodb_local(work: Path) -> tuple[DynamoDBLocal, Path]:
    """The newest available release, and the folder with its jars and native libraries (50 MB, 20 s once)."""
    required("java", "a Java runtime, 17 or newer (Debian: apt-get install openjdk-17-jre-headless)")
    with places.lock(work / "emulators" / "dynamodb.lock"):
        homes = [(release, work / "emulators" / f"dynamodb-{release.version}") for release in DYNAMODB_LOCALS]
        for release, home in homes:
            if home.is_dir():
                return release, home
        required("mvn", "Apache Maven (Debian: apt-get install maven)")
        *preferred, (last, home) = homes
        for release, folder in preferred:
            try:
                _copy_jars(release, folder)
            except CommandFailedError:
                continue
            return release, folder
        _copy_jars(last, home)
        return last, home


def node_modules(work: Path) -> Path:
    """The folder `node_modules` with both Kinesis emulators (31 MB, 5 s once)."""
    return _installed(work, "node", NODE_PACKAGES)


def dynalite_modules(work: Path) -> Path:
    """The folder `node_modules` with dynalite, a DynamoDB with slow table creation and deletion (a few seconds once)."""
    return _installed(work, "dynalite", DYNALITE_PACKAGES)


def site_scripts(work: Path) -> Path:
    """A folder with the scripts that pages of the site need: `mermaid.js` and `iframe-worker.js` (15 MB, 5 s once)."""
    home, wanted = work / "site-scripts", json.dumps(SITE_SCRIPTS)
    with places.lock(work / "site-scripts.lock"):
        if not (home / "installed.json").exists() or (home / "installed.json").read_text() != wanted:
            required("npm", "npm (Debian: apt-get install npm)")
            for package, file in SITE_SCRIPTS.items():
                _unpack(package, file, places.made(home))
            (home / "installed.json").write_text(wanted)
    return home


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


def _installed(work: Path, name: str, packages: dict[str, str]) -> Path:
    required("node", "Node.js, 18 or newer (Debian: apt-get install nodejs npm)")
    home = places.made(work / "emulators" / name)
    manifest = json.dumps({"private": True, "dependencies": packages})
    done = home / "installed.json"
    with places.lock(work / "emulators" / f"{name}.lock"):
        if not done.exists() or done.read_text() != manifest:
            required("npm", "npm (Debian: apt-get install npm)")
            (home / "package.json").write_text(manifest)
            run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=home)
            done.write_text(manifest)
    return home / "node_modules"


def required(program: str, what: str) -> None:
    """Fail with a hint what to install if a program is not on PATH."""
    if shutil.which(program) is None:
        raise LabError(f"`{program}` is not on PATH. Install {what} and try again.")


def _copy_jars(release: DynamoDBLocal, home: Path) -> None:
    new = places.made(home.with_suffix(".new"))
    management = _BOM.format(version=release.sdk_bom) if release.sdk_bom else ""
    pom = _POM.format(management=management, group=release.group, version=release.version)
    (new / "pom.xml").write_text(pom)
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={new}")
    run("mvn", "-q", "-B", *goal, cwd=new)
    new.rename(home)
