"""The rows of the comparison with KCL: what was counted for each contestant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sluice_lab.generate.markdown import table

Sides = Mapping[str, Mapping[str, float]]
SLUICE, KCL = "sluice", "kcl"


def rows(figures: Mapping[str, Sides], spark: str) -> str:
    """A table of four scenarios; figures by scenario, contestant and name."""
    return table(("scenario", "what is counted", f"Sluice, Spark {spark}", "KCL 3"), _rows(figures))


def _rows(figures: Mapping[str, Sides]) -> Iterator[tuple[str, ...]]:
    yield _row("tip, defaults", "put to processed, ms: median, p90", figures["tip"], _waits)
    yield _row("tip, quick", "the same", figures["quick"], _waits)
    yield _row("catch-up, quick", "records/s, at a shard's limits", figures["catch-up"], lambda of: f"{of['speed']:,.0f}")
    yield _row("", "s from the program's start to the last record", figures["catch-up"], lambda of: f"{of['all']:.0f}")
    yield _row("", "records missing, handed over twice", figures["catch-up"], _account)
    yield _row("reshard, defaults", "records missing, handed over twice", figures["reshard"], _account)
    yield _row("", "children's records before their parents' last", figures["reshard"], lambda of: f"{of['before parents']:,}")
    yield _row("", "longest wait of a record, s", figures["reshard"], lambda of: f"{of['longest']:.1f}")
    yield _row("kill in the middle", "records missing, handed over twice", figures["crash"], _account)
    yield _row("", "s from the kill to the next record", figures["crash"], lambda of: f"{of['next']:.0f}")
    yield _row("", "shards whose replay has the same records", figures["crash"], lambda of: f"{of['same']} of {of['killed']}")
    yield _row("all of it", "records out of order in a shard", figures["order"], lambda of: f"{of['out of order']:,}")


def _row(scenario: str, what: str, sides: Sides, shown: Any) -> tuple[str, ...]:
    return (scenario, what, *(shown(sides[name]) for name in (SLUICE, KCL)))


def _waits(of: Mapping[str, float]) -> str:
    return f"{of['median']:,.0f}, {of['p90']:,.0f}"


def _account(of: Mapping[str, float]) -> str:
    return f"{of['missing']:,}, {of['twice']:,} (of {of['put']:,})"
