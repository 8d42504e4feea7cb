"""Documents as their tests read them: the code blocks of a page, in its order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$")


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        page: path of the document below the repository.
        language: what stands behind the fence; "" if nothing does.
    """

    page: str
    language: str
    text: str

    @property
    def head(self) -> str:
        """Its first line."""
        return self.text.split("\n", maxsplit=1)[0]


def blocks(page: str) -> list[Block]:
    """All of a page, without the indentation of a list that they stand in."""
    found = BLOCK.finditer((ROOT / page).read_text())
    return [Block(page, each[2], re.sub(rf"(?m)^{each[1]}", "", each[3])) for each in found]


def block(page: str, head: str) -> str:
    """The text of the only block of a page whose first line begins so."""
    (found,) = (each.text for each in blocks(page) if each.head.startswith(head))
    return found


def shape_of(text: str) -> str:
    """A text in which every number is 0."""
    return re.sub(r"\d+", "0", text)
