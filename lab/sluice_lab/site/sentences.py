"""The habits of CONTRIBUTING.md, "Words", held against one text. `habits.toml` has the words and the bounds. Pure, once that file was read."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sluice_checkpoints.names import counted

CODE = re.compile(r"`[^`\n]*`")
NAMES = re.compile(
    r"\b[A-Z]{3,}s?\b|\{[^}]*\}|\[default: [^\]]*\]|--[a-z][a-z-]*|https?://\S+|\b[a-z]\w*(?:\.[a-z]\w*)+"
)  # metavars, JSON, options, fields
LINK = re.compile(r"!?\[([^\]]*)\](\([^)\s]*\)|\[[^\]]*\])")
END = re.compile(r"(?<=[.!?])[*_)\"']*\s+(?=[A-Z`*\"'(])| · ")
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
        messages: files whose texts are messages, or patterns of such files.
        lists: files among them whose texts are no sentences.
        documented: patterns of files whose docstrings and comments are read.
        documented_marks: the most colons and semicolons of a sentence there.
        figures: files that plurals.py does not read.
        counted: plural nouns that do not follow a number that may be 1.
    """

    words: int
    marks: int
    instead: dict[str, str]
    verbs: list[str]
    openings: list[str]
    messages: list[str]
    lists: list[str]
    documented: list[str]
    documented_marks: int
    figures: list[str]
    counted: list[str]


@cache
def habits() -> Habits:
    """From the file beside this module."""
    return Habits(**tomllib.loads(Path(__file__).with_name("habits.toml").read_text()))


def said(text: str, marks: int | None = None) -> Iterator[str]:
    """What is wrong with a text of one or more sentences; code in backticks counts as one word. A cell of a table may be a list."""
    plain = NAMES.sub("X", LINK.sub(r"\1", CODE.sub("X", text)))
    for sentence in filter(None, map(str.strip, END.split(plain))):
        yield from _sentence(sentence, habits().marks if marks is None else marks)


def _sentence(sentence: str, marks: int) -> Iterator[str]:
    rules = habits()
    if (count := len(re.findall(r"\w[\w'./%-]*", sentence))) > rules.words:
        yield f"{counted(count, 'word')}, at most {rules.words}: {sentence}"
    if len(MARK.findall(sentence)) > marks:
        yield f"more than {marks} colon or semicolon: {sentence}"
    for pattern, better in rules.instead.items():
        if found := re.search(pattern, sentence, re.IGNORECASE):
            yield f"'{found[0]}', write {better}: {sentence}"
