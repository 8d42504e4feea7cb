"""A long build shows how far it is; it is ended when it is silent, and not because it is long."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from rich.console import Console

from sluice_lab import steps
from sluice_lab.errors import CommandFailedError, LabError
from sluice_lab.machine.building import GoProgress, docker_step
from sluice_lab.machine.processes import watch


def test_go_counts_modules_then_packages_of_those_to_compile() -> None:
    """As `go build -v` prints them; an error is no package."""
    progress = GoProgress(total=3)
    lines = (
        "go: downloading k8s.io/api v0.34.4",
        "internal/abi",
        "k8s.io/api/core/v1",
        "# k8s.io/api",
        "x.go:3:1: undefined: y",
        "k8s.io/api/core/v1",
    )
    assert [progress.read(line) for line in lines] == ["1 module fetched", *["1 of 3 packages"], *["2 of 3 packages"] * 4]


def test_go_counts_packages_alone_where_their_number_is_not_known() -> None:
    progress = GoProgress()
    assert [progress.read(line) for line in ("errors", "github.com/versity/versitygw/s3api")] == ["1 package", "2 packages"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Step 3/12 : RUN apt-get update", "step 3 of 12"),
        ("#8 [consumer-base 4/9] RUN pip install", "step 4 of 9"),
        ("#5 [2/4] COPY a b", "step 2 of 4"),
        ("#1 [internal] load build definition", ""),
        (" ---> Running in 3f2a", ""),
    ],
)
def test_docker_tells_its_step(line: str, shown: str) -> None:
    assert docker_step(line) == shown


def test_each_line_is_told_as_it_comes() -> None:
    told: list[str] = []
    watch((sys.executable, "-c", "import sys; print('a', flush=True); print('b', file=sys.stderr)"), told.append, silent=60)
    assert told == ["a", "b"]


def test_an_error_ends_with_the_last_lines() -> None:
    with pytest.raises(CommandFailedError, match=r"exit 3\nno such package"):
        watch((sys.executable, "-c", "print('no such package'); raise SystemExit(3)"), lambda _: None, silent=60)


def test_lines_that_are_progress_are_no_part_of_an_error() -> None:
    """A build prints hundreds of them around the one that says what is wrong."""
    program = "print('a/b\\nundefined: y\\nc/d'); raise SystemExit(1)"
    with pytest.raises(CommandFailedError, match=r"exit 1\nundefined: y$"):
        watch((sys.executable, "-c", program), lambda line: "/" in line, silent=60)


def test_a_silent_program_is_ended_with_its_children() -> None:
    """The pipe is closed only when the last of them has gone."""
    told: list[str] = []
    child = "import subprocess, sys; print('begun', flush=True); subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with pytest.raises(CommandFailedError, match=r"printed nothing for 1 s"):
        watch((sys.executable, "-c", child), told.append, silent=1.0)
    assert told == ["begun"]


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(LabError, match=r"sluice-no-such-program is not installed"):
        watch(("sluice-no-such-program",), lambda _: None, silent=1)


def test_a_log_shows_that_a_step_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _ToldOf("1 of 3 packages", "2 of 3 packages")
    monkeypatch.setattr(steps, "console", Console(file=log, width=200))
    monkeypatch.setattr(steps, "QUIET_SECONDS", 0.001)
    monkeypatch.setattr(steps, "AGAIN_SECONDS", 0.001)
    with steps.step("Kubernetes' programs") as current:
        current.progress = "1 of 3 packages"
        assert log.told["1 of 3 packages"].wait(10)
        current.progress = "2 of 3 packages"
        assert log.told["2 of 3 packages"].wait(10)
    shown = [line for line in log.getvalue().splitlines() if "packages" in line]
    assert [line.split("  ")[1] for line in shown] == ["1 of 3 packages", "2 of 3 packages"]


class _ToldOf(io.StringIO):
    def __init__(self, *awaited: str) -> None:
        super().__init__()
        self.told = {text: threading.Event() for text in awaited}

    def write(self, text: str, /) -> int:
        written = super().write(text)
        for each, event in self.told.items():
            if each in self.getvalue():
                event.set()
        return written
