"""Dashboards as values, and the JSON that Grafana reads: https://grafana.com/docs/grafana/latest/visualizations/dashboards/build-dashboards/view-dashboard-json-model/.

Nothing is known of Sluice here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

SCHEMA_VERSION = 42  # Grafana 12; later ones migrate it when they load it
COLUMNS = 24
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and how a series is called: a template of labels in `{{ }}`, or in a table the column's title. `unit` is a column's."""

    expr: str
    legend: str = ""
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture.

    Attributes:
        kind: `timeseries`, `stat` (the last value) or `table` (a row for each set of labels, a column for each query).
        unit: as Grafana names it, such as `s`, `ms`, `bytes`, `percentunit`.
        size: columns of 24, and rows of 30 pixels.
        limits: from which value on it is orange, and red. Reversed, red is below the second.
        link: where a row of a table leads.
    """

    title: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    unit: str = "short"
    size: tuple[int, int] = (8, 8)
    limits: tuple[float, float] | None = None
    stacked: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below one heading, from left to right."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top: the values that `label` has in the series of `selector`. `several` adds "All"."""

    name: str
    selector: str
    label: str
    several: bool = False


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One page. `uid` is a part of its address, and the name of its file."""

    uid: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...] = field(default=())

    def panels(self) -> Iterator[Panel]:
        """All of them, in their order."""
        for row in self.rows:
            yield from row.panels


def document(dashboard: Dashboard, describe: Callable[[Panel], str]) -> Json:
    """What Grafana imports; `describe` gives the text of a panel's tooltip."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.text,
        "tags": ["sluice"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,  # one cross-hair over all panels
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "links": [{"type": "dashboards", "title": "Sluice", "tags": ["sluice"], "asDropdown": True, "includeVars": True, "keepTime": True}],
        "templating": {"list": [_source(), *(_variable(each) for each in dashboard.variables)]},
        "annotations": {"list": []},
        "panels": list(_placed(dashboard, describe)),
    }


def _source() -> Json:
    return {"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> Json:
    query = f"label_values({variable.selector}, {variable.label})"
    every = {"multi": True, "includeAll": True, "allValue": ".+", "current": {"text": ["All"], "value": ["$__all"]}} if variable.several else {}
    return {
        "name": variable.name,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": variable.name},
        "refresh": 2,  # when the time range changes
        "sort": 1,
        **every,
    }


def _placed(dashboard: Dashboard, describe: Callable[[Panel], str]) -> Iterator[Json]:
    top, number = 0, 0
    for row in dashboard.rows:
        number += 1
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}, "panels": []}
        top, left, height = top + 1, 0, 0
        for panel in row.panels:
            width, tall = panel.size
            if left + width > COLUMNS:
                top, left, height = top + height, 0, 0
            number += 1
            yield {"id": number, "gridPos": {"x": left, "y": top, "w": width, "h": tall}, "description": describe(panel), **_panel(panel)}
            left, height = left + width, max(height, tall)
        top += height


def _panel(panel: Panel) -> Json:
    return {
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "targets": [_target(panel, query, _letter(number)) for number, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _columns(panel) if panel.kind == "table" else []},
        "options": OPTIONS[panel.kind],
        **({"transformations": _joined(panel)} if panel.kind == "table" else {}),
    }


OPTIONS: dict[str, Json] = {
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {"colorMode": "value", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}},
    "table": {"cellHeight": "sm", "showHeader": True},
}


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _target(panel: Panel, query: Query, letter: str) -> Json:
    shape = {"format": "table", "instant": True, "range": False} if panel.kind == "table" else {"range": True, "legendFormat": query.legend}
    return {"refId": letter, "datasource": SOURCE, "editorMode": "code", "expr": query.expr, **shape}


def _defaults(panel: Panel) -> Json:
    filled = {"fillOpacity": 20 if panel.stacked else 0, "showPoints": "never", "stacking": {"mode": "normal" if panel.stacked else "none"}}
    custom = {"custom": filled} if panel.kind == "timeseries" else {}
    return {"unit": panel.unit, **({} if panel.limits is None else _thresholds(*panel.limits)), **({"min": 0} if panel.stacked else {}), **custom}


def _thresholds(orange: float, red: float) -> Json:
    worse = [{"color": "green", "value": None}, {"color": "orange", "value": orange}, {"color": "red", "value": red}]
    better = [{"color": "red", "value": None}, {"color": "orange", "value": red}, {"color": "green", "value": orange}]
    return {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": worse if orange <= red else better}}


def _columns(panel: Panel) -> list[Json]:
    """Units of the columns, and the link on each cell."""
    units = [
        {"matcher": {"id": "byName", "options": query.legend}, "properties": [{"id": "unit", "value": query.unit}]}
        for query in panel.queries
        if query.unit != panel.unit
    ]
    link = {"id": "links", "value": [{"title": "Open", "url": panel.link}]}
    return [*units, *([{"matcher": {"id": "byName", "options": "name"}, "properties": [link]}] if panel.link else [])]


def _joined(panel: Panel) -> list[Json]:
    names = {f"Value #{_letter(number)}": query.legend for number, query in enumerate(panel.queries)}
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}}]
