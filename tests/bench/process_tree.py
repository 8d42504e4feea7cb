"""CPU seconds of a process and all it started, as Linux counts them; what already ended is counted where its parent waited for it."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int, without: int = 0) -> float:
    """User and system time of a tree, in seconds; if told so, without that of another tree in it."""
    ticks = dict(filter(None, map(_read, Path("/proc").glob("[0-9]*/stat"))))
    return sum(used for pid, (_, used) in ticks.items() if _within(ticks, pid, root) and not (without and _within(ticks, pid, without))) / TICKS


def _read(stat: Path) -> tuple[int, tuple[int, int]] | None:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None  # it ended meanwhile
    return int(stat.parent.name), (int(fields[1]), sum(map(int, fields[11:15])))


def _within(ticks: dict[int, tuple[int, int]], pid: int, root: int) -> bool:
    while pid in ticks and pid != root:
        pid = ticks[pid][0]
    return pid == root
