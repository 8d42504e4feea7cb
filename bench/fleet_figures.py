"""What `pool_fleet` saw, as figures: waits, CPU, memory, take-overs, and an account of every record. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleet_cluster import Line, Usage

from sluice_lab.site.bench_fleet import ALONE, POOL

Figures = dict[str, float]
Lines = Mapping[str, Sequence[Line]]


@dataclass(frozen=True)
class Window:
    """Between two times, seconds since 1970."""

    began: float
    ended: float

    def has(self, at: float) -> bool:
        return self.began <= at < self.ended

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def stored(lines: Sequence[Line]) -> dict[int, Line]:
    """By batch, the line that counts: the last one."""
    return {line.batch: line for line in lines}


def first_at(lines: Sequence[Line]) -> dict[int, float]:
    found: dict[int, float] = {}
    for line in lines:
        for n in line.numbers:
            found.setdefault(n, line.at)
    return found


def waits(put_at: Mapping[int, float], lines: Sequence[Line], window: Window) -> list[float]:
    """Milliseconds from put to sink, of records that were put in the window. One that is not there yet is left out."""
    there = first_at(lines)
    return [(there[n] - at) * 1000 for n, at in put_at.items() if window.has(at) and n in there]


def spread(values: Sequence[float]) -> Figures:
    if not values:
        return {"median": 0.0, "p95": 0.0, "most": 0.0, "count": 0}
    p95 = statistics.quantiles(values, n=20, method="inclusive")[18] if len(values) > 1 else values[0]
    return {"median": statistics.median(values), "p95": p95, "most": max(values), "count": len(values)}


def batches(lines: Iterable[Sequence[Line]], window: Window) -> int:
    return sum(len({line.batch for line in each if window.has(line.at)}) for each in lines)


def cpu(before: Mapping[str, Usage], after: Mapping[str, Usage], owner: str) -> float:
    """CPU of all pods of an owner that were there all the time, as a share of a core. Each pod was looked at at times of its own."""
    pairs = [(used, after[pod]) for pod, used in before.items() if used.owner == owner and pod in after]
    return sum((last.cpu - first.cpu) / (last.at - first.at) for first, last in pairs if last.at > first.at)


def memory(seen: Sequence[Mapping[str, Usage]], owner: str, role: str) -> Figures:
    """MiB of a pod: working set and resident memory, medians over looks and pods; and the largest working set."""
    found = [used for look in seen for used in look.values() if (used.owner, used.role) == (owner, role)]
    if not found:
        return {"working": 0.0, "rss": 0.0, "most": 0.0}
    return {
        "working": statistics.median(used.working for used in found),
        "rss": statistics.median(used.rss for used in found),
        "most": max(used.working for used in found),
    }


def pods(look: Mapping[str, Usage]) -> Figures:
    counts = Counter(used.owner for used in look.values())
    return {owner: counts[owner] for owner in (POOL, ALONE)}


def account(put: Mapping[str, Iterable[int]], lines: Lines) -> Figures:
    """Records of each consumer: put, missing, in two batches, and processed again because their batch came again."""
    found: Counter[str] = Counter()
    for name, numbers in put.items():
        kept = Counter(n for line in stored(lines.get(name, [])).values() for n in line.numbers)
        called = Counter(n for line in lines.get(name, []) for n in line.numbers)
        wanted = set(numbers)
        found["put"] += len(wanted)
        found["missing"] += len(wanted - kept.keys())
        found["twice"] += sum(count > 1 for count in kept.values())
        found["unknown"] += len(kept.keys() - wanted)
        found["again"] += sum(count - kept[n] for n, count in called.items())
    return {key: found[key] for key in ("put", "missing", "twice", "unknown", "again")}


def resumed(lines: Sequence[Line], killed: float) -> float | None:
    """Seconds from the kill to the next batch; None: there was none."""
    later = [line.at for line in lines if line.at > killed]
    return min(later) - killed if later else None
