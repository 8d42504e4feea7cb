"""Argo CD, the real one: its programs beside a cluster, over the cluster's own API. They end with the block that runs them.

One binary is all of them; it looks at the name that it is called by. It is built from its Go module once (10 minutes of a core). Redis is Debian's:
`redis-check-rdb` of the package redis-tools is the server too, by another name, and this package starts no daemon.

The programs run in the network of the cluster's node, and else on this machine: one of them listens on all addresses, and has no option for that.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import building, docker, parts, processes, tool_objects, tools
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.downloads import required
from sluice_lab.machine.listening import LOOPBACK
from sluice_lab.machine.processes import Program, Running, answers, run
from sluice_lab.steps import step

VERSION = "v3.2.11"  # v3.2.12 does not compile; newer ones need a part of their repository that is not in the module
MODULE = f"github.com/argoproj/argo-cd/v3@{VERSION}"
NAMESPACE = "argocd"
INSTALLATION = "core-install.yaml"
WORKLOADS = {"Deployment", "StatefulSet", "NetworkPolicy", "Service"}
SERVER, REPO_SERVER, REDIS = 18080, 18081, 18079  # in the node's network
START_SECONDS = 120.0
Json = dict[str, Any]


def built() -> Path:
    """The folder with the program `argocd`, and with the manifest of its core installation. It is built unless it is there."""

    def build(folder: Path) -> None:
        required("go", "Go (https://go.dev/doc/install)")
        with step(f"Argo CD {VERSION} (go build, 10 minutes the first time)") as current:
            said = run("go", "mod", "download", "-json", MODULE, cwd=folder, env=tools.go_environment(), seconds=600)
            module = Path(json.loads(said)["Dir"])
            flags = ("-trimpath", "-ldflags=-s -w")
            building.go_build(current, ("./cmd",), flags, str(folder / "argocd"), cwd=module, env=tools.go_environment())
            shutil.copyfile(module / "manifests" / INSTALLATION, folder / INSTALLATION)

    return parts.part("argocd", MODULE, build)


def redis() -> None:
    """Ensure the Redis that Argo CD keeps its cache in."""
    docker.apt_install("redis-tools", unless=("redis-check-rdb",))


@dataclass(frozen=True)
class ArgoCd:
    """A running Argo CD: its cluster, and the address of its API."""

    cluster: KindCluster
    program: Path
    inside: tuple[str, ...]
    home: Path

    def argocd(self, *arguments: str) -> str:
        """Run its command line."""
        where = (f"--server={LOOPBACK}:{SERVER}", "--plaintext", "--auth-token=none", f"--config={self.home / 'cli.yaml'}")
        return run(*self.inside, str(self.program), *arguments, *where)

    def application(self, name: str) -> Json:
        """An Application; empty if there is none."""
        here = f"--namespace={NAMESPACE}"
        said = self.cluster.kubectl(here, "get", "applications.argoproj.io", name, "--ignore-not-found", "--output=json")
        found: Json = json.loads(said) if said.strip() else {}
        return found


@contextmanager
def running(cluster: KindCluster, settings: Mapping[str, str]) -> Iterator[ArgoCd]:
    """Run Argo CD over a cluster. `settings` are the keys of its ConfigMap argocd-cm. Its CRDs and its namespace go at the end.

    Raises:
        LabError: a part of it is missing here, or does not start.
    """
    work = cluster.work
    program = built() / "argocd"
    home = places.made(work / "argocd" / cluster.name)
    links = _links(program, home)
    objects = _objects(settings)
    started: list[Running] = []
    try:
        with step(f"Argo CD {VERSION} over cluster {cluster.name}"):
            tool_objects.apply(cluster, NAMESPACE, objects, home)
            inside = _inside(cluster)
            started += [processes.start(work, each) for each in _programs(cluster, inside, links, home)]
            _await(inside, started)
        yield ArgoCd(cluster, program, inside, home)
    finally:
        for each in reversed(started):
            each.stop()
        tool_objects.remove(cluster, NAMESPACE, objects)
        shutil.rmtree(home, ignore_errors=True)


def _links(program: Path, home: Path) -> Path:
    """A folder with the program under each of its names, and Redis."""
    redis()
    folder = places.made(home / "bin")
    targets = dict.fromkeys(("argocd-repo-server", "argocd-application-controller", "argocd-server"), str(program))
    for name, target in {**targets, "redis-server": str(shutil.which("redis-check-rdb"))}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    return folder


def _objects(settings: Mapping[str, str]) -> list[Json]:
    """The core installation of its module without its pods, with these settings, and the project that every Application may use."""
    text = (built() / INSTALLATION).read_text()
    found: list[Json] = [body for body in yaml.load_all(text, yaml.CSafeLoader) if body and body["kind"] not in WORKLOADS]
    for body in found:
        if body["kind"] == "ConfigMap" and body["metadata"]["name"] == "argocd-cm":
            body["data"] = dict(settings)
    anything = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
    project = {"spec": {**anything, "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}}
    return [*found, {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}, **project}]


def _inside(cluster: KindCluster) -> tuple[str, ...]:
    """What goes before a command that runs in the network of the cluster's node."""
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        raise LabError("Argo CD runs in the network of the cluster's node: that needs root, and `nsenter` (Debian: util-linux)")
    pid = run("docker", "inspect", "--format", "{{.State.Pid}}", cluster.node).strip()
    return ("nsenter", f"--net=/proc/{pid}/ns/net", "--")


