"""Runs programs to their end, or in the background. A background program is stopped by its process id, never by name.

`<work>/run/<name>.json` records its pid and start time. So another invocation can stop exactly this process, and no later one with the same pid.
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import CommandFailedError, LabError


@dataclass(frozen=True)
class Program:
    """A program to run in the background. With `dies_with_parent` the kernel ends it when the thread that started it ends."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    dies_with_parent: bool = True


@dataclass(frozen=True)
class Running:
    """A program in the background, in a process group of its own."""

    name: str
    pid: int
    began: str
    record: Path
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, compare=False, repr=False)

    def alive(self) -> bool:
        """Whether it still runs. If it is a child of this process, this reaps it."""
        if self.process is not None:
            return self.process.poll() is None
        return _began(self.pid) == self.began

    def stop(self, grace: float = 10) -> None:
        """Stop its process group: SIGTERM, then SIGKILL after `grace` seconds."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.alive():
                break
            os.killpg(self.pid, number)
            poll(lambda: not self.alive(), seconds=grace)
        self.record.unlink(missing_ok=True)


def start(work: Path, program: Program) -> Running:
    """Start a program in the background. Its output goes to `<work>/logs/<name>.log`."""
    log = places.made(work / "logs") / f"{program.name}.log"
    prefix = ("setpriv", "--pdeathsig", "TERM") if program.dies_with_parent and shutil.which("setpriv") else ()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, *program.argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **program.env},
            cwd=program.cwd,
            start_new_session=True,
        )
    record = places.made(work / "run") / f"{program.name}.json"
    began = _began(process.pid)
    record.write_text(json.dumps({"pid": process.pid, "began": began}))
    return Running(program.name, process.pid, began, record, log, process)


def kill_tree(running: Running) -> None:
    """Kill a program and all its descendants at once, like a power cut. None of them can release or report anything."""
    if not running.alive():
        return
    signal_tree(running, signal.SIGKILL)
    running.stop()


def signal_tree(running: Running, number: signal.Signals) -> None:
    """Send a signal to a program and all its descendants."""
    for pid in [running.pid, *_descendants(running.pid)]:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it ended with its parent


def _descendants(pid: int) -> list[int]:
    """The process ids of all descendants."""
    pairs = [line.split() for line in run("ps", "-A", "-o", "pid=,ppid=").splitlines()]
    children = [int(child) for child, parent in pairs if int(parent) == pid]
    return [*children, *(below for child in children for below in _descendants(child))]


def recorded(work: Path) -> list[Running]:
    """The running background programs of all invocations. Records of programs that have ended are removed."""
    found = []
    for record in sorted((work / "run").glob("*.json")):
        kept = json.loads(record.read_text())
        name = record.stem
        running = Running(name, kept["pid"], kept["began"], record, work / "logs" / f"{name}.log")
        if running.alive():
            found.append(running)
        else:
            record.unlink(missing_ok=True)
    return found


def run(*argv: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, seconds: float = 1200) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        CommandFailedError: it ended with an error, or did not end within `seconds`.
        LabError: the program does not exist.
    """
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(f"{' '.join(argv[:4])} … did not end within {seconds:.0f} s") from error
    if done.returncode != 0:
        raise CommandFailedError(f"{' '.join(argv[:6])}: exit {done.returncode}\n{tail(done.stdout + done.stderr)}")
    return done.stdout


def watch(
    argv: Sequence[str],
    said: Callable[[str], bool | None],
    *,
    silent: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end, however long it takes. `said` is called with each line of its output as it comes.

    A line for which `said` returns True is progress: an error's text leaves it out.

    Raises:
        CommandFailedError: it ended with an error, or printed nothing for `silent` seconds.
        LabError: the program does not exist.
    """
    environment = {**os.environ, **(env or {})}
    try:
        process = subprocess.Popen(
            argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed: {error}") from error
    try:
        last = _read_lines(process, said, silent)
    except queue.Empty:
        raise CommandFailedError(f"{' '.join(argv[:4])} … printed nothing for {silent:.0f} s, and was ended") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise CommandFailedError(f"{' '.join(argv[:6])}: exit {process.returncode}\n{tail(''.join(last))}")


def _read_lines(process: subprocess.Popen[str], said: Callable[[str], bool | None], silent: float) -> Sequence[str]:
    """Read until the program ends; returns its last lines. Raises queue.Empty if it is silent for that long."""
    lines: queue.Queue[str | None] = queue.Queue()
    output = process.stdout

    def read() -> None:
        for line in output or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    last: deque[str] = deque(maxlen=40)
    while (line := lines.get(timeout=silent)) is not None:
        if not said(line.rstrip()):
            last.append(line)
    process.wait()
    return last


def pipe(source: Sequence[str], sink: Sequence[str]) -> None:
    """Run `source | sink` until both end.

    Raises:
        CommandFailedError: one of them ended with an error.
    """
    with subprocess.Popen(source, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as first:
        done = subprocess.run(sink, stdin=first.stdout, capture_output=True, text=True, check=False)
    if first.returncode or done.returncode:
        raise CommandFailedError(f"{source[0]} | {' '.join(sink[:4])} failed\n{tail(done.stdout + done.stderr)}")


def answers(*argv: str, seconds: float = 15) -> bool:
    """Whether a program exists and ends without an error within `seconds`."""
    try:
        run(*argv, seconds=seconds)
    except LabError:
        return False
    return True


def poll(ready: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Call `ready` until it returns True; returns False after `seconds`."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True


def tail(text: str, lines: int = 15) -> str:
    """The last lines of a program's output, which usually name the error."""
    return "\n".join(text.strip().splitlines()[-lines:])


def _began(pid: int) -> str:
    """The start time of a process, in the system's format; empty if it has ended. A pid may be reused, but not with its start time."""
    if Path("/proc/self/stat").exists():
        try:
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if state == "Z" else fields[18]  # starttime, in ticks since boot
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()
