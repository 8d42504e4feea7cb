"""docs/start/local.md, followed as it stands: its commands, its function, and what it shows, in a checkout that nobody has touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import page_blocks
import pytest

from sluice_lab import places
from sluice_lab.machine import processes

SECONDS = 240.0
OURS = ("PYTHONPATH", "VIRTUAL_ENV", "SLUICE_LOG", "SLUICE_LOG_LEVEL")  # a newcomer has none of them


@dataclass(frozen=True)
class Page:
    install: str
    function: str
    run: str
    shown: str
    append: str
    anew: str


@dataclass(frozen=True)
class Shell:
    """A program of the page that runs.

    Attributes:
        said: the file that it writes to.
    """

    process: subprocess.Popen[bytes]
    said: Path

    def until(self, *shapes: str) -> None:
        lines = re.compile(".*".join(map(re.escape, shapes)), re.DOTALL)

        def seen() -> bool:
            return lines.search(shape_of(self.said.read_text())) is not None

        processes.poll(lambda: seen() or self.process.poll() is not None, SECONDS)
        assert seen(), self.said.read_text()


def page() -> Page:
    found = page_blocks.of("docs/start/local.md")
    assert [each.language for each in found] == ["sh", "python", "sh", "", "sh", ""]
    return Page(*(each.text for each in found))


def shape_of(text: str) -> str:
    return re.sub(r"\d+", "0", text)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of git, and nothing else; a gigabyte of packages goes at the end."""
    folder = tmp_path_factory.mktemp("start") / "sluice"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=places.REPO, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\n"):
        if (places.REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(places.REPO / name, folder / name)
    yield folder
    shutil.rmtree(folder)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OURS}


@contextmanager
def running(command: str, folder: Path) -> Iterator[Shell]:
    said = folder / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(["bash", "-ec", command], cwd=folder, env=environment(), stdout=file, stderr=file, start_new_session=True)
    try:
        yield Shell(process, said)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def bash(commands: str, folder: Path) -> None:
    done = subprocess.run(["bash", "-ec", commands], cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_the_page_leads_from_a_clone_to_a_batch_of_ones_own_and_new_code_runs_when_it_is_saved(checkout: Path) -> None:
    said = page()
    bash(said.install, checkout)
    name = re.findall(r"^# (\w+\.py)\n", said.function)[0]
    (checkout / name).write_text(said.function)
    with running(said.run, checkout) as shell:
        for line in shape_of(said.shown).splitlines():  # the feeder's lines come from a thread of its own
            shell.until(line)
        (checkout / name).write_text(said.function.replace("print(", 'print("new:", '))
        shell.until(*shape_of(said.anew).splitlines()[:2])
        bash(said.append, checkout)
        shell.until(*shape_of(said.anew).splitlines())
        assert processes_in(checkout) != []
    assert processes_in(checkout) == []


def commands(page: str, head: str) -> list[str]:
    return [line.partition("#")[0].strip() for line in page_blocks.beginning(page, head).splitlines()]


def test_the_page_about_tests_says_the_same_install() -> None:
    """docs/testing.md, "Dev": what is tried above."""
    install, _ = commands("docs/testing.md", "pip install")
    assert f".venv/bin/{install}" == page().install.splitlines()[-1]


@pytest.mark.slow
def test_the_program_of_a_person_is_installed_as_its_page_says(checkout: Path) -> None:
    """docs/kubectl.md: `kubectl-sluice` is there, and has its commands."""
    bash("python3 -m venv own", checkout)
    (install,) = commands("docs/kubectl.md", "pip install")
    bash(f"own/bin/{install}", checkout)
    bash("own/bin/kubectl-sluice status --help | grep -q all-namespaces && own/bin/sluice --version", checkout)


def processes_in(folder: Path) -> list[str]:
    found = []
    for home in Path("/proc").glob("[0-9]*"):
        try:
            command, where = (home / "cmdline").read_bytes().decode().replace("\0", " "), (home / "cwd").readlink()
        except OSError:
            continue
        if str(folder) in command or where.is_relative_to(folder):
            found.append(command)
    return found
