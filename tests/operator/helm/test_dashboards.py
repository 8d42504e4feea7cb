"""The chart's dashboards, as the sidecar of Grafana's chart finds them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chart import CHART, NAMESPACE, of, rendered

pytestmark = pytest.mark.built

Json = dict[str, Any]


def boards(**values: Any) -> dict[str, Json]:
    objects = rendered(grafanaDashboards={"enabled": True, **values}, driverMetrics={"port": 9404})
    maps = [body for body in of("ConfigMap", objects) if "-dashboard-" in body["metadata"]["name"]]
    assert {len(body["data"]) for body in maps} == {1}
    return {next(iter(body["data"])): body for body in maps}


def test_a_dashboard_is_the_generated_file() -> None:
    found, files = boards(), {path.name: path.read_text(encoding="utf-8") for path in (CHART / "files" / "dashboards").iterdir()}
    assert set(found) == set(files)
    for name, body in found.items():
        assert body["data"][name] + "\n" == files[name]
        assert json.loads(body["data"][name])["uid"] == name.removesuffix(".json")
        assert body["metadata"]["namespace"] == NAMESPACE
    assert len({body["metadata"]["name"] for body in found.values()}) == len(files)


def test_the_sidecar_finds_them_by_their_label() -> None:
    """The one that Grafana's chart looks for, unless the values say another; the folder is an annotation."""
    for body in boards().values():
        assert body["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert "annotations" not in body["metadata"]
    for body in boards(labels={"grafana_dashboard": None, "boards": "yes"}, annotations={"a": "b"}, folder="Streams").values():
        assert body["metadata"]["labels"]["boards"] == "yes"
        assert "grafana_dashboard" not in body["metadata"]["labels"]
        assert body["metadata"]["annotations"] == {"a": "b", "grafana_folder": "Streams"}


def test_there_is_none_unless_asked_for_and_none_without_data() -> None:
    assert of("ConfigMap", rendered()) == []
    without = [name for body in of("ConfigMap", rendered(grafanaDashboards={"enabled": True})) for name in body["data"]]
    assert without == ["sluice-consumer.json", "sluice-fleet.json"]


def test_a_long_name_of_a_release_is_cut() -> None:
    """Names of objects end at 63 characters."""
    objects = of("ConfigMap", rendered(grafanaDashboards={"enabled": True}, fullnameOverride="a" * 63))
    assert len({body["metadata"]["name"] for body in objects}) == len(objects) == 2
    assert all(len(body["metadata"]["name"]) <= 63 for body in objects)
