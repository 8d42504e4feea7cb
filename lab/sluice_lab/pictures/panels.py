"""The panels of a dashboard's JSON, with their position in pixels. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COLUMN, LINE = 50, 30
"""Pixels of a column (a dashboard has 24) and of a line of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """A query, and Grafana's template of its legend."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class DrawnPanel:
    """Position and size are pixels; `kind` is row, stat, table or timeseries."""

    kind: str
    title: str
    unit: str
    x: int
    y: int
    width: int
    height: int
    targets: tuple[PanelQuery, ...]


def panels(board: Mapping[str, Any]) -> tuple[DrawnPanel, ...]:
    """All panels of a dashboard, rows included, in the order of the JSON."""
    return tuple(_panel(one) for one in board["panels"])


def legend(template: str, labels: Mapping[str, str]) -> str:
    """A legend with the labels of a series put in; a label that is missing leaves nothing, as in Grafana."""
    parts = template.split("{{")
    filled = [labels.get(name.strip(), "") + rest for name, _, rest in (part.partition("}}") for part in parts[1:])]
    return parts[0] + "".join(filled)


def _panel(one: Mapping[str, Any]) -> DrawnPanel:
    at = one["gridPos"]
    unit = one.get("fieldConfig", {}).get("defaults", {}).get("unit", "short")
    targets = tuple(PanelQuery(each["expr"], each.get("legendFormat", "")) for each in one.get("targets", ()))
    return DrawnPanel(one["type"], one["title"], unit, at["x"] * COLUMN, at["y"] * LINE, at["w"] * COLUMN, at["h"] * LINE, targets)
