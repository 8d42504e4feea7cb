"""A text in an object is hidden unless its field is known or its form is harmless."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_kubectl.views.known_fields import FREE, KNOWN
from sluice_kubectl.views.secrets import HIDDEN, body

Json = dict[str, Any]
SECRET = "Hunter2Zq9"
CRDS = [Path(__file__).parents[3] / "crds" / f"{plural}.sluice.dev.yaml" for plural in ("kinesisconsumers", "kinesisconsumerpools")]
PLACES: tuple[Json, ...] = (
    *({"spec": {"pipeline": {"env": [{"name": name, "value": SECRET}]}}} for name in ("SPARK_DRIVER_DB_PASSWORD", "SPARK_EXECUTOR_AUTH_SECRET")),
    {"initContainers": [{"env": [{"name": "SLUICE_API_TOKEN", "value": SECRET}]}]},
    {"sparkConf": {"spark.executorEnv.SPARK_EXECUTOR_TOKEN": SECRET}},
    *({"spec": {"pipeline": {"args": inner}}} for inner in (
        {"env": [f"DB_X={SECRET}"]}, {"variables": {"X": SECRET}}, {"appKey": SECRET}, {"connStr": SECRET}, {"anything": SECRET}, {SECRET: 1},
        {"p": [{"key": "password", "value": SECRET}]}, {"p": [{"property": "fs.s3a.secret.key", "value": SECRET}]}, {"p": [["password", SECRET]]},
        {"h": [{"header": "Authorization", "content": SECRET}]}, {"p": [["password", 4711, SECRET]]}, {"f": f"h:5432:db:u:{SECRET}"},
        {"cfg": json.dumps([{"name": "X", "value": SECRET}])}, {"stream": {"name": SECRET}},
    )),
    {"metadata": {"annotations": {"example.com/note": SECRET}, "labels": {"team": SECRET}}},
    {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {f"f:{SECRET}": {}}}]}},
    {"spec": {"containers": [{"name": "c", "args": ["-p", SECRET], "command": ["sh", "-c", SECRET], "workingDir": SECRET}]}},
)  # fmt: skip


@pytest.mark.parametrize("found", PLACES, ids=json.dumps)
def test_a_text_of_an_unknown_field_is_hidden(found: Json) -> None:
    for each in (found, {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(found)}}}, [found]):
        assert SECRET not in json.dumps(body(each))


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(codec="ascii", categories=["L"]), min_size=3, max_size=8), min_size=1, max_size=4))
def test_whatever_an_unknown_field_is_called_its_text_is_hidden(keys: list[str]) -> None:
    inner: Any = "a plain sentence"
    for key in reversed(keys):
        inner = {key: inner}
    assert "a plain sentence" not in json.dumps(body({"spec": {"pipeline": {"args": inner}}}))
    assert "a plain sentence" not in json.dumps(body({"spec": {"noSuchField": inner}}))


def test_numbers_flags_times_and_sizes_are_shown_below_any_key() -> None:
    args = {"rate": 12, "on": True, "size": "4g", "every": "30s", "since": "2026-11-21T10:00:00Z", "mode": "append", "path": "s3://bucket/x"}
    found = body({"spec": {"pipeline": {"args": args}}})["spec"]["pipeline"]["args"]
    assert found == args | {"path": "<hidden: text of 13 characters>"}


@pytest.mark.parametrize("place", ["args", "sparkConf"])
@pytest.mark.parametrize("name", ["password", "accessKey", "tokens", "pin", "spark.x.secret.key"])
def test_what_is_named_like_a_credential_is_hidden_whatever_its_form(place: str, name: str) -> None:
    for value in (4711, "4711", ["4711"]):
        assert body({place: {name: value}}) == {place: {name: HIDDEN}}


def test_an_object_keeps_names_of_secrets() -> None:
    """A pod that waits for a Secret cannot be understood without its name."""
    found = {
        "env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "orders", "key": "password"}}}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    assert body(found) == found


def texts(schema: Json, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path] if schema.get("type") == "string" else []
    for key, each in (schema.get("properties") or {}).items():
        found += texts(each, (*path, key))
    return found + texts(schema["items"], path) if "items" in schema else found


@pytest.mark.parametrize("crd", CRDS, ids=lambda path: path.stem)
def test_each_text_of_a_resource_that_is_no_users_own_is_known(crd: Path) -> None:
    """Else a maintainer would miss a field that was added."""
    versions = yaml.safe_load(crd.read_text())["spec"]["versions"]
    paths = [
        path for path in texts(versions[0]["schema"]["openAPIV3Schema"]) if FREE.isdisjoint(path) and "env" not in path and "envFrom" not in path
    ]
    assert len(paths) > 30
    assert {key for path in paths for key in path} - KNOWN - {"configMap", "subPathExpr"} == set()


def nested(levels: int, texts_: int) -> str:
    said = "[" * levels + "]" * levels
    for _ in range(texts_):
        said = "[" * levels + json.dumps(said) + "]" * levels
    return said


@pytest.mark.parametrize("said", [nested(96, 5), nested(40, 9), nested(2, 10), nested(900, 1), "[" * 100_000])
def test_json_in_json_of_any_depth_ends_no_report(said: str) -> None:
    json.dumps(body({"metadata": {"annotations": {"sluice.dev/x": said, "x": said}}}))
