"""docs/reference is what the code says."""

from __future__ import annotations

import pytest

from sluice_consumer.columns import DDL
from sluice_kubectl.cli.group import program
from sluice_lab.site import reference

PAGES = reference.pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    """Else: `make generate`."""
    assert (reference.FOLDER / name).read_text() == PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_each_row_has_the_cells_of_its_table(name: str) -> None:
    """A bar in a text would make one more."""
    heads = 0
    for line in PAGES[name].splitlines():
        if not line.startswith("|"):
            heads = 0
            continue
        cells = line.replace(r"\|", "").count("|")
        heads = heads or cells
        assert cells == heads, line


def test_every_column_of_a_batch_has_its_line() -> None:
    assert all(f"| `{column.split()[0]}` | {column.split()[1]} |" in PAGES["pipeline.md"] for column in DDL.split(", "))


def test_every_command_has_its_section() -> None:
    found = [name for name, _ in reference.leaves(program, "sluice")]
    assert {"sluice migrate", "sluice run", "sluice dead-letters list", "sluice status"} <= set(found)
    assert all(f"\n## {name}\n" in PAGES["commands.md"] for name in found)


def test_an_attribute_is_read_with_all_its_lines() -> None:
    text = "About.\n\nAttributes:\n    name: the name; region: the region.\n    limit: None: no end,\n        of two lines.\n\nMore: no."
    assert reference.attributes(text) == {"name": "the name", "region": "the region.", "limit": "None: no end,\n    of two lines."}
