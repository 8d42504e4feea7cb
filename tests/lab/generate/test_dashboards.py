"""The dashboards, as Grafana reads them: they name only metrics and labels that the registries have.

They are changed in Grafana, and exported; charts/sluice/files/dashboards has the files.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from sluice_consumer.metrics.driver import FAMILIES
from sluice_lab.generate.reference import families

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "charts" / "sluice" / "files" / "dashboards").iterdir())
BOARDS: dict[str, Json] = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
GIVEN_BY_THE_SCRAPE = {"namespace", "pod", "sluice_dev_consumer"}
SERIES = re.compile(r"\b(sluice_(?!dev_)\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
COLUMNS = 24


@dataclass(frozen=True)
class KnownMetric:
    """One metric: its name as scraped (of a histogram without `_bucket`), its type, its labels, and what it says."""

    name: str
    kind: str
    labels: frozenset[str]
    help: str


OPERATORS = {name: KnownMetric(name, kind, frozenset(labels), text) for name, kind, labels, text in families()}
DRIVERS = {each.name: KnownMetric(each.name, each.kind, frozenset(each.labels), each.help) for each in FAMILIES}
KNOWN = OPERATORS | DRIVERS


def named(expression: str) -> list[KnownMetric]:
    """The metrics of an expression, each once, in their order.

    Raises:
        ValueError: there is no such metric, or it has no such label.
    """
    found: dict[str, KnownMetric] = {}
    allowed: set[str] = set()
    for name, selector in SERIES.findall(expression):
        family, labels = of_series(name)
        if unknown := set(re.findall(r"(\w+)\s*[=!]", selector)) - labels:
            raise ValueError(f"{name} has no label {', '.join(sorted(unknown))}: {expression}")
        found[family.name] = family
        allowed |= labels
    if unknown := grouped(expression) - allowed:
        raise ValueError(f"no metric has the label {', '.join(sorted(unknown))}: {expression}")
    return list(found.values())


def of_series(name: str) -> tuple[KnownMetric, set[str]]:
    histogram, _, part = name.rpartition("_")
    for family in (KNOWN.get(name), KNOWN.get(histogram)):
        if family is not None and (family.kind == "histogram") == (family.name == histogram and part in {"bucket", "sum", "count"}):
            return family, {*family.labels, *GIVEN_BY_THE_SCRAPE, *(["le"] if part == "bucket" else [])}
    raise ValueError(f"{name}: there is no such metric")


def grouped(expression: str) -> set[str]:
    return {label for labels in GROUPED.findall(expression) for label in re.findall(r"\w+", labels)}


def panels(uid: str) -> Iterator[Json]:
    return (panel for panel in BOARDS[uid]["panels"] if panel["type"] != "row")


def queries(uid: str) -> Iterator[tuple[str, Json]]:
    return ((panel["title"], query) for panel in panels(uid) for query in panel["targets"])


def variables(uid: str) -> list[Json]:
    return [each for each in BOARDS[uid]["templating"]["list"] if each["type"] == "query"]


QUERIES = [(uid, title, query["expr"]) for uid in BOARDS for title, query in queries(uid)]
every_board = pytest.mark.parametrize("uid", BOARDS)


@pytest.mark.parametrize(("uid", "title", "expression"), QUERIES, ids=lambda value: value if len(value) < 40 else "query")
def test_every_metric_of_a_query_is_in_a_registry(uid: str, title: str, expression: str) -> None:
    """With the labels that the query uses. A query asks one program, for a label of the one's series is not in the other's."""
    assert len({family.name in OPERATORS for family in named(expression)}) == 1, (uid, title)


def test_every_metric_is_on_a_dashboard() -> None:
    assert set(KNOWN) - {family.name for *_, expression in QUERIES for family in named(expression)} == set()


@every_board
def test_a_panel_says_what_its_metrics_say(uid: str) -> None:
    for panel in panels(uid):
        found = {family.name: family.help.rstrip(".") for query in panel["targets"] for family in named(query["expr"])}
        assert panel["description"] == "\n\n".join(f"{name}: {text}." for name, text in found.items()), panel["title"]


@every_board
def test_every_name_of_a_series_uses_labels_that_its_query_keeps(uid: str) -> None:
    """Grafana would write nothing there."""
    for title, query in queries(uid):
        assert set(re.findall(r"{{(\w+)}}", query.get("legendFormat", ""))) <= grouped(query["expr"]), title


@every_board
def test_every_variable_of_a_query_can_be_chosen(uid: str) -> None:
    chosen = {"datasource", "__rate_interval"}
    for variable in variables(uid):
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
        assert set(re.findall(r"\$(\w+)", selector)) <= chosen
        assert named(f"max by ({label}) ({selector})")
        chosen.add(variable["name"])
    for title, query in queries(uid):
        assert set(re.findall(r"\$(\w+)", query["expr"])) <= chosen, title


WRONG = {
    "sluice_nothing": "no such metric",
    "sluice_restarts": "no such metric",
    "sluice_batch_seconds": "no such metric",
    "sluice_records_total_bucket": "no such metric",
    'sluice_records_total{shard="0"}': "no label shard",
    "sum by (reason) (sluice_restarts_total)": "label reason",
    "sum by (le) (sluice_phase_seconds_sum)": "label le",
}


@pytest.mark.parametrize("expression", WRONG)
def test_a_query_of_what_is_not_there_is_found(expression: str) -> None:
    with pytest.raises(ValueError, match=WRONG[expression]):
        named(expression)


@every_board
def test_panels_lie_side_by_side_and_none_on_another(uid: str) -> None:
    found = BOARDS[uid]["panels"]
    assert set(Counter(panel["id"] for panel in found).values()) == {1}
    places = [panel["gridPos"] for panel in found]
    assert all(place["x"] + place["w"] <= COLUMNS for place in places)
    for one, other in itertools.combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other)


@every_board
def test_the_data_source_is_chosen_and_not_written_down(uid: str) -> None:
    written = BOARDS[uid]
    assert written["templating"]["list"][0]["type"] == "datasource"
    uids = re.findall(r'"uid": "([^"]+)"', json.dumps(written["panels"]) + json.dumps(written["templating"]))
    assert set(uids) == {"${datasource}"}


def kept(written: Json) -> Json:
    """What is left of a dashboard when Grafana's own types have read it."""
    register_default_plugins()
    found: Json = json.loads(JSONEncoder().encode(GrafanaDashboard.from_json(written)))
    return found


def lost(written: Any, read: Any, path: str = "") -> list[str]:
    if isinstance(written, dict) and isinstance(read, dict):
        return [found for key, value in written.items() for found in lost(value, read.get(key), f"{path}.{key}")]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        return [found for here, there in zip(written, read, strict=True) for found in lost(here, there, f"{path}[]")]
    return [] if written == read else [path]


@every_board
def test_grafana_knows_every_field(uid: str) -> None:
    """By the types that Grafana Labs publish; the schema is the newest that they know."""
    assert lost(BOARDS[uid], kept(BOARDS[uid])) == []
    assert (BOARDS[uid]["uid"], BOARDS[uid]["schemaVersion"]) == (uid, GrafanaDashboard().schema_version)


def test_a_link_leads_to_a_dashboard_and_its_variables() -> None:
    links = [link for uid in BOARDS for link in re.findall(r"/d/([\w-]+)\?([^\"]+)", json.dumps(BOARDS[uid]["panels"]))]
    assert links
    for uid, query in links:
        assert set(re.findall(r"var-(\w+)=", query)) == {"datasource", *(each["name"] for each in variables(uid))}
