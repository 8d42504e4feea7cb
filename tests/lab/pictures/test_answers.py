"""A dashboard's variables become values that Prometheus has, and its queries are asked with them."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

import pytest

from sluice_lab.pictures.answers import Prometheus, choose, filled, queries
from sluice_lab.pictures.panels import DrawnPanel, PanelQuery

SOURCE = {"name": "datasource", "query": "prometheus"}
NAMESPACE = {"name": "namespace", "query": {"query": "label_values(ready, namespace)"}, "allValue": ".+"}
NAME = {"name": "name", "query": {"query": 'label_values(ready{namespace=~"$namespace"}, name)'}}
PANEL = {"title": "Ready", "targets": [{"expr": 'rate(ready{name="$name"}[$__rate_interval])'}]}
BOARD: dict[str, Any] = {"templating": {"list": [SOURCE, NAMESPACE, NAME]}, "panels": [{"title": "a row"}, PANEL]}
NAMES = {("ready", "namespace"): ["default"], ('ready{namespace=~".+"}', "name"): ["orders", "views"]}


def values(selector: str, label: str) -> list[str]:
    return NAMES.get((selector, label), [])


def test_a_variable_has_the_wanted_value_or_all_or_the_first() -> None:
    assert choose(BOARD, values, "20s") == {"__rate_interval": "20s", "namespace": ".+", "name": "orders"}
    chosen = choose(BOARD, values, "20s", name="views")
    assert chosen["name"] == "views"
    assert queries(BOARD, chosen) == {'rate(ready{name="views"}[20s])'}


def test_a_value_that_nothing_has_is_named() -> None:
    with pytest.raises(ValueError, match="variable name: payments is not among"):
        choose(BOARD, values, "20s", name="payments")
    with pytest.raises(ValueError, match="variable namespace: no value is not among"):
        choose(BOARD, lambda _selector, _label: [], "20s")


def test_a_variable_that_is_not_there_is_no_text() -> None:
    with pytest.raises(KeyError, match="shard"):
        filled('x{shard="$shard"}', {"name": "orders"})


@pytest.mark.parametrize(("found", "has"), [(["1.5"], True), (["NaN"], False), (["NaN", "0"], True), ([], False)])
def test_a_value_that_is_no_number_draws_nothing(found: list[str], has: bool) -> None:  # noqa: FBT001 - a column of a table
    asked: list[str] = []

    def get(path: str) -> str:
        asked.append(path)
        return json.dumps({"data": {"result": [{"metric": {}, "value": [0, value]} for value in found]}})

    assert Prometheus(get).has("a + b") == has
    assert urllib.parse.parse_qs(asked[0].partition("?")[2]) == {"query": ["a + b"]}


def test_a_series_has_the_name_of_its_legend() -> None:
    metric = {"namespace": "default", "name": "orders"}
    answer = json.dumps({"data": {"result": [{"metric": metric, "values": [[1, "2"], [2, "NaN"], [3, "4"]]}]}})
    panel = DrawnPanel("timeseries", "Ready", "short", 0, 0, 9, 9, (PanelQuery("ready", "a {{name}}"),))
    (series,) = Prometheus(lambda _: answer).history(panel, {}, 0, 9)
    assert (series.name, series.points) == ("a orders", ((1, 2), (3, 4)))
