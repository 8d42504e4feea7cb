"""The chart's alerts name metrics that exist and runbooks that exist, and fire when they should, by Prometheus' own word."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from alert_cases import CASES, Case, document
from chart import CHART, NAMESPACE, one, refused, rendered

from sluice_consumer.metrics.driver import FAMILIES
from sluice_lab.generate import reference
from sluice_lab.generate.markdown import slug
from sluice_lab.machine import prometheus

pytestmark = pytest.mark.built

Json = dict[str, Any]

ROOT = CHART.parents[1]
HISTOGRAM = ("_bucket", "_sum", "_count")
DRIVERS = {"driverMetrics": {"port": 9404}}
GIVEN_BY_THE_SCRAPE = {"namespace", "pod", "sluice_dev_consumer"}


def rule(**values: Any) -> Json:
    return one("PrometheusRule", rendered(**DRIVERS, prometheusRule={"enabled": True, **values}))


@functools.cache
def alerts() -> dict[str, Json]:
    return {alert["alert"]: alert for group in rule()["spec"]["groups"] for alert in group["rules"]}


def operators() -> dict[str, set[str]]:
    return {name: set(labels) for name, _kind, labels, _help in reference.families()}


def drivers() -> dict[str, set[str]]:
    return {family.name: set(family.labels) for family in FAMILIES}


def named(expression: str) -> set[str]:
    return set(re.findall(r"\bsluice_(?!dev_)\w+", expression))


def test_every_metric_of_an_alert_exists() -> None:
    for group in rule()["spec"]["groups"]:
        known = drivers() if group["name"] == "sluice.drivers" else operators()
        for alert in group["rules"]:
            assert named(alert["expr"]), alert
            assert named(alert["expr"]) <= set(known), alert["alert"]


def test_every_label_of_an_alert_exists() -> None:
    known = drivers() | operators()
    for alert in alerts().values():
        grouped = {label for labels in re.findall(r"by \(([^)]*)\)", alert["expr"]) for label in re.split(r",\s*", labels)}
        selected = set(re.findall(r"[{,]\s*(\w+)=", alert["expr"]))
        labels = set.union(GIVEN_BY_THE_SCRAPE, *(known[name] for name in named(alert["expr"])))
        assert grouped | selected <= labels, alert["alert"]
        used = {label for text in alert["annotations"].values() for label in re.findall(r"\$labels\.(\w+)", text)}
        assert used <= grouped, alert["alert"]


def test_every_alert_has_a_runbook_that_exists() -> None:
    """A heading of one page, so that one address is enough, wherever the page is published."""
    address = "https://example.com/s/runbooks.html"
    linked = {alert["alert"]: alert["annotations"] for group in rule(runbookUrl=address)["spec"]["groups"] for alert in group["rules"]}
    assert set(linked) == set(alerts())
    for name, alert in alerts().items():
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        assert anchor in {slug(heading) for heading in re.findall(r"(?m)^#+ (.*)$", (ROOT / page).read_text())}, name
        assert "runbook_url" not in alert["annotations"]
        assert (page, linked[name]["runbook_url"]) == ("docs/runbooks.md", f"{address}#{anchor}")
        assert alert["labels"]["severity"] in {"critical", "warning"}
        assert {"summary", "description"} <= set(alert["annotations"])


def test_values_choose_and_change_alerts() -> None:
    groups = one("PrometheusRule", rendered(prometheusRule={"enabled": True}))["spec"]["groups"]
    assert [group["name"] for group in groups] == ["sluice.operator", "sluice.consumers", "sluice.pools"]
    mine = {"name": "mine", "rules": [{"alert": "Mine", "expr": "sluice_leader == 0"}]}
    changed = rule(disabled=["SluiceNobodyLeads"], groups=[mine], alertLabels={"team": "data", "severity": "page"}, lagSeconds=7200)
    found = {alert["alert"]: alert for group in changed["spec"]["groups"] for alert in group["rules"]}
    assert set(found) == {*alerts(), "Mine"} - {"SluiceNobodyLeads"}
    assert found["SluiceConsumerStalled"]["labels"] == {"severity": "page", "team": "data"}
    assert found["SluiceConsumerBehind"]["expr"].endswith("> 7200")
    assert f'namespace="{NAMESPACE}"' in found["SluiceOperatorAbsent"]["expr"]
    of_consumers = next(group for group in groups if group["name"] == "sluice.consumers")
    without = {"disabled": [alert["alert"] for alert in of_consumers["rules"]]}
    assert "sluice.consumers" not in {group["name"] for group in rule(**without)["spec"]["groups"]}


def test_an_alert_that_does_not_exist_cannot_be_left_out() -> None:
    """A typo would leave the real one in. The schema has the names of all."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["definitions"]["alert"]["enum"] == list(alerts())
    assert "disabled" in refused(**DRIVERS, prometheusRule={"enabled": True, "disabled": ["SluiceNobodyLead"]})


@pytest.fixture(scope="module")
def promtool() -> str:
    return prometheus.program("promtool")


def judged(*command: str, folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_rules(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(rule()["spec"]))
    judged(promtool, "check", "rules", "rules.json", folder=tmp_path)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{case.alert}-{n}" for n, case in enumerate(CASES)])
def test_an_alert_fires_when_it_should(promtool: str, tmp_path: Path, number: int) -> None:
    case: Case = CASES[number]
    bare = {key: value for key, value in alerts()[case.alert].items() if key != "annotations"}
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "tried", "rules": [bare]}]}))
    (tmp_path / "case.json").write_text(json.dumps(document(case, bare, "rules.json")))
    judged(promtool, "test", "rules", "case.json", folder=tmp_path)


def test_every_alert_is_tried_both_ways() -> None:
    for fires in (True, False):
        assert {case.alert for case in CASES if bool(case.fires) == fires} == set(alerts())


def test_the_page_lists_the_alerts() -> None:
    """docs/monitoring.md, "Alerts": name and severity, in their order."""
    section = (ROOT / "docs" / "monitoring.md").read_text().split("\n## Alerts\n", 1)[1]
    rows = re.findall(r"(?m)^\| `(\w+)` \|.*\| (\w+) \|$", section)
    assert rows == [(name, alert["labels"]["severity"]) for name, alert in alerts().items()]
