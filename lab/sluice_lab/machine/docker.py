"""A Docker daemon: the one that answers; or, as root on Debian, one that the lab starts in the background."""

import json
import os
import shutil
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError, MissingPartError
from sluice_lab.machine import parts, processes
from sluice_lab.machine.processes import Program, answers, run
from sluice_lab.steps import step

START_SECONDS = 60.0
DAEMONS = {"containerd": ("containerd",), "dockerd": ("dockerd", "--host=unix:///var/run/docker.sock")}
BASE_LABEL, CODE_LABEL = "sluice.lab.base", "sluice.lab.code"  # labels of an image that is a base and one layer of code
_HINT = (
    "Docker does not answer. Start Docker Desktop, or `systemctl start docker`, or install it"
    " (https://docs.docker.com/engine/install/). As root on Debian the lab installs it."
)


def answering() -> bool:
    """Whether a daemon answers."""
    return answers("docker", "info", "--format", "{{.ServerVersion}}")


def ensure(work: Path) -> None:
    """Ensure a daemon that answers.

    Raises:
        LabError: none answers, and none can be started here.
    """
    with step("docker") as current, places.lock(work / "docker.lock"):
        if answering():
            current.note(f"{_version()}, already there")
            return
        if not may_install():
            raise MissingPartError(_HINT)
        apt_install("docker.io", "debootstrap", unless=("dockerd", "containerd"))
        if not answering():  # an init system would have started it on installation
            _start(work)
        current.note(f"{_version()}, started by the lab")


def stop(work: Path) -> None:
    """Stop the daemons that `ensure` started, by process id. A daemon that already ran stays."""
    ours = {running.name: running for running in processes.recorded(work) if running.name in DAEMONS}
    for name in reversed(DAEMONS):
        if name in ours:
            with step(f"stop {name}"):
                ours[name].stop(grace=30)


def may_install() -> bool:
    """Whether the lab may install Debian packages and start daemons."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str, unless: tuple[str, ...]) -> None:
    """Install Debian packages, unless all programs in `unless` exist.

    Raises:
        LabError: this is not Debian, or the user is not root.
    """
    if all(shutil.which(program) for program in unless):
        return
    if not may_install():
        raise MissingPartError(f"{', '.join(unless)}: not installed here. As root on Debian: apt-get install {' '.join(packages)}")
    parts.may_build(" ".join(packages))
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "-q", env=quiet)
    run("apt-get", "install", "-qy", "--no-install-recommends", *packages, env=quiet)


def build_environment() -> dict[str, str]:
    """The environment of `docker build`: the classic builder if BuildKit's plugin is missing."""
    return {} if answers("docker", "buildx", "version") else {"DOCKER_BUILDKIT": "0"}


def has_image(tag: str) -> bool:
    """Whether the daemon holds an image."""
    return answers("docker", "image", "inspect", "--format", "{{.Id}}", tag)


def labels(tag: str) -> dict[str, str]:
    """The labels of an image."""
    found: dict[str, str] | None = json.loads(run("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", tag))
    return found or {}


def layers(tag: str) -> list[str]:
    """The digests of an image's layers, lowest first."""
    found: list[str] = json.loads(run("docker", "image", "inspect", "--format", "{{json .RootFS.Layers}}", tag))
    return found


def megabytes(tag: str) -> int:
    """An image's size as the daemon reports it, in units of 10^6 bytes."""
    return int(run("docker", "image", "inspect", "--format", "{{.Size}}", tag)) // 10**6


def _version() -> str:
    return run("docker", "info", "--format", "{{.ServerVersion}}").strip()


def _start(work: Path) -> None:
    running = {daemon.name for daemon in processes.recorded(work)}
    for name, argv in DAEMONS.items():
        if name not in running:
            processes.start(work, Program(name, argv, dies_with_parent=False))
        if name == "containerd":
            processes.poll(Path("/run/containerd/containerd.sock").exists, seconds=START_SECONDS)
    if not processes.poll(answering, seconds=START_SECONDS, pause=0.5):
        log = work / "logs" / "dockerd.log"
        raise LabError(f"dockerd does not answer; its log, {log}, ends:\n{processes.tail(log.read_text())}")
