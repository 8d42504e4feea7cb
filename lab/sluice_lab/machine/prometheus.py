"""Prometheus' programs from Debian's package, and the CRDs of the Prometheus operator from its Go module.

The package is unpacked, not installed: an installation would start a server that listens on all addresses.
"""

import json
import shutil
from pathlib import Path

from sluice_lab.machine import parts
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run
from sluice_lab.machine.tools import go_environment
from sluice_lab.steps import step

OPERATOR_MODULE = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
PACKAGE = "prometheus"
CRDS = "jsonnet/prometheus-operator"
Json = dict[str, object]


def program(name: str) -> str:
    """`prometheus` or `promtool`: from PATH, else out of Debian's package.

    Raises:
        LabError: the program is not on PATH, and this is not Debian, or its package lists are missing.
    """
    if found := shutil.which(name):
        return found

    def fetch(folder: Path) -> None:
        required("apt-get", f"{name} (Debian: apt-get install prometheus)")
        with step("prometheus (Debian's package)"):
            _unpack(folder)

    return str(parts.part("prometheus", PACKAGE, fetch) / "usr" / "bin" / name)


def _unpack(home: Path) -> None:
    run("apt-get", "download", "-q", PACKAGE, cwd=home)
    (package,) = home.glob("*.deb")
    run("dpkg-deb", "--extract", str(package), str(home))
    package.unlink()


def operator_crds() -> list[Json]:
    """The CRDs of PodMonitor, ServiceMonitor, PrometheusRule and their relatives.

    Raises:
        LabError: they are not here, and there is no Go, or its module proxy does not answer.
    """

    def fetch(folder: Path) -> None:
        required("go", "Go (https://go.dev/doc/install)")
        said = run("go", "mod", "download", "-json", OPERATOR_MODULE, cwd=folder, env=go_environment())
        for path in (Path(json.loads(said)["Dir"]) / CRDS).glob("*-crd.json"):
            (folder / path.name).write_bytes(path.read_bytes())

    return [json.loads(path.read_text()) for path in sorted(parts.part("prometheus-crds", OPERATOR_MODULE, fetch).glob("*-crd.json"))]
