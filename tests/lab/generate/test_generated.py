"""Generated and copied files are what the code says; the core is pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice_lab.generate import crd
from sluice_operator.resource.changes import CHANGES, DEFAULTS, MIGRATION_FIELDS, RESET_FIELDS, ChangeCost
from sluice_operator.resource.fields import parse

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", ["crds/kinesisconsumers.sluice.dev.yaml", "charts/sluice/files/crd.yaml"])
def test_the_crd_is_what_the_models_say(path: str) -> None:
    """Else: `python -m sluice_lab.generate.crd FILE…`."""
    assert (ROOT / path).read_text() == crd.render()


@pytest.mark.parametrize("path", ["crds/kinesisconsumerpools.sluice.dev.yaml", "charts/sluice/files/crd-pools.yaml"])
def test_the_crd_of_pools_is_generated(path: str) -> None:
    """Else: `python -m sluice_lab.generate.crd --pool FILE…`."""
    assert (ROOT / path).read_text() == crd.render(pool=True)


def undescribed(schema: Json, path: str) -> list[str]:
    found = schema.get("properties", {}).items()
    below = [name for key, each in found for name in undescribed(each, f"{path}.{key}")]
    items = undescribed(schema["items"], f"{path}[]") if "items" in schema else []
    return [f"{path}.{name}" for name, each in found if not each.get("description")] + below + items


@pytest.mark.parametrize("part", ["spec", "status"])
def test_explain_has_words_for_every_field(part: str) -> None:
    (version,) = crd.definition()["spec"]["versions"]
    assert undescribed(version["schema"]["openAPIV3Schema"]["properties"][part], part) == []


def nodes(schema: Any) -> list[Json]:
    if isinstance(schema, list):
        return [found for item in schema for found in nodes(item)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(found for item in schema.values() for found in nodes(item))]


def test_the_schema_is_structural() -> None:
    schema = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for node in nodes(schema):
        assert not {"$ref", "$defs", "anyOf", "allOf", "const", "prefixItems"} & set(node)
        assert not ("additionalProperties" in node and "properties" in node)


def schema_of(part: str) -> Json:
    found: Json = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def defaults(schema: Json) -> Any:
    inner = {name: found for name, each in schema.get("properties", {}).items() if (found := defaults(each)) is not None}
    return inner or schema.get("default")


def test_hashes_pass_over_what_the_api_server_fills_in() -> None:
    """Else a CRD with a new default would restart every driver."""
    hashed = {*MIGRATION_FIELDS, *RESET_FIELDS, *(key for key, change in CHANGES.items() if change is ChangeCost.RESTART)}
    assert {key: value for key, value in defaults(schema_of("spec")).items() if key in hashed} == DEFAULTS


def test_the_schema_has_the_defaults_of_the_models() -> None:
    bare = {"stream": {"name": "orders", "region": "eu-west-1"}, "pipeline": {"entrypoint": "a:b"}}
    filled = {
        key: value for key, value in defaults(schema_of("spec")).items() if key not in {"onError", "migrateFrom", "position", "autoscale", "rollout"}
    }
    assert parse({**bare, **filled}) == parse(bare)
    assert filled["replicas"] == 1
    assert [node["default"] for node in nodes(schema_of("status")) if "default" in node] == [{"observedGeneration": 0}]


def test_a_field_that_the_schema_does_not_know_is_refused() -> None:
    theirs = {"env[].valueFrom", "envFrom[].configMapRef", "envFrom[].secretRef", "volumes[]", "args"}
    pods = {"spec.driver.podTemplate", "spec.executor.podTemplate"}
    assert set(opened("spec", schema_of("spec"))) == {f"spec.pipeline.{field}" for field in theirs} | pods
    assert set(opened("status", schema_of("status"))) == {"status.lastGoodSpec", "status.provenSpec"}


def opened(path: str, schema: Json) -> list[str]:
    here = [path] if schema.get(crd.OPEN) else []
    below = [found for name, each in schema.get("properties", {}).items() for found in opened(f"{path}.{name}", each)]
    return [*here, *below, *(opened(f"{path}[]", schema["items"]) if "items" in schema else [])]


def test_the_crd_is_small_enough_for_client_side_apply() -> None:
    """262,144 bytes is the limit of the annotation that kubectl keeps."""
    assert len(crd.render()) < 80_000
    assert len(crd.render(pool=True)) < 75_000


def test_operator_is_no_package() -> None:
    """A package of that name would shadow the standard library's."""
    assert not (ROOT / "operator" / "__init__.py").exists()
