"""Stored pictures are the generators', and a query that draws nothing counts as none."""

from __future__ import annotations

import json

import pytest

from sluice_lab import places
from sluice_lab.pictures import overview, story
from sluice_lab.pictures.answers import Prometheus, choose, filled
from sluice_lab.pictures.panels import panels

BOARDS = places.REPO / "charts" / "sluice" / "files" / "dashboards"
PANELS = panels(json.loads((BOARDS / "sluice-consumer.json").read_text(encoding="utf-8")))
DRAWN = {
    "docs/start/picture.svg": overview.drawn(),
    **{f"docs/pictures/incidents/{path.stem}.svg": story.draw(story.recorded(path.stem), PANELS) for path in sorted(story.RECORDED.glob("*.json"))},
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_stored_picture_is_the_generators(name: str) -> None:
    """With the panels of today's dashboard. `make generate` writes it."""
    assert (places.REPO / name).read_text(encoding="utf-8") == DRAWN[name]


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