def _kubeconfig(cluster: KindCluster, home: Path) -> Path:
    """One with the API server's address in that network."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    address = run("docker", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", cluster.node).strip()
    document["clusters"][0]["cluster"]["server"] = f"https://{address}:6443"
    path = home / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def _programs(cluster: KindCluster, inside: tuple[str, ...], links: Path, home: Path) -> list[Program]:
    kubeconfig = _kubeconfig(cluster, home)
    env = {
        "KUBECONFIG": str(kubeconfig),
        "ARGOCD_FAKE_IN_CLUSTER": "true",  # https://kubernetes.default.svc is the kubeconfig's cluster
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_RECONCILIATION_TIMEOUT": "5s",  # how soon a commit is seen
        "ARGOCD_RECONCILIATION_JITTER": "0s",
        "TMPDIR": str(places.made(home / "tmp")),
        "PATH": f"{Path(tools.helm()).parent}{os.pathsep}{tools.path(cluster.work)}",  # git and helm
    }
    store, reader = f"--redis={LOOPBACK}:{REDIS}", (f"--repo-server={LOOPBACK}:{REPO_SERVER}", "--repo-server-plaintext")
    over = (f"--kubeconfig={kubeconfig}", f"--namespace={NAMESPACE}")
    commands = {
        "redis-server": ("--bind", LOOPBACK, "--port", str(REDIS), "--save", "", "--appendonly", "no"),
        "argocd-repo-server": (f"--address={LOOPBACK}", f"--port={REPO_SERVER}", f"--metrics-address={LOOPBACK}", "--disable-tls", store),
        "argocd-application-controller": (*over, *reader, store, "--self-heal-timeout-seconds=1", "--persist-resource-health"),
        "argocd-server": (
            *over, *reader, store, f"--address={LOOPBACK}", f"--port={SERVER}", f"--metrics-address={LOOPBACK}", "--insecure", "--disable-auth",
            "--dex-server=",
        ),
    }  # fmt: skip
    return [Program(f"{name}-{cluster.name}", (*inside, str(links / name), *argv), env, cwd=home) for name, argv in commands.items()]


def _await(inside: tuple[str, ...], started: list[Running]) -> None:
    dead: list[Running] = []

    def ready() -> bool:
        dead.extend(each for each in started if not each.alive())
        return bool(dead) or answers(*inside, "curl", "--silent", "--fail", "--max-time", "2", f"http://{LOOPBACK}:{SERVER}/healthz")

    if not processes.poll(ready, START_SECONDS, pause=0.5) or dead:
        logs = "\n".join(f"{each.log} ends:\n{processes.tail(each.log.read_text(errors='replace'), 12)}" for each in dead or started)
        raise LabError(f"Argo CD does not answer\n{logs}")
