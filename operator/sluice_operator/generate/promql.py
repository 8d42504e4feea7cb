"""The queries of the dashboards, and what is wrong with one by the metrics that there are.

A window is Grafana's `$__rate_interval`: four scrapes at least.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WINDOW = "$__rate_interval"
GIVEN_BY_THE_SCRAPE = {"namespace", "pod", "sluice_dev_consumer"}
SERIES = re.compile(r"\b(sluice_(?!dev_)\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class KnownMetric:
    """One metric: its name as scraped (of a histogram without `_bucket`), its type, its labels, and what it says."""

    name: str
    kind: str
    labels: frozenset[str]
    help: str


def latest(metric: str, selector: str = "", by: str = "namespace, name") -> str:
    """A gauge, joined over pods: another replica may lead now, and another driver run."""
    return f"max by ({by}) ({_series(metric, selector)})"


def rate(metric: str, selector: str = "", by: str = "", window: str = WINDOW) -> str:
    """How fast a counter grows, a second."""
    return f"sum{_by(by)} (rate({_series(metric, selector)}[{window}]))"


def happened(metric: str, selector: str = "", by: str = "") -> str:
    """How often, in a window. A counter with a label appears with its first event, and `increase` counts from the second."""
    series = _series(metric, selector)
    return f"sum{_by(by)} (({series} unless {series} offset {WINDOW}) or increase({series}[{WINDOW}]))"


def quantile(part: float, metric: str, selector: str = "", by: str = "") -> str:
    """Of a histogram."""
    inner = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, {rate(f'{metric}_bucket', selector, inner)})"


def mean(metric: str, selector: str = "", by: str = "", window: str = WINDOW) -> str:
    """Of a histogram: exact, unlike a quantile. What seldom happens needs a longer window: without an event there is no mean."""
    return f"{rate(f'{metric}_sum', selector, by, window)} / {rate(f'{metric}_count', selector, by, window)}"


def _series(metric: str, selector: str) -> str:
    return f"{metric}{{{selector}}}" if selector else metric


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""


def named(expression: str, known: Mapping[str, KnownMetric]) -> list[KnownMetric]:
    """The metrics of an expression, each once, in their order.

    Raises:
        ValueError: there is no such metric, or it has no such label.
    """
    found: dict[str, KnownMetric] = {}
    allowed: set[str] = set()
    for name, selector in SERIES.findall(expression):
        family, labels = _family(name, known)
        if unknown := set(re.findall(r"(\w+)\s*[=!]", selector)) - labels:
            raise ValueError(f"{name} has no label {', '.join(sorted(unknown))}: {expression}")
        found[family.name] = family
        allowed |= labels
    if unknown := set(_grouped(expression)) - allowed:
        raise ValueError(f"no metric has the label {', '.join(sorted(unknown))}: {expression}")
    return list(found.values())


def _family(name: str, known: Mapping[str, KnownMetric]) -> tuple[KnownMetric, set[str]]:
    """The metric of a series, and the labels of that series."""
    histogram, _, part = name.rpartition("_")
    for family in (known.get(name), known.get(histogram)):
        parts = {"bucket", "sum", "count"}
        if family is not None and (family.kind == "histogram") == (family.name == histogram and part in parts):
            return family, {*family.labels, *GIVEN_BY_THE_SCRAPE, *(["le"] if part == "bucket" else [])}
    raise ValueError(f"{name}: there is no such metric")


def _grouped(expression: str) -> Iterator[str]:
    for labels in GROUPED.findall(expression):
        yield from re.findall(r"\w+", labels)
