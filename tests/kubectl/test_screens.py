"""docs/kubectl.md and docs/runbooks.md show what the program prints."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from screens import BLOCK, PICTURES, picture, screen
from troubles import TROUBLES

from sluice_kubectl.cli.group import SOURCES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "kubectl.md").read_text()
SHOWN = [
    pytest.param(page, found[3], found[2], found[0].split("```\n")[1], id=f"{page} {found[2] or ''} {found[3]}")
    for page in ("kubectl.md", "runbooks.md", "how-to/undo-a-deploy.md")
    for found in BLOCK.finditer((DOCS / page).read_text())
]


@pytest.mark.parametrize(("page", "command", "trouble", "shown"), SHOWN)
def test_a_screen_of_a_page_is_what_the_program_prints(page: str, command: str, trouble: str | None, shown: str) -> None:
    """Else: make generate."""
    assert shown == f"$ {command}\n{screen(command, trouble)}", page


def test_the_page_shows_a_screen_of_each_command() -> None:
    commands = {name for source in SOURCES if source.extra == "kubectl" for name in source.names}
    pictures = {command for name, command in PICTURES.items() if f"(pictures/{name}.svg)" in PAGE}
    shown = {str(param.values[1]) for param in SHOWN if param.values[0] == "kubectl.md"}
    assert {command.split()[2] for command in pictures | shown} == commands


def test_every_trouble_is_shown_or_looked_at() -> None:
    tests = "".join(path.read_text() for path in (Path(__file__).parent / "cli").glob("test_*.py"))
    shown = {param.values[2] for param in SHOWN if param.values[2]}
    assert shown <= set(TROUBLES)
    assert [name for name in TROUBLES if name not in shown and f'"{name}"' not in tests] == []


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_page_is_what_the_program_prints(name: str) -> None:
    """Else: make generate."""
    assert f"(pictures/{name}.svg)" in PAGE
    assert (DOCS / "pictures" / f"{name}.svg").read_text() == picture(name, PICTURES[name])


def test_no_other_picture_is_kept() -> None:
    assert {file.stem for file in (DOCS / "pictures").glob("*.svg")} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_loads_nothing_from_another_host(name: str) -> None:
    svg = ET.fromstring((DOCS / "pictures" / f"{name}.svg").read_text())  # noqa: S314 - a file of ours
    styles = "".join(each.text or "" for each in svg.iter("{http://www.w3.org/2000/svg}style"))
    assert "url(" not in styles
    assert "@" not in styles
    assert [each for each in svg.iter() for name in each.attrib if name.endswith("href")] == []
