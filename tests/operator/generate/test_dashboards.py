"""Dashboards are generated, and name only metrics and labels that the registries have."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from sluice_consumer.metrics.driver import FAMILIES
from sluice_operator.generate import dashboards, promql
from sluice_operator.generate.dashboards import DASHBOARDS
from sluice_operator.generate.grafana import COLUMNS, Dashboard, Panel, Query, Row, Variable, document
from sluice_operator.generate.promql import KnownMetric
from sluice_operator.generate.reference import families

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "charts" / "sluice" / "files" / "dashboards"
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
OPERATORS = {name: KnownMetric(name, kind, frozenset(labels), text) for name, kind, labels, text in families()}
DRIVERS = {each.name: KnownMetric(each.name, each.kind, frozenset(each.labels), each.help) for each in FAMILIES}
QUERIES = [(board.uid, panel.title, query.expr) for board in DASHBOARDS for panel in board.panels() for query in panel.queries]


def panels(board: Dashboard) -> list[Json]:
    """As Grafana gets them, rows too."""
    found: list[Json] = document(board, lambda panel: panel.title)["panels"]
    return found


def test_the_files_are_what_the_code_says() -> None:
    """No more and no fewer. Else: `make generate`."""
    known = dashboards.known(PAGE)
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert written == {f"{board.uid}.json": dashboards.rendered(board, known) for board in DASHBOARDS}


def test_the_generator_writes_these_files(tmp_path: Path) -> None:
    """Into a folder that it makes."""
    dashboards.main(str(ROOT / "docs" / "metrics.md"), str(tmp_path / "new"))
    assert {path.name for path in (tmp_path / "new").iterdir()} == {path.name for path in FOLDER.iterdir()}


def test_the_generator_knows_the_metrics_of_both_registries() -> None:
    """The driver's by its page, with labels and help."""
    assert dashboards.known(PAGE) == OPERATORS | DRIVERS


@pytest.mark.parametrize(("board", "title", "expression"), QUERIES, ids=lambda value: value if len(value) < 40 else "query")
def test_every_metric_of_a_query_is_in_a_registry(board: str, title: str, expression: str) -> None:
    """With the labels that the query uses. A query asks one program, for a label of the one's series is not in the other's."""
    assert promql.named(expression, OPERATORS | DRIVERS), (board, title)
    assert len({family.name in OPERATORS for family in promql.named(expression, OPERATORS | DRIVERS)}) == 1


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_every_name_of_a_series_uses_labels_that_its_query_keeps(board: Dashboard) -> None:
    """Grafana would write nothing there."""
    for panel in board.panels():
        for query in panel.queries:
            kept = {label for labels in promql.GROUPED.findall(query.expr) for label in re.findall(r"\w+", labels)}
            assert set(re.findall(r"{{(\w+)}}", query.legend)) <= kept, panel.title


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_every_variable_of_a_query_can_be_chosen(board: Dashboard) -> None:
    """Each after those that its own choice depends on."""
    chosen = {"datasource", "__rate_interval"}
    for variable in board.variables:
        assert set(re.findall(r"\$(\w+)", variable.selector)) <= chosen
        chosen.add(variable.name)
    for panel in board.panels():
        assert {name for query in panel.queries for name in re.findall(r"\$(\w+)", query.expr)} <= chosen, panel.title


def test_every_metric_is_on_a_dashboard() -> None:
    """A new one belongs on a panel, too."""
    shown = {family.name for *_, expression in QUERIES for family in promql.named(expression, OPERATORS | DRIVERS)}
    assert set(OPERATORS | DRIVERS) - shown == set()


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
def test_a_panel_of_what_is_not_there_is_refused(expression: str) -> None:
    """The words name it: a metric as it is not scraped, and a label that it lacks."""
    board = Dashboard("a", "A", "", (), (Row("r", (Panel("p", (Query(expression),)),)),))
    with pytest.raises(ValueError, match=WRONG[expression]):
        dashboards.rendered(board, OPERATORS | DRIVERS)


