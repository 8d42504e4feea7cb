"""Logs, messages and events without credentials. What nobody promised a form is searched for them; the rest is shown. Pure."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from typing import Any
from urllib.parse import unquote

from sluice_kubectl.views.credentials import HIDDEN, is_named_so, kept_of, without_forms

DEEPEST = 40  # levels, over all texts in a text; what is below is hidden
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
BLOCK = re.compile(
    r"\s*(?:!\S*\s*)?[\[{(|>\\]*[+-]?[\\,\s\"']*(?:<\w+>)?\s*(?:#.*)?"
)  # nothing, or what opens a block: the value is on the next lines
ENCODED = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|&#?\w+;")
BACKSLASHED = re.compile(r"\\+u([0-9A-Fa-f]{4})|\\+x([0-9A-Fa-f]{2})")
VARIABLES = re.compile(r"env|environ|environment|envVars|(?:spark\.)?(?:executor|driver)Env", re.IGNORECASE)
CLOSING = re.compile(r"\s*[\]})]+[,;]?\s*")
LINE = 100_000  # characters of a line: longer ones are cut


def text(said: str, level: int = 0) -> str:
    """The text without what looks like a credential. A line of JSON is read as such."""
    if level > DEEPEST:
        return HIDDEN
    said = without_forms(normal(said))
    return _without_assigned([_line(line, level) for line in said.split("\n")])


def normal(said: str) -> str:
    """The text as a person reads it: no escape sequence, control or invisible character, and one form of each sign."""
    if said.isascii() and said.isprintable():
        return said
    said = unicodedata.normalize("NFKC", ESCAPES.sub("", said))
    return "".join(char for char in said if char.isprintable() or char in "\n\t" or char.isspace())


def loose(value: Any, level: int = 0) -> Any:
    """JSON that a program wrote into a text: without values of keys that are named like a credential, and of environment variables."""
    if level > DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return {text(key, level + 1): _hidden_or(value, key, level) for key in value}
    if isinstance(value, list):
        return _list(value, level)
    return _string(value, level) if isinstance(value, str) else value


def names_one(value: Any) -> bool:
    """Whether it is a text that is named like a credential: the first half of a pair."""
    return isinstance(value, str) and len(value) < 100 and not {"=", ":", " "} & set(value) and is_named_so(value)


def _hidden_or(parent: dict[str, Any], key: str, level: int) -> Any:
    """A pair such as `{"name": "DB_X", "value": …}` says no value: it may be an environment variable."""
    is_pair = key.lower() in {"value", "val", "v", "content"} and len(parent) > 1
    if is_named_so(key) or VARIABLES.fullmatch(key) or (is_pair and any(isinstance(each, str) for name, each in parent.items() if name != key)):
        return HIDDEN
    return loose(parent[key], level + 1)


def _list(values: list[Any], level: int) -> list[Any]:
    """After a name such as `password` or `--password`, the next word is hidden."""
    found, hides_next = [], False
    for value in values:
        found.append(HIDDEN if hides_next else loose(value, level + 1))
        hides_next = names_one(value)
    return found


def _string(said: str, level: int) -> str:
    found = parsed(said)
    return text(said, level + 1) if found is None else json.dumps(loose(found, level + 1))


def _line(line: str, level: int) -> str:
    if len(line) > LINE:
        return f"{_line(line[:LINE], level)} {HIDDEN}"
    found = parsed(line)
    return line if found is None else json.dumps(loose(found, level + 1))


def parsed(said: str) -> Any:
    """An object or a list; None if it is no JSON, or nested too deeply for a parser."""
    if not said.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return None


def _without_assigned(lines: list[str]) -> str:
    """The lines without what follows a name like `password`: to the end of the line, and the block that it opens."""
    found, block = list[str](), None
    for line in lines:
        if block is not None and _is_inside(line, block):
            found.append(line if not line.strip() else HIDDEN)
            continue
        kept = _kept(line)
        found.append(line if kept is None else line[:kept] + HIDDEN)
        block = None if kept is None or not BLOCK.fullmatch(line[kept:]) else Block(line)
    return "\n".join(found)


class Block:
    """Lines below a name without a value: one line at least, and all that are indented more, or are items of its list."""

    def __init__(self, line: str) -> None:
        self.indent, self.first = _indent(line), True


def _is_inside(line: str, block: Block) -> bool:
    if not line.strip():
        return True
    inside = block.first or _indent(line) > block.indent or (_indent(line) == block.indent and line.lstrip().startswith("- "))
    block.first = False
    return inside and not CLOSING.fullmatch(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _kept(line: str) -> int | None:
    kept = kept_of(line)
    if kept is None and ENCODED.search(line) and _is_one_decoded(_decoded(line)):
        return 0  # it is encoded: nothing of the line is known to be harmless
    return kept


def _decoded(line: str) -> str:
    """The line without the escapes of URLs (twice), of HTML, and of Java and Python."""
    return html.unescape(BACKSLASHED.sub(lambda found: chr(int(found[1] or found[2], 16)), unquote(unquote(line))))


def _is_one_decoded(line: str) -> bool:
    return kept_of(line) is not None or without_forms(line) != line
