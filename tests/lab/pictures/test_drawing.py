"""A picture has each panel's title, value and curves, and is refused without data."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from sluice_lab.pictures.drawing import Series, picture
from sluice_lab.pictures.panels import DrawnPanel, PanelQuery

STAT = DrawnPanel("stat", "Behind", "s", 0, 0, 200, 120, ())
CURVES = DrawnPanel("timeseries", "Records <a second>", "short", 200, 0, 400, 240, ())
RISING = (Series("orders", ((0, 0), (60, 90))),)


def test_a_picture_has_titles_values_and_curves() -> None:
    """It is well-formed, and the last value of a stat has its unit."""
    drawn = picture((STAT, CURVES), lambda _: RISING)
    root = ET.fromstring(drawn)  # noqa: S314 - of our own
    words = {"".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Behind", "1.5 min", "Records <a second>", "orders", "90", "45", "0"} | {"0 s", "30 s", "1 min"} <= words
    (curve,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    assert curve.get("points") == "262.0,194.0 586.0,38.0"


def test_a_curve_is_not_drawn_where_its_series_has_no_points() -> None:
    """Some steps without one: it ends there, and begins again."""
    gone = Series("orders", ((0, 1), (1, 1), (2, 1), (60, 1), (61, 1)))
    root = ET.fromstring(picture((CURVES,), lambda _: (gone,)))  # noqa: S314 - of our own
    curves = [len((curve.get("points") or "").split()) for curve in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert curves == [3, 2]


def test_the_same_answers_give_the_same_picture() -> None:
    """Byte for byte."""
    assert picture((STAT, CURVES), lambda _: RISING) == picture((STAT, CURVES), lambda _: RISING)


def test_a_panel_without_data_is_refused() -> None:
    """So that no picture shows an empty panel."""
    with pytest.raises(ValueError, match="Behind: no data"):
        picture((STAT,), lambda _: (Series("", ()),))


def test_a_kind_that_cannot_be_drawn_is_named() -> None:
    """A heat map is one."""
    with pytest.raises(ValueError, match="Waits: a panel of kind heatmap"):
        picture((DrawnPanel("heatmap", "Waits", "short", 0, 0, 9, 9, ()),), lambda _: RISING)


def test_a_table_has_a_row_for_each_name_and_units_of_its_columns() -> None:
    """A cell without a value stays empty."""
    table = DrawnPanel("table", "Each consumer", "short", 0, 0, 900, 270, (PanelQuery("a", "behind", "s"), PanelQuery("b", "ready", "bool_yes_no")))
    cells = (
        Series("default/orders", ((0, 90),), "behind"),
        Series("default/orders", ((0, 1),), "ready"),
        Series("default/views", ((0, 0),), "ready"),
    )
    root = ET.fromstring(picture((table,), lambda _: cells))  # noqa: S314 - of our own
    words = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words == ["Each consumer", "behind", "ready", "default/orders", "1.5 min", "yes", "default/views", "no"]
