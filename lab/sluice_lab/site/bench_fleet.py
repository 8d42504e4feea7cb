"""The rows of a pool beside drivers of their own, as `bench/pool_fleet.py` measured both. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sluice_lab.generate.markdown import table

POOL, ALONE = "pool", "alone"
GIB = 1024


def rows(figures: Mapping[str, Any]) -> str:
    """A table: the pool, a driver of its own for each consumer, and the ratio."""
    return table(("", f"a pool of {figures['members']}", "a driver each", "ratio"), _rows(figures))


def _rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    memory, quiet, cpu = figures["memory"], figures["quiet"], figures["cpu"]
    members = figures["members"]
    alone = figures["pods"][ALONE] / figures["alone"]
    yield "pods", f"{figures['pods'][POOL]:.0f}", f"{alone * members:.0f}", _ratio(figures["pods"][POOL], alone * members)
    for role in ("driver", "executor"):
        yield _pair(f"a {role}'s working set, MiB".replace("a e", "an e"), memory[POOL][role]["working"], memory[ALONE][role]["working"])
    whole = {owner: _whole(memory[owner], count) / GIB for owner, count in ((POOL, figures["pods"][POOL]), (ALONE, alone))}
    yield _pair("all pods, GiB", whole[POOL], whole[ALONE] * members, digits=1)
    yield _pair("put to sink, ms: median, on the same streams", quiet["same"]["median"], quiet[ALONE]["median"])
    yield _pair("p95", quiet["same"]["p95"], quiet[ALONE]["p95"])
    yield "put to sink, ms: median, p95, on all streams", _waits(quiet[POOL]), "", ""
    yield _pair("CPU-ms a batch, with probes of idle streams", cpu[POOL], cpu[ALONE])
    troubled = figures["troubled"]
    yield "put to sink, ms: median, p95, while three are in trouble", _waits(troubled[POOL]), _waits(troubled[ALONE]), ""
    yield "longest wait, s: before that, and during it", f"{quiet[POOL]['most'] / 1000:.1f}, {troubled[POOL]['most'] / 1000:.1f}", "", ""
    killed = figures["killed"]
    for what, goal in (("taken", "until its lease is taken"), ("resumed", "to its next batch")):
        words = f"s from a kill of the driver {goal}: median, last"
        yield words, *(f"{killed[owner][what]['median']:.0f}, {killed[owner][what]['most']:.0f}" for owner in (POOL, ALONE)), ""
    for owner, of in figures["account"].items():
        yield f"records put, missing, twice: {owner}", f"{of['put']:,.0f}, {of['missing']:,.0f}, {of['twice']:,.0f}", "", ""


def _whole(of: Mapping[str, Mapping[str, float]], pods: float) -> float:
    """MiB of a driver and its executors."""
    return of["driver"]["working"] + (pods - 1) * of["executor"]["working"]


def _waits(of: Mapping[str, float]) -> str:
    return f"{of['median']:,.0f}, {of['p95']:,.0f}"


def _pair(what: str, pool: float, alone: float, digits: int = 0) -> tuple[str, ...]:
    return what, f"{pool:,.{digits}f}", f"{alone:,.{digits}f}", _ratio(pool, alone)


def _ratio(pool: float, alone: float) -> str:
    return f"{pool / alone:.2f}" if alone else ""
