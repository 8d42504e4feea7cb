"""CPU seconds of a process and all it started, as Linux counts them; what already ended is counted where its parent waited for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
JAVA = "java"


@dataclass(frozen=True)
class Process:
    """One of /proc: its parent, its command's name, and what it and its waited-for children used, ticks."""

    parent: int
    name: str
    ticks: int


def cpu_seconds(root: int, without: int = 0) -> float:
    """User and system time of a tree, in seconds; if told so, without that of another tree in it."""
    found = _processes()
    return sum(one.ticks for pid, one in found.items() if _within(found, pid, root) and not (without and _within(found, pid, without))) / TICKS


def cpu_by_kind(root: int) -> dict[str, float]:
    """CPU seconds of a tree: of its `jvm`, of the `workers` below the JVM, of the rest (the `driver`'s Python), and of all, `cpu`."""
    found = _processes()
    used = dict.fromkeys(("driver", "jvm", "workers"), 0.0)
    for pid, one in found.items():
        if _within(found, pid, root):
            used[_kind(found, pid)] += one.ticks / TICKS
    return used | {"cpu": sum(used.values())}


def programs(root: int) -> dict[int, tuple[str, float]]:
    found = _processes()
    return {pid: (_command(pid), one.ticks / TICKS) for pid, one in found.items() if _within(found, pid, root)}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _kind(found: dict[int, Process], pid: int) -> str:
    if found[pid].name == JAVA:
        return "jvm"
    return "workers" if any(found[above].name == JAVA for above in _above(found, pid)) else "driver"


def _processes() -> dict[int, Process]:
    return dict(filter(None, map(_read, Path("/proc").glob("[0-9]*/stat"))))


def _read(stat: Path) -> tuple[int, Process] | None:
    try:
        head, _, tail = stat.read_text().rpartition(")")
    except OSError:
        return None  # it ended meanwhile
    fields = tail.split()
    return int(stat.parent.name), Process(int(fields[1]), head.partition("(")[2], sum(map(int, fields[11:15])))


def _above(found: dict[int, Process], pid: int) -> Iterator[int]:
    pid = found[pid].parent
    while pid in found:
        yield pid
        pid = found[pid].parent


def _within(found: dict[int, Process], pid: int, root: int) -> bool:
    return pid == root or root in _above(found, pid)
