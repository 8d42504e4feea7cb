"""kind, kubectl, helm, skopeo, an S3 server and a registry: from PATH, else parts that `go install` builds, or copied out of a node."""

import os
import platform
import shutil
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import MissingPartError
from sluice_lab.machine import building, docker, parts
from sluice_lab.machine.downloads import required
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

KIND_VERSION = "v0.30.0"
HELM_VERSION = "v3.22.0"
VERSITYGW_VERSION = "v1.8.0"
REGISTRY_VERSION = "v3.0.0"


def path(work: Path) -> str:
    """PATH with `<work>/bin` first. It has the `docker` that kind needs on some machines (lab/kind/node/docker), and kubectl."""
    wrapper = places.made(work / "bin") / "docker"
    if not wrapper.is_symlink():
        wrapper.symlink_to(places.KIND / "node" / "docker")
    return f"{work / 'bin'}{os.pathsep}{os.environ['PATH']}"


def go_environment() -> dict[str, str]:
    """The environment of `go`: static programs, whether or not the machine has a C compiler."""
    return {"CGO_ENABLED": "0"}


def kind() -> str:
    """The kind program. `path` has the docker that it calls."""
    return _installed("kind", f"sigs.k8s.io/kind@{KIND_VERSION}")


def helm() -> str:
    """The helm program."""
    return _installed("helm", f"helm.sh/helm/v3/cmd/helm@{HELM_VERSION}")


def versitygw() -> str:
    """The S3 server: Apache-2.0, released as a Go module, and it does conditional writes and multipart uploads."""
    return _installed("versitygw", f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW_VERSION}")


def registry() -> str:
    """The image registry: CNCF Distribution."""
    return _installed("registry", f"github.com/distribution/distribution/v3/cmd/registry@{REGISTRY_VERSION}")


def skopeo() -> str:
    """The program that copies images between archives and registries: from PATH; as root on Debian the lab installs it."""
    docker.apt_install("skopeo", unless=("skopeo",))
    return "skopeo"


def kubectl(work: Path, node: str | None = None) -> str:
    """The kubectl program: from PATH, else copied out of a node container, which has the cluster's version."""
    if found := shutil.which("kubectl", path=path(work)):
        return found
    if node is None or platform.system() != "Linux":
        raise MissingPartError("`kubectl` is not on PATH: https://kubernetes.io/docs/tasks/tools/")
    target = places.made(work / "bin") / "kubectl"
    run("docker", "cp", "--follow-link", f"{node}:/usr/bin/kubectl", str(target))
    target.chmod(0o755)
    return str(target)


def _installed(name: str, module: str) -> str:
    def install(folder: Path) -> None:
        required("go", f"{name}, or Go (https://go.dev/doc/install) to build it with,")
        with step(f"{name} (go install)") as current:
            building.go_install(current, module, {"GOBIN": str(folder), **go_environment()})

    return shutil.which(name) or str(parts.part(name, module, install) / name)
