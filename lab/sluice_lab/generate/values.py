"""The values of the chart as a table in its README: `python -m sluice_lab.generate.values charts/sluice` writes it.

A value is described where it is set, in values.yaml: by the comment above its key, the comment behind it, or both. A block whose keys have no
comments of their own is one value.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from sluice_lab.generate.markdown import PART, table

if TYPE_CHECKING:
    from collections.abc import Iterator

BEHIND = re.compile(r"[:,]?\s+# (.*)")


@dataclass(frozen=True, slots=True)
class Value:
    """One row: the path of the key, its default as YAML (None: a block of other values), and what its comments say."""

    path: str
    default: str | None
    text: str


def values(source: str) -> list[Value]:
    """Every value of a values.yaml, in its order; a block that has a comment comes before what is in it."""
    root = yaml.compose(source, yaml.SafeLoader)
    return list(_block(root, (), source.splitlines())) if isinstance(root, yaml.MappingNode) else []


def _block(block: yaml.MappingNode, path: tuple[str, ...], lines: list[str]) -> Iterator[Value]:
    for key, node in block.value:
        here, text = (*path, key.value), _comments(key, node, lines)
        inside = [] if not isinstance(node, yaml.MappingNode) or node.flow_style else list(_block(node, here, lines))
        if any(value.text for value in inside):
            yield from [Value(".".join(here), None, text)] if text else []
            yield from inside
        else:
            yield Value(".".join(here), _default(node, lines), text)


def _comments(key: yaml.Node, node: yaml.Node, lines: list[str]) -> str:
    """The lines above, as far as they are comments of the same depth; then what is behind the value, or behind the key of a block."""
    row, column = key.start_mark.line, key.start_mark.column
    above: list[str] = []
    while row and (found := re.fullmatch(rf" {{{column}}}# ?(.*)", lines[row - 1])):
        above.insert(0, found[1])
        row -= 1
    end = node.end_mark if node.end_mark.line == key.start_mark.line else key.end_mark
    behind = BEHIND.match(lines[end.line], end.column)
    return " ".join([*above, *([behind[1]] if behind else [])])


def _default(node: yaml.Node, lines: list[str]) -> str:
    if node.start_mark.line == node.end_mark.line:
        return lines[node.start_mark.line][node.start_mark.column : node.end_mark.column]
    loaded = yaml.safe_load(yaml.serialize(node))
    return yaml.safe_dump(loaded, default_flow_style=True, sort_keys=False, width=10_000).strip()


def rendered(source: str) -> str:
    """The table."""
    rows = [(f"`{v.path}`", "" if v.default is None else f"`{v.default}`", v.text.replace("|", "\\|")) for v in values(source)]
    return table(("value", "default", "description"), rows)


def filled(page: str, source: str) -> str:
    """The README with its generated part as values.yaml has it now."""
    return PART.sub(lambda match: f"{match[1]}{rendered(source)}\n{match[3]}", page)


def main(folders: list[str]) -> None:
    """Write into each chart's README."""
    for name in folders:
        page = Path(name) / "README.md"
        page.write_text(filled(page.read_text(), (Path(name) / "values.yaml").read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
