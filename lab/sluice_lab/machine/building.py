"""Long builds: each shows how far it is, and has no limit but one on silence. So a build on a slow machine ends, and one that hangs does too."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sluice_checkpoints.names import counted
from sluice_lab.machine.processes import run, watch
from sluice_lab.steps import ProgressStep

SILENT_SECONDS = 1800.0  # a linker says nothing while it works, for minutes on a busy machine
_DOWNLOADING = "go: downloading "
_PACKAGE = re.compile(r"[\w.~-]+(/[\w.~+-]+)*")
_STEP = re.compile(r"Step (\d+)/(\d+) ")  # Docker's classic builder
_STAGE = re.compile(r"#\d+ \[(?:\S+ )*?\S*?(\d+)/(\d+)\]")  # BuildKit


@dataclass
class GoProgress:
    """How far `go build -v` is, by the lines that it prints: one for each module that it fetches, and one for each package that it compiles."""

    total: int = 0  # packages to compile; 0: not known
    fetched: int = 0
    compiled: set[str] = field(default_factory=set)

    def read(self, line: str) -> str:
        """Read one line; returns the progress: `120 modules fetched`, `412 of 1290 packages`, `linking`."""
        if line.startswith(_DOWNLOADING):
            self.fetched += 1
        elif _PACKAGE.fullmatch(line.strip()):
            self.compiled.add(line.strip())
        if not self.compiled:
            return f"{counted(self.fetched, 'module')} fetched" if self.fetched else ""
        return f"{len(self.compiled)} of {self.total} packages" if self.total >= len(self.compiled) else counted(len(self.compiled), "package")


def go_build(current: ProgressStep, packages: Sequence[str], flags: Sequence[str], out: str, cwd: Path, env: Mapping[str, str]) -> None:
    """Build packages of a Go module in `cwd` to the path `out`. Progress counts the packages that Go's build cache lacks."""
    progress = GoProgress()
    stale = ("go", "list", *flags, "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *packages)
    listed: list[str] = []
    watch(stale, _both(listed.append, current, progress), cwd=cwd, env=env, silent=SILENT_SECONDS)
    progress.total = sum(bool(_PACKAGE.fullmatch(line)) for line in listed)
    watch(("go", "build", "-v", *flags, "-o", out, *packages), _shown(current, progress.read), cwd=cwd, env=env, silent=SILENT_SECONDS)


def go_install(current: ProgressStep, module: str, env: Mapping[str, str]) -> None:
    """Install a program of a published module, `path@version`. Progress counts packages; nobody knows how many there will be."""
    watch(("go", "install", "-v", "-ldflags=-s -w", module), _shown(current, GoProgress().read), env=env, silent=SILENT_SECONDS)


def docker_build(current: ProgressStep, arguments: Sequence[str], tag: str, env: Mapping[str, str]) -> str:
    """Build an image and tag it; returns its id. Progress is the step of the Dockerfile."""
    plain = {**env, "BUILDKIT_PROGRESS": "plain"}
    watch(("docker", "build", f"--tag={tag}", *arguments), _shown(current, docker_step), env=plain, silent=SILENT_SECONDS)
    return run("docker", "image", "inspect", "--format", "{{.Id}}", tag).strip()


def docker_step(line: str) -> str:
    """`step 3 of 12`, if the line of `docker build` begins a step."""
    found = _STEP.match(line) or _STAGE.match(line)
    return f"step {found[1]} of {found[2]}" if found else ""


def _shown(current: ProgressStep, read: Callable[[str], str]) -> Callable[[str], bool]:
    """Shows what `read` makes of a line; True if the line is nothing else."""

    def show(line: str) -> bool:
        current.progress, before = read(line) or current.progress, current.progress
        return current.progress != before

    return show


def _both(keep: Callable[[str], None], current: ProgressStep, progress: GoProgress) -> Callable[[str], None]:
    def show(line: str) -> None:
        if line.startswith(_DOWNLOADING):
            current.progress = progress.read(line)
        else:
            keep(line.strip())

    return show
