"""Flux, the real one: source-controller and kustomize-controller beside a cluster, over its API. They end with the block that runs them.

Each is built from its Go module once (10 minutes of a core for both). Its go.mod takes the controller's API from a folder that no module has.
The API is a module of its own, too, so a copy of go.mod without that line builds the program.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import building, parts, processes, tool_objects, tools
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.downloads import required
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, Running, answers, run
from sluice_lab.steps import step

VERSION = "v1.9.0"  # of both; v1.10 needs Go 1.27, and modules that v1.9.4 to v1.9.6 of source-controller need could not be fetched
SOURCE, KUSTOMIZE = "source-controller", "kustomize-controller"
NAMESPACE = "flux-system"
REQUESTED = "reconcile.fluxcd.io/requestedAt"
START_SECONDS, HANDLED_SECONDS = 60.0, 300.0
Json = dict[str, Any]


def built(name: str) -> Path:
    """The folder with one of the programs, by its name, and with the CRDs of its kinds. It is built unless it is there."""

    def build(folder: Path) -> None:
        required("go", "Go (https://go.dev/doc/install)")
        with step(f"Flux's {name} {VERSION} (go build, minutes the first time)") as current:
            said = run("go", "mod", "download", "-json", module, cwd=folder, env=tools.go_environment(), seconds=600)
            source = Path(json.loads(said)["Dir"])
            flags = ("-trimpath", "-ldflags=-s -w", "-mod=mod", f"-modfile={_go_mod(folder, name, source)}")
            building.go_build(current, (".",), flags, str(folder / name), cwd=source, env=tools.go_environment())
            for path in (source / "config" / "crd" / "bases").glob("*.yaml"):
                (folder / path.name).write_bytes(path.read_bytes())

    module = f"github.com/fluxcd/{name}@{VERSION}"
    return parts.part(name, module, build)


def _go_mod(folder: Path, name: str, module: Path) -> Path:
    """A copy of go.mod and go.sum in which the API is the published module."""
    for file in ("go.mod", "go.sum"):
        (folder / file).write_bytes((module / file).read_bytes())
    run("go", "mod", "edit", f"-dropreplace=github.com/fluxcd/{name}/api", str(folder / "go.mod"))
    return folder / "go.mod"


@dataclass(frozen=True)
class Flux:
    """A running Flux, and its cluster."""

    cluster: KindCluster

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in Flux's namespace."""
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def read(self, kind: str, name: str) -> Json:
        """One of its resources; empty if there is none."""
        said = self.kubectl("get", kind, name, "--ignore-not-found", "--output=json")
        found: Json = json.loads(said) if said.strip() else {}
        return found

    def reconcile(self, kind: str, name: str) -> Json:
        """Ask for a reconcile as `flux reconcile` does, and wait until it was done, well or not; returns the resource.

        Raises:
            LabError: it takes too long, as it does while a Kustomization waits for what it has applied.
        """
        token = str(time.time_ns())
        self.kubectl("annotate", kind, name, f"{REQUESTED}={token}", "--overwrite")

        def handled() -> bool:
            return bool(self.read(kind, name).get("status", {}).get("lastHandledReconcileAt") == token)

        if not processes.poll(handled, HANDLED_SECONDS, pause=0.5):
            raise LabError(f"Flux did not reconcile {kind} {name} within {HANDLED_SECONDS:.0f} s\n{self.kubectl('describe', kind, name)[-2000:]}")
        return self.read(kind, name)


@contextmanager
def running(cluster: KindCluster) -> Iterator[Flux]:
    """Run Flux over a cluster. At the end it deletes its Kustomizations and with them what they prune; its CRDs and its namespace go too.

    Raises:
        LabError: a part of it cannot be built here, or does not start.
    """
    work = cluster.work
    home = places.made(work / "flux" / cluster.name)
    objects = [body for name in (SOURCE, KUSTOMIZE) for body in _definitions(name)]
    flux, started = Flux(cluster), []
    try:
        with step(f"Flux's controllers {VERSION} over cluster {cluster.name}"):
            tool_objects.apply(cluster, NAMESPACE, objects, home)
            for program, health in _programs(cluster, home):
                started.append(processes.start(work, program))
                _await(started[-1], health)
        yield flux
    finally:
        with suppress(LabError):  # a Flux that did not start has nothing
            flux.kubectl("delete", "kustomizations.kustomize.toolkit.fluxcd.io,gitrepositories", "--all", "--timeout=120s")
        for each in reversed(started):
            each.stop()
        tool_objects.remove(cluster, NAMESPACE, objects)
        shutil.rmtree(home, ignore_errors=True)


def _definitions(name: str) -> list[Json]:
    return [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(built(name).glob("*.yaml"))]


def _programs(cluster: KindCluster, home: Path) -> list[tuple[Program, str]]:
    """Each with the address of its health."""
    store = f"{LOOPBACK}:{free_port(LOOPBACK)}"
    special = {
        SOURCE: (f"--storage-path={places.made(home / 'storage')}", f"--storage-addr={store}", f"--storage-adv-addr={store}"),
        KUSTOMIZE: ("--requeue-dependency=2s",),
    }
    env = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "RUNTIME_NAMESPACE": NAMESPACE,
        "TMPDIR": str(places.made(home / "tmp")),
        "TUF_ROOT": str(places.made(home / "sigstore")),
    }
    found = []
    for name, arguments in special.items():
        health = f"{LOOPBACK}:{free_port(LOOPBACK)}"
        argv = (str(built(name) / name), f"--health-addr={health}", "--metrics-addr=0", *arguments)
        found.append((Program(f"{name}-{cluster.name}", argv, env, cwd=home), health))
    return found


def _await(started: Running, health: str) -> None:
    def settled() -> bool:
        return not started.alive() or answers("curl", "--silent", "--fail", "--max-time", "2", f"http://{health}/readyz")

    if not processes.poll(settled, START_SECONDS, pause=0.5) or not started.alive():
        raise LabError(f"{started.name} does not answer\n{started.log} ends:\n{processes.tail(started.log.read_text(errors='replace'), 12)}")
