"""Blocks of the documents' pages, for tests that follow them as they stand."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$")


@dataclass(frozen=True)
class Block:
    """One block of a page.

    Attributes:
        language: what stands behind its first fence; empty for none.
        text: without the indent of its fence.
    """

    language: str
    text: str


def of(page: str) -> list[Block]:
    found = BLOCK.findall((ROOT / page).read_text())
    return [Block(language, re.sub(rf"(?m)^{indent}", "", text)) for indent, language, text in found]


def beginning(page: str, first: str) -> str:
    """The only block of a page that begins with these words.

    Raises:
        AssertionError: there is none, or there are several.
    """
    found = [each.text for each in of(page) if each.text.startswith(first)]
    assert len(found) == 1, f"{page} has {len(found)} blocks that begin with {first!r}"
    return found[0]


def path_with_sluice(folder: Path) -> str:
    """A PATH on which `sluice` and `python` are those of this Python, which may be another line of Spark's. Writes into the folder.

    `sluice` is what pip makes of an entry point: a script, so Python looks for modules in the folder of the script, and not where it is run.
    """
    program = folder / "bin" / "sluice"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom sluice_kubectl.program import main\nsys.exit(main())\n")
    program.chmod(0o755)
    return os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
