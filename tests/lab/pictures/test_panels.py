"""Panels of the chart's own dashboards have a place of their own, and values are written in their units."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.pictures.panels import DrawnPanel, legend, panels
from sluice_lab.pictures.units import written

FILES = sorted((places.REPO / "charts" / "sluice" / "files" / "dashboards").glob("*.json"))


def apart(one: DrawnPanel, other: DrawnPanel) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return beside or one.y + one.height <= other.y or other.y + other.height <= one.y


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_panel_covers_another(path: Path) -> None:
    found = panels(json.loads(path.read_text(encoding="utf-8")))
    assert found
    assert all(apart(one, other) for one, other in combinations(found, 2))
    for panel in found:
        assert bool(panel.targets) == (panel.kind != "row"), panel.title
        assert written(1, panel.unit)


def test_a_legend_has_the_labels_of_its_series() -> None:
    assert legend("95 % {{result}}", {"result": "ok"}) == "95 % ok"
    assert legend("{{namespace}}/{{name}}", {"name": "orders"}) == "/orders"
    assert legend("behind", {}) == "behind"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "s", "0 s"),
        (90, "s", "1.5 min"),
        (0.02, "s", "20 ms"),
        (7_000, "ms", "7 s"),
        (1, "bool_yes_no", "yes"),
        (0, "bool_yes_no", "no"),
        (0.5, "percentunit", "50 %"),
        (2_500, "Bps", "2.5 kB/s"),
        (12, "short", "12"),
        (1_200_000, "short", "1.2M"),
        (999.9, "short", "1k"),
        (0.99999, "s", "1 s"),
        (59.99, "s", "1 min"),
    ],
)
def test_a_value_is_written_in_its_unit(value: float, unit: str, text: str) -> None:
    assert written(value, unit) == text


def test_a_unit_that_is_unknown_is_named() -> None:
    """So that a new panel does not get a bare number."""
    with pytest.raises(ValueError, match="furlongs"):
        written(1, "furlongs")
