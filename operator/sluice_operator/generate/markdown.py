"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str | None]]) -> str:
    """Markdown; line breaks in a cell become spaces."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([" ".join((cell or "").split()) for cell in row] for row in rows)]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|" for cells in lines)
