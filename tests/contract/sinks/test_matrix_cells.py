"""The matrix of sinks has no empty cell, and the page shows it as it is (docs/sinks.md, "What is tried")."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from matrix_cells import CELLS, EVENTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sinks.md").read_text()


def shown() -> list[list[str]]:
    lines = PAGE.partition("### What is tried\n")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [rows[0], *rows[2:]]


def test_the_page_has_each_cell() -> None:
    (_, *ways), *rows = shown()
    assert {(way, event) for event, *_ in rows for way in ways} == CELLS.keys()
    assert [event for event, *_ in rows] == list(EVENTS)


def test_a_cell_that_is_tried_is_marked_so() -> None:
    (_, *ways), *rows = shown()
    marks = {(way, event): mark for event, *cells in rows for way, mark in zip(ways, cells, strict=True)}
    assert {cell for cell, mark in marks.items() if mark in {"\u2013", "*"}} == {cell for cell, filled in CELLS.items() if "::" not in filled}


@pytest.mark.parametrize("filled", sorted(set(CELLS.values())))
def test_a_cell_is_a_test_or_a_sentence_of_the_page(filled: str) -> None:
    file, _, name = filled.partition("::")
    if name:
        assert name in {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)}
    else:
        assert filled in PAGE
