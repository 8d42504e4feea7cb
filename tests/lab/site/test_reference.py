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


def test_every_command_and_every_column_of_a_batch_is_there() -> None:
    found = [name for name, _ in reference.leaves(program, "sluice")]
    assert {"sluice migrate", "sluice run", "sluice dead-letters list", "sluice status"} <= set(found)
    assert all(f"\n## {name}\n" in PAGES["commands.md"] for name in found)
    assert all(f"| `{column.split()[0]}` | {column.split()[1]} |" in PAGES["pipeline.md"] for column in DDL.split(", "))
