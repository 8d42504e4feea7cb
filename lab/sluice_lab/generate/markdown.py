"""Tables and anchors in Markdown, and the generated parts of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

PART = re.compile(r"(?s)(<!-- generated: (\w+) -->\n).*?(<!-- end -->)")


def table(head: Iterable[str], rows: Iterable[Iterable[str | None]]) -> str:
    """Markdown; line breaks in a cell become spaces."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([" ".join((cell or "").split()) for cell in row] for row in rows)]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|" for cells in lines)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def filled(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """A page with each of these generated parts as the code has it now; it may have others, which another module writes."""
    return PART.sub(lambda match: f"{match[1]}{parts[match[2]]()}\n{match[3]}" if match[2] in parts else match[0], text)
