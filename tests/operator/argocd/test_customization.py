"""The files of the chart's folder `argocd`, as Argo CD's own tests of its bundled customizations read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from argo_lua import CUSTOMIZATION, act, actions, health, same
from chart import of, rendered

pytestmark = pytest.mark.built

Json = dict[str, Any]
ACTIONS = CUSTOMIZATION / "actions"
KEY = "resource.customizations.{}.sluice.dev_KinesisConsumer"


def _read(path: Path) -> Json:
    found: Json = yaml.safe_load(path.read_text())
    return found


HEALTH = _read(CUSTOMIZATION / "health_test.yaml")["tests"]
ACTION_TESTS = _read(ACTIONS / "action_test.yaml")


@pytest.mark.parametrize("case", HEALTH, ids=lambda case: case["inputPath"])
def test_a_resource_is_as_healthy_as_the_file_says(case: Json) -> None:
    assert health(_read(CUSTOMIZATION / case["inputPath"])) == case["healthStatus"]


@pytest.mark.parametrize("case", ACTION_TESTS["discoveryTests"], ids=lambda case: case["inputPath"])
def test_the_actions_that_would_change_nothing_are_disabled(case: Json) -> None:
    found = [{"name": name, **about} for name, about in actions(_read(ACTIONS / case["inputPath"])).items()]
    assert sorted(found, key=_name) == sorted(case["result"], key=_name)


def _name(action: Json) -> str:
    return str(action["name"])


@pytest.mark.parametrize("case", ACTION_TESTS["actionTests"], ids=lambda case: f"{case['action']} {case['inputPath']}")
def test_an_action_changes_what_it_names_and_nothing_else(case: Json) -> None:
    assert same(act(case["action"], _read(ACTIONS / case["inputPath"])), _read(ACTIONS / case["expectedOutputPath"]))


def test_every_action_has_a_script_and_a_test() -> None:
    scripts = {path.parent.name for path in ACTIONS.glob("*/action.lua")}
    assert scripts == {case["action"] for case in ACTION_TESTS["actionTests"]} == set(actions(_read(ACTIONS / "testdata" / "running.yaml")))


def test_every_health_has_a_test() -> None:
    assert {case["healthStatus"]["status"] for case in HEALTH} == {"Healthy", "Progressing", "Degraded", "Suspended"}


def test_the_chart_renders_what_the_files_say_under_argo_cds_keys() -> None:
    assert of("ConfigMap", rendered()) == []
    (found,) = of("ConfigMap", rendered(argocd={"customizations": True}))
    assert found["data"][KEY.format("health")] == (CUSTOMIZATION / "health.lua").read_text()
    shown = yaml.safe_load(found["data"][KEY.format("actions")])
    assert shown["discovery.lua"] == (ACTIONS / "discovery.lua").read_text()
    scripts = {item["name"]: item["action.lua"] for item in shown["definitions"]}
    assert scripts == {path.parent.name: path.read_text() for path in ACTIONS.glob("*/action.lua")}
