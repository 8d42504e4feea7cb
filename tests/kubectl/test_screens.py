"""docs/kubectl.md shows what the program prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from screens import BLOCK, screen

from sluice_kubectl.cli.group import SOURCES

PAGE = (Path(__file__).parents[2] / "docs" / "kubectl.md").read_text()
SHOWN = [(found[2], found[0].split("```\n")[1]) for found in BLOCK.finditer(PAGE)]


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_screen_of_the_page_is_what_the_program_prints(command: str, shown: str) -> None:
    """Else: make generate."""
    assert shown == f"$ {command}\n{screen(command)}"


def test_the_page_shows_a_screen_of_each_command() -> None:
    """Of those for a cluster."""
    commands = {name for source in SOURCES if source.extra == "kubectl" for name in source.names}
    assert {command.split()[2] for command, _ in SHOWN} == commands
