"""`python -m sluice_lab.site.prose`: checks the words that people read (`make lint`). `habits.toml` has the words and the bounds.

It reads all pages without their code, helps of commands, descriptions of fields, and the messages of the modules that `habits.toml` names.
Vale would not see half of this: it is text in Python.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click

from sluice_checkpoints.cli.main import main as checkpoints
from sluice_consumer.__main__ import main as consumer
from sluice_kubectl.cli.group import program
from sluice_lab.places import REPO
from sluice_operator.generate import crd

FENCE = re.compile(r"(?ms)^ *(```|~~~).*?^ *\1 *$|<!--.*?-->")
CODE = re.compile(r"`[^`\n]*`")
NAMES = re.compile(
    r"\b[A-Z]{3,}s?\b|\{[^}]*\}|\[default: [^\]]*\]|--[a-z][a-z-]*|https?://\S+|\b[a-z]\w*(?:\.[a-z]\w*)+"
)  # metavars, JSON, options, fields
LINK = re.compile(r"!?\[([^\]]*)\](\([^)\s]*\)|\[[^\]]*\])")
END = re.compile(r"(?<=[.!?])[*_)\"']*\s+(?=[A-Z`*\"'(])| · ")
BLOCK = re.compile(r"^\s*(?:[*+-]|\d+\.) |^#|^\||^\s*$|^>")
MARK = re.compile(r"[:;](?=\s)|:$")


@dataclass(frozen=True)
class Habits:
    """What `habits.toml` says.

    Attributes:
        words: the most words of a sentence.
        marks: the most colons and semicolons of a sentence.
        instead: a pattern of words that are refused, and what to write instead.
        verbs: first words of a command's help.
        openings: first words that no field's description has.
        modules: files whose texts are messages, or patterns of such files.
        lists: files among them whose texts are no sentences.
    """

    words: int
    marks: int
    instead: dict[str, str]
    verbs: list[str]
    openings: list[str]
    modules: list[str]
    lists: list[str]


@cache
def habits() -> Habits:
    """From the file beside this module."""
    return Habits(**tomllib.loads(Path(__file__).with_name("habits.toml").read_text()))


def findings(markdown: str) -> list[str]:
    """`line: what is wrong: the sentence`, of a page."""
    plain = FENCE.sub(lambda cut: "\n" * cut[0].count("\n"), markdown)
    return [f"{line}: {wrong}" for line, text, cell in _blocks(plain.splitlines()) for wrong in said(text, habits().marks + 9 * cell)]


def said(text: str, marks: int | None = None) -> Iterator[str]:
    """What is wrong with a text of one or more sentences; code in backticks counts as one word. A cell of a table may be a list."""
    plain = NAMES.sub("X", LINK.sub(r"\1", CODE.sub("X", text)))
    for sentence in filter(None, map(str.strip, END.split(plain))):
        yield from _sentence(sentence, habits().marks if marks is None else marks)


def _sentence(sentence: str, marks: int) -> Iterator[str]:
    rules = habits()
    if (count := len(re.findall(r"\w[\w'./%-]*", sentence))) > rules.words:
        yield f"{count} words, at most {rules.words}: {sentence}"
    if len(MARK.findall(sentence)) > marks:
        yield f"more than {marks} colon or semicolon: {sentence}"
    for pattern, better in rules.instead.items():
        if found := re.search(pattern, sentence, re.IGNORECASE):
            yield f"'{found[0]}', write {better}: {sentence}"


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


def messages() -> Iterator[str]:
    """Texts of four words and more in modules, without docstrings. What is put in counts as a word, and `field: fact; next: step` is no sentence."""
    for name in modules():
        for line, text in _texts(ast.parse((REPO / name).read_text())):
            yield from (f"{name}:{line}: {wrong}" for part in text.split("; ") for wrong in said(part, len(part)))


def modules() -> list[str]:
    """Those whose texts are messages, relative to the repository."""
    found = {str(path.relative_to(REPO)) for shape in habits().modules for path in REPO.glob(shape)}
    return sorted(found - set(habits().lists))


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.JoinedStr | ast.Constant)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
        if id(node) not in docs | inner and text.count(" ") > 3:
            yield node.lineno, text


def pages() -> list[str]:
    """All that is Markdown and read by users, relative to the repository."""
    shapes = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/**/README.md", "charts/*/README.md")
    return sorted(str(each.relative_to(REPO)) for shape in shapes for each in REPO.glob(shape))


def main() -> None:
    """Exit code 1 with a line for each finding."""
    wrong = [f"{page}:{each}" for page in pages() for each in findings((REPO / page).read_text())]
    wrong += [*helps(), *fields(), *messages()]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
