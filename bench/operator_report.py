"""What was measured, beside what was aimed at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from operator_audit import Writes
from operator_process import Spent
from rich.console import Console
from rich.table import Table

FIRST_SECONDS, RSS_MIB, STEADY_CORE, WRITES, EVENTS = 30, 200, 0.05, 2, 10_000
STEPS = {"start": 1.1}  # changes that one is made of: every tenth start has a migration before


@dataclass(frozen=True)
class Steady:
    """A state in which nothing changes but figures: what the operator takes; rates are a second, of all resources together.

    Attributes:
        spent: CPU and memory.
        reports: that drivers wrote.
        events: of watches, taken in by the operator.
        passes: over one resource.
        reads: calls that read.
        writes: by what was written.
    """

    spent: Spent
    reports: float
    events: float
    passes: float
    reads: float
    writes: Writes


@dataclass(frozen=True)
class Change:
    """So many resources were changed: writes by kind, CPU seconds of the operator, seconds until it was so for all."""

    resources: int
    writes: Writes
    cpu: float
    seconds: float


@dataclass
class Figures:
    """Everything. Seconds and MiB; `*_cpu` is the operator's own."""

    resources: int = 0
    pods: int = 0
    first: float = 0
    first_cpu: float = 0
    ready: float = 0
    ready_cpu: float = 0
    rss: float = 0
    peak: float = 0
    again: float = 0
    again_cpu: float = 0
    again_peak: float = 0
    load: list[float] = field(default_factory=list)
    steady: dict[str, Steady] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)


@dataclass(frozen=True)
class Aim:
    text: str
    seen: str
    met: bool


def aims(figures: Figures) -> Iterator[Aim]:
    """Those of issue 6."""
    yield Aim(f"first reconcile of all ≤ {FIRST_SECONDS} s", f"{figures.first:.0f} s, CPU {figures.first_cpu:.0f} s", figures.first <= FIRST_SECONDS)
    most = max(figures.peak, figures.again_peak)
    yield Aim(f"memory ≤ {RSS_MIB} MiB", f"{most:.0f} MiB at most", most <= RSS_MIB)
    quiet = figures.steady["quiet"].spent.core
    yield Aim(f"steady CPU ≤ {STEADY_CORE:.0%} of a core, drivers report every 30 s", f"{quiet:.1%}", quiet <= STEADY_CORE)
    busy = figures.steady["busy"]
    absorbed = busy.events * 60 >= EVENTS and busy.events >= 0.98 * busy.reports
    yield Aim(f"{EVENTS} events a minute absorbed", f"{busy.events * 60:.0f} a minute, {busy.spent.core:.0%} of a core", absorbed)
    for name, change in figures.changes.items():
        status = change.writes["status"] / change.resources
        most = WRITES * STEPS.get(name, 1)
        yield Aim(f"{name}: status writes ≤ {most:.1f} a resource", f"{status:.2f}", status <= most + 0.05)


def printed(figures: Figures, json: Path | None) -> int:
    """Tables, and a JSON document where one is wanted; 1 if an aim is missed."""
    judged = list(aims(figures))
    console = Console(width=150)
    for table in (_times(figures), _steady(figures), _writes(figures), _aims(judged)):
        console.print(table)
    console.print(f"Load of the machine, {os.cpu_count()} cores, the bench's own included: {min(figures.load):.0f} to {max(figures.load):.0f}")
    if json is not None:
        json.write_bytes(orjson.dumps({"figures": figures, "aims": judged}, option=orjson.OPT_INDENT_2))
    return 0 if all(aim.met for aim in judged) else 1


def _times(figures: Figures) -> Table:
    table = _table(f"{figures.resources} resources, {figures.pods} pods", "", "seconds", "CPU seconds", "MiB")
    table.add_row("start until every driver or migration is made", f"{figures.first:.1f}", f"{figures.first_cpu:.1f}", "")
    table.add_row("until all are ready (nodes and drivers are simulated)", f"{figures.ready:.1f}", f"{figures.ready_cpu:.1f}", f"{figures.rss:.0f}")
    table.add_row("the most there was", "", "", f"{figures.peak:.0f}")
    table.add_row("started anew, until all were looked over", f"{figures.again:.1f}", f"{figures.again_cpu:.1f}", f"{figures.again_peak:.0f}")
    return table


def _steady(figures: Figures) -> Table:
    heads = ("of a core", "MiB", "reports/s", "events/s", "passes/s", "reads/s", "writes/s")
    table = _table("Nothing changes but figures", "", *heads)
    for name, one in figures.steady.items():
        rates = (one.reports, one.events, one.passes, one.reads, one.writes.total() / one.spent.seconds)
        table.add_row(name, f"{one.spent.core:.1%}", f"{one.spent.rss:.0f}", *(f"{rate:.1f}" for rate in rates))
    return table


def _writes(figures: Figures) -> Table:
    kinds = ("status", "finalizer", "pods", "jobs", "events", "refused")
    table = _table("Writes a changed resource, as the API server's audit log has them", "", *kinds, "CPU ms", "seconds for all")
    for name, change in figures.changes.items():
        cells = (f"{change.writes[kind] / change.resources:.2f}" for kind in kinds)
        table.add_row(f"{name} of {change.resources}", *cells, f"{change.cpu / change.resources * 1000:.0f}", f"{change.seconds:.1f}")
    return table


def _aims(judged: list[Aim]) -> Table:
    table = _table("Aims", "", "seen", "")
    for aim in judged:
        table.add_row(aim.text, aim.seen, "[green]met[/]" if aim.met else "[red]missed[/]")
    return table


def _table(title: str, first: str, *heads: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for head in heads:
        table.add_column(head, justify="right")
    return table
