"""`python -m sluice_lab.site.prose`: checks the words that people read (`make lint`). `habits.toml` has the words and the bounds.

It reads all pages without their code, helps of commands, descriptions of fields, alerts, and what modules say (`prose_of_code`).
Vale would not see half of this: it is text in Python.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import click
import yaml

from sluice_checkpoints.cli.main import main as checkpoints
from sluice_consumer.__main__ import main as consumer
from sluice_kubectl.cli.group import program
from sluice_lab.generate import crd
from sluice_lab.places import REPO
from sluice_lab.site.plurals import plurals
from sluice_lab.site.prose_of_code import explanations, messages
from sluice_lab.site.sentences import CODE, habits, said

FENCE = re.compile(r"(?ms)^ *(```|~~~).*?^ *\1 *$|<!--.*?-->")
ALERTS = REPO / "charts" / "sluice" / "files" / "alerts.yaml"
VALUE = re.compile(r"\{\{[^}]*\}\}")  # what Prometheus puts in
BLOCK = re.compile(r"^\s*(?:[*+-]|\d+\.) |^#|^\||^\s*$|^>")


def findings(markdown: str) -> list[str]:
    """`line: what is wrong: the sentence`, of a page."""
    plain = FENCE.sub(lambda cut: "\n" * cut[0].count("\n"), markdown)
    return [f"{line}: {wrong}" for line, text, cell in _blocks(plain.splitlines()) for wrong in said(text, habits().marks + 9 * cell)]


def _blocks(lines: list[str]) -> Iterator[tuple[int, str, bool]]:
    """Paragraphs, items, headings and the cells of tables, each with its first line and whether it is a cell."""
    start, block = 1, ""
    for number, line in enumerate([*lines, ""], 1):
        if BLOCK.match(line):
            yield from ((start, text, block.strip().startswith("|")) for text in _cells(block))
            start, block = number + (not line.strip()), ""
        block += " " + line.strip()


def _cells(block: str) -> list[str]:
    """A cell may hold a list, item by item. Headings are cited and linked, so they stay as they are."""
    text = block.strip()
    if text.startswith("#"):
        return []
    return re.split(r"(?<!\\)\||; ", CODE.sub("`X`", text).strip("|")) if text.startswith("|") else [re.sub(r"^([*+-]|\d+\.|#+|>) +", "", text)]


def commands() -> Iterator[tuple[str, click.Command]]:
    """Those of all programs that people run, with their whole names; groups of commands, too."""
    yield from _commands("sluice", program)
    yield from _commands("python -m sluice_checkpoints", checkpoints)
    yield from _commands("python -m sluice_consumer", consumer)


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            if found := command.get_command(context, each):
                yield from _commands(f"{name} {each}", found)


def helps() -> Iterator[str]:
    """Helps of commands that begin with no verb, or whose words are refused."""
    for name, command in commands():
        text = " ".join((command.help or "").split())
        if text.split(" ")[0].rstrip(",") not in habits().verbs:
            yield f"{name}: begin with an imperative verb (habits.toml has those in use): {text}"
        options = [option.help or "" for option in command.params if isinstance(option, click.Option)]
        yield from (f"{name}: {wrong}" for each in (text, *options) for wrong in said(each))


def fields(schema: dict[str, Any] | None = None, path: str = "") -> Iterator[str]:
    """Descriptions of fields that do not begin with what the value is, or whose words are refused."""
    schema = schema or crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name, each in schema.get("properties", {}).items():
        text = each.get("description", "")
        if text.split(" ")[0] in habits().openings:
            yield f"{path}{name}: begin with what the value is: {text}"
        yield from (f"{path}{name}: {wrong}" for wrong in said(text))
        yield from fields(each.get("items", each), f"{path}{name}.")


def alerts() -> Iterator[str]:
    """Summaries and descriptions of the chart's alerts whose words are refused."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            notes = (rule["annotations"].get(name, "") for name in ("summary", "description"))
            yield from (f"{rule['alert']}: {wrong}" for each in notes for wrong in said(VALUE.sub("X", each)))


def pages() -> list[str]:
    """All that is Markdown and read by users, relative to the repository."""
    shapes = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/**/README.md", "charts/*/README.md")
    return sorted(str(each.relative_to(REPO)) for shape in shapes for each in REPO.glob(shape))


def main() -> None:
    """Exit code 1 with a line for each finding."""
    wrong = [f"{page}:{each}" for page in pages() for each in findings((REPO / page).read_text())]
    wrong += [*helps(), *fields(), *alerts(), *messages(), *explanations(), *plurals()]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
