"""Generated and copied files are what the code says; the core is pure."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from sluice_operator.generate import crd

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "operator" / "sluice_operator"
ROOMS = ("spec", "state", "plan")
PURE = [
    *(path for room in ROOMS for path in sorted((PACKAGE / room).glob("*.py"))),
    PACKAGE / "apply" / "manifests.py",
    PACKAGE / "apply" / "spark_settings.py",
]
FUNCTIONS = {"kubernetes.utils.quantity"}  # a pure function of a package that makes calls
IMPURE = {"kopf", "kubernetes", "time", "random", "asyncio", "urllib3", "threading", "os"}


@pytest.mark.parametrize("path", ["crds/kinesisconsumers.sluice.dev.yaml", "charts/sluice/files/crd.yaml"])
def test_the_crd_is_what_the_models_say(path: str) -> None:
    """Else: `python -m sluice_operator.generate.crd FILE…`."""
    assert (ROOT / path).read_text() == crd.render()


def nodes(schema: Any) -> list[Json]:
    """Every schema inside a schema."""
    if isinstance(schema, list):
        return [found for item in schema for found in nodes(item)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(found for item in schema.values() for found in nodes(item))]


def test_the_schema_is_structural() -> None:
    """What Kubernetes does not take is not in it."""
    schema = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for node in nodes(schema):
        assert not {"$ref", "$defs", "anyOf", "allOf", "const", "prefixItems"} & set(node)
        assert not ("additionalProperties" in node and "properties" in node)


def test_only_replicas_has_a_default() -> None:
    """A default in the schema would look like something the user wrote."""
    spec = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert [node["default"] for node in nodes(spec) if "default" in node] == [1]
    assert spec["properties"]["replicas"]["default"] == 1


def test_the_crd_is_small_enough_for_client_side_apply() -> None:
    """262,144 bytes is the limit of the annotation that kubectl keeps."""
    assert len(crd.render()) < 60_000


@pytest.mark.parametrize("path", PURE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_core_has_no_input_and_no_output(path: Path) -> None:
    """No kopf, no API, no clock, no chance."""
    tree = ast.parse(path.read_text())
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {
        node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and node.module not in FUNCTIONS
    }
    assert not imported & IMPURE
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow"} and getattr(node.value, "id", "") == "datetime"
    ]


def test_operator_is_no_package() -> None:
    """A package of that name would shadow the standard library's."""
    assert not (ROOT / "operator" / "__init__.py").exists()
