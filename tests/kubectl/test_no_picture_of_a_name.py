"""A text with colons is printed as it is, by each program: rich takes the `:b:` of `a:b: there is no module a` for a picture otherwise."""

from __future__ import annotations

import ast

import pytest

from sluice_lab.places import REPO

CALLS = [
    (path, node)
    for folder in ("consumer", "operator")
    for path in sorted((REPO / folder).rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console"
]


def test_there_are_consoles() -> None:
    """Else nothing is compared."""
    assert len(CALLS) >= 5


@pytest.mark.parametrize(("path", "call"), CALLS, ids=lambda part: part.name if hasattr(part, "name") else None)
def test_a_console_draws_no_pictures(path: object, call: ast.Call) -> None:
    """By the one option of rich that turns it off; `markup=False` does not."""
    assert {each.arg: getattr(each.value, "value", None) for each in call.keywords}.get("emoji") is False, path
