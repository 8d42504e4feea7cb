"""Prometheus' programs from Debian's package, and the CRDs of the Prometheus operator from its Go module.

The package is unpacked below `<work>`, not installed: an installation would start a server that listens on all addresses.
"""

import json
import shutil
from pathlib import Path

from sluice_lab import places
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run
from sluice_lab.machine.tools import go_environment
from sluice_lab.steps import step

OPERATOR_MODULE = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
CRDS = "jsonnet/prometheus-operator"
Json = dict[str, object]


def program(work: Path, name: str) -> str:
    """`prometheus` or `promtool`: from PATH, else out of Debian's package.

    Raises:
        LabError: the program is not on PATH, and this is not Debian, or its package lists are missing.
    """
    if found := shutil.which(name):
        return found
    unpacked = work / "prometheus" / "usr" / "bin" / name
    with places.lock(work / "prometheus.lock"):
        if not unpacked.exists():
            required("apt-get", f"{name} (Debian: apt-get install prometheus)")
            with step("prometheus (Debian's package)"):
                _unpack(places.made(work / "prometheus"))
    return str(unpacked)


def _unpack(home: Path) -> None:
    for old in home.glob("*.deb"):
        old.unlink()
    run("apt-get", "download", "-q", "prometheus", cwd=home)
    (package,) = home.glob("*.deb")
    run("dpkg-deb", "--extract", str(package), str(home))
    package.unlink()


def operator_crds(work: Path) -> list[Json]:
    """The CRDs of PodMonitor, ServiceMonitor, PrometheusRule and their relatives.

    Raises:
        LabError: there is no Go, or its module proxy does not answer.
    """
    required("go", "Go (https://go.dev/doc/install)")
    said = run("go", "mod", "download", "-json", OPERATOR_MODULE, cwd=places.made(work / "prometheus"), env=go_environment())
    folder = Path(json.loads(said)["Dir"]) / CRDS
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*-crd.json"))]
