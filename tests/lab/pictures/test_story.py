"""Pictures of incidents: stored as they are drawn, legends whole, values that can be read, and gaps where there was nothing to scrape."""

from __future__ import annotations

import json
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from sluice_lab import places
from sluice_lab.pictures import story, svg
from sluice_lab.pictures.axes import levels
from sluice_lab.pictures.panels import DrawnPanel, panels
from sluice_lab.pictures.story import Recording, Series
from sluice_lab.pictures.units import written

SVG = "{http://www.w3.org/2000/svg}"
BOARD = places.REPO / "charts" / "sluice" / "files" / "dashboards" / "sluice-consumer.json"
PANELS = panels(json.loads(BOARD.read_text(encoding="utf-8")))
NAMES = sorted(path.stem for path in story.RECORDED.glob("*.json"))
PANEL = DrawnPanel("timeseries", "Records <a second>", "short", 0, 0, 8, 8, ())
GONE = Series("orders", ((0, 1), (1, 1), (2, 1), (40, 1), (41, 1)))
CRASH = Recording("a <crash>", 60, ((10, "kill -9 of a driver"), (12, "another one starts")), {"Records <a second>": (GONE,)})


def texts(drawn: str) -> list[ET.Element]:
    return list(ET.fromstring(drawn).iter(f"{SVG}text"))  # noqa: S314 - of our own


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_picture_is_what_the_recording_gives(name: str) -> None:
    """With the panels of today's dashboard. `make generate` writes it."""
    drawn = story.draw(story.recorded(name), PANELS)
    assert (places.REPO / "docs" / "pictures" / "incidents" / f"{name}.svg").read_text(encoding="utf-8") == drawn


@pytest.mark.parametrize("name", NAMES)
def test_every_curve_has_its_whole_name_inside_of_the_picture(name: str) -> None:
    recording = story.recorded(name)
    found = texts(story.draw(recording, PANELS))
    names = [element for element in found if float(element.get("x", 0)) > story.RIGHT and element.get("text-anchor") == "start"]
    wanted = [each.name for series in recording.answers.values() for each in series]
    assert [element.text for element in names] == wanted
    assert all(float(element.get("x", 0)) + svg.LETTER * len(element.text or "") < story.WIDTH for element in names)
    heights = [float(element.get("y", 0)) for element in names]
    assert all(below - above >= story.LINE for above, below in pairwise(heights))


@pytest.mark.parametrize("name", NAMES)
def test_no_value_stands_twice_on_an_axis(name: str) -> None:
    for title, series in story.recorded(name).answers.items():
        values = [value for each in series for _, value in each.points]
        unit = next(panel.unit for panel in PANELS if panel.title == title)
        shown = [written(level, unit) for level in levels(min(values), max(values), unit)]
        assert len(set(shown)) == len(shown) > 1, title


@pytest.mark.parametrize(
    ("low", "high", "unit", "shown"),
    [
        (0, 1, "short", ["0", "1"]),
        (1, 2, "short", ["0", "1", "2"]),
        (0, 3, "short", ["0", "1", "2", "3"]),
        (0, 110, "short", ["0", "50", "100", "150"]),
        (61, 93, "short", ["60", "70", "80", "90", "100"]),
        (0, 0, "short", ["0", "1"]),
        (0, 23_000, "ms", ["0 s", "10 s", "20 s", "30 s"]),
        (0, 0, "ms", ["0 s", "1 s"]),
        (0.2, 0.7, "s", ["0 s", "200 ms", "400 ms", "600 ms", "800 ms"]),
    ],
)
def test_an_axis_has_few_round_values(low: float, high: float, unit: str, shown: list[str]) -> None:
    assert [written(level, unit) for level in levels(low, high, unit)] == shown


def test_a_curve_ends_where_there_was_nothing_to_scrape() -> None:
    root = ET.fromstring(story.draw(CRASH, (PANEL,)))  # noqa: S314 - of our own
    assert [len((curve.get("points") or "").split()) for curve in root.iter(f"{SVG}polyline")] == [3, 2]


def test_marks_that_follow_closely_have_rows_of_their_own() -> None:
    heights = {element.text: float(element.get("y", 0)) for element in texts(story.draw(CRASH, (PANEL,)))}
    assert heights["another one starts"] >= heights["kill -9 of a driver"] + story.LINE


def test_a_panel_without_data_is_refused() -> None:
    with pytest.raises(ValueError, match="Records <a second>: no data"):
        story.draw(Recording("", 60, (), {"Records <a second>": (Series("", ()),)}), (PANEL,))


def test_a_panel_that_the_dashboard_lost_is_named() -> None:
    """The incidents are recorded again then."""
    with pytest.raises(ValueError, match=r"Records <a second>: the dashboard has no such panel; run python -m sluice_lab\.demo\.incidents"):
        story.draw(CRASH, ())