def test_a_choice_of_what_is_not_there_is_refused() -> None:
    """A variable is held to what a panel is held to; so is a panel that asks for no metric."""
    variable = Dashboard("a", "A", "", (Variable("shard", "sluice_records_total", "shard"),))
    with pytest.raises(ValueError, match="label shard"):
        dashboards.rendered(variable, DRIVERS)
    with pytest.raises(ValueError, match="without a metric"):
        dashboards.described(Panel("p", (Query("vector(1)"),)), DRIVERS)


def test_a_panel_says_what_its_metrics_say() -> None:
    """Each once, in the words of the registry."""
    asked = Panel("p", (Query("rate(sluice_records_total[1m]) / sluice_generation"), Query("sluice_records_total")))
    said = dashboards.described(asked, DRIVERS)
    assert said == "\n\n".join(f"{name}: {DRIVERS[name].help}." for name in ("sluice_records_total", "sluice_generation"))


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_panels_lie_side_by_side_and_none_on_another(board: Dashboard) -> None:
    """Within the width of the page; each with a number of its own."""
    found = panels(board)
    assert set(Counter(panel["id"] for panel in found).values()) == {1}
    for panel in found:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
    for one, other in itertools.combinations([panel["gridPos"] for panel in found], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other)


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_the_data_source_is_chosen_and_not_written_down(board: Dashboard) -> None:
    """By the variable, in every panel and query."""
    written = json.loads((FOLDER / f"{board.uid}.json").read_text(encoding="utf-8"))
    assert written["templating"]["list"][0]["type"] == "datasource"
    uids = re.findall(r'"uid": "([^"]+)"', json.dumps(written["panels"]) + json.dumps(written["templating"]))
    assert set(uids) == {"${datasource}"}


def kept(written: Json) -> Json:
    """What is left of a dashboard when Grafana's own types have read it."""
    register_default_plugins()
    found: Json = json.loads(JSONEncoder().encode(GrafanaDashboard.from_json(written)))
    return found


def lost(written: Any, read: Any, path: str = "") -> list[str]:
    """Fields that were written, and that Grafana does not know or reads as something else."""
    if isinstance(written, dict) and isinstance(read, dict):
        return [found for key, value in written.items() for found in lost(value, read.get(key), f"{path}.{key}")]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        return [found for here, there in zip(written, read, strict=True) for found in lost(here, there, f"{path}[]")]
    return [] if written == read else [path]


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_grafana_knows_every_field(board: Dashboard) -> None:
    """By the types that Grafana Labs publish; the schema is the newest that they know."""
    written = json.loads((FOLDER / f"{board.uid}.json").read_text(encoding="utf-8"))
    assert lost(written, kept(written)) == []
    assert written["schemaVersion"] == GrafanaDashboard().schema_version


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    """Of a dashboard, of a panel's kind, and of a query of Prometheus."""
    written = json.loads((FOLDER / f"{DASHBOARDS[0].uid}.json").read_text(encoding="utf-8"))
    assert lost(written, kept(written)) == []
    stat, query = written["panels"][1], written["panels"][1]["targets"][0]
    for node in (written, stat, stat["options"], stat["options"]["reduceOptions"], query):
        node["typo"] = 1
    assert sorted(lost(written, kept(written))) == sorted(
        [".typo", ".panels[].typo", ".panels[].options.typo", ".panels[].options.reduceOptions.typo", ".panels[].targets[].typo"]
    )


def test_a_link_leads_to_a_dashboard_and_its_variables() -> None:
    """From a consumer's row in the table of all."""
    variables = {board.uid: {"datasource", *(each.name for each in board.variables)} for board in DASHBOARDS}
    links = [panel.link for board in DASHBOARDS for panel in board.panels() if panel.link]
    assert links
    for link in links:
        path, _, query = link.partition("?")
        assert set(re.findall(r"var-(\w+)=", query)) == variables[path.removeprefix("/d/")]


def test_a_limit_below_is_red_below() -> None:
    """Time that is left is better the more it is."""
    for limits, colors in (((1, 2), ["green", "orange", "red"]), ((2, 1), ["red", "orange", "green"])):
        (_, panel) = panels(Dashboard("a", "A", "", (), (Row("r", (Panel("p", (Query("a"),), "stat", limits=limits),)),)))
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert [step["color"] for step in steps] == colors
        assert [step["value"] for step in steps] == [None, 1, 2]
