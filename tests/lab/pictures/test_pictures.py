"""Stored pictures are the generators', and a query that draws nothing counts as none."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.pictures import overview, story
from sluice_lab.pictures.answers import Prometheus, choose, filled
from sluice_lab.pictures.panels import DrawnPanel, panels

BOARDS = places.REPO / "charts" / "sluice" / "files" / "dashboards"
FILES = sorted(BOARDS.glob("*.json"))
PANELS = panels(json.loads((BOARDS / "sluice-consumer.json").read_text(encoding="utf-8")))
DRAWN = {
    "docs/start/picture.svg": overview.drawn(),
    **{f"docs/pictures/incidents/{path.stem}.svg": story.draw(story.recorded(path.stem), PANELS) for path in sorted(story.RECORDED.glob("*.json"))},
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_stored_picture_is_the_generators(name: str) -> None:
    """With the panels of today's dashboard. `make generate` writes it."""
    assert (places.REPO / name).read_text(encoding="utf-8") == DRAWN[name]


def apart(one: DrawnPanel, other: DrawnPanel) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return beside or one.y + one.height <= other.y or other.y + other.height <= one.y


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_panel_of_the_charts_dashboards_covers_another(path: Path) -> None:
    found = panels(json.loads(path.read_text(encoding="utf-8")))
    assert found
    assert all(apart(one, other) for one, other in combinations(found, 2))


@pytest.mark.parametrize(("found", "has"), [(["1.5"], True), (["NaN"], False), (["NaN", "0"], True), ([], False)])
def test_a_value_that_is_no_number_draws_nothing(found: list[str], has: bool) -> None:  # noqa: FBT001 - a column of a table
    """Else every query of a dashboard would return data (tests/contract/prometheus)."""
    answer = json.dumps({"data": {"result": [{"metric": {}, "value": [0, value]} for value in found]}})
    assert Prometheus(lambda _: answer).has("a + b") == has


def test_a_variable_without_a_value_is_named_and_is_no_text() -> None:
    board = {"templating": {"list": [{}, {"name": "namespace", "query": {"query": "label_values(ready, namespace)"}}]}}
    with pytest.raises(ValueError, match="variable namespace: no value is not among"):
        choose(board, lambda _selector, _label: [], "20s")
    with pytest.raises(KeyError, match="shard"):
        filled('x{shard="$shard"}', {"name": "orders"})
