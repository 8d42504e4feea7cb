"""`python -m sluice_lab.pictures.overview FILE`: draws the picture of README.md and docs/concepts.md (`make generate`); a test compares.

No arrow crosses another one, and the four of a batch have the numbers of its steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 900, 440
INK, FAINT, PALE, STRONG = "#37474f", "#546e7a", "#fafafa", "#1565c0"
ABOUT = (
    "Executors in Kubernetes read ranges of a Kinesis stream, bind them in a DynamoDB table, and write to your sink. "
    "The driver commits the batch in that table. A migration Job fills the table once, from the table of the previous consumer."
)


@dataclass(frozen=True, slots=True)
class Box:
    """A part of the system: position and size in pixels, two lines of words."""

    x: int
    y: int
    width: int
    height: int
    title: str
    what: str
    fill: str = "#fff"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A way from box to box, along corners.

    Attributes:
        label: its words, and where they begin.
        step: its number in a batch; 0: it is not a step of one.
        dashed: it is gone once.
    """

    corners: Sequence[tuple[int, int]]
    label: tuple[str, int, int] = ("", 0, 0)
    step: int = 0
    dashed: bool = False


BOXES = (
    Box(20, 56, 150, 52, "former table", "KCL, NiFi, …: only read", "#eceff1"),
    Box(240, 56, 150, 52, "migration Job", "once, behind a gate"),
    Box(730, 56, 150, 156, "checkpoint table", "DynamoDB", "#e3f2fd"),
    Box(240, 150, 150, 52, "operator", "watches resources"),
    Box(450, 150, 150, 52, "driver", "calls process"),
    Box(20, 279, 150, 56, "Kinesis stream", "its shards", "#fff8e1"),
    Box(450, 270, 150, 74, "executors", "run tasks"),
    Box(730, 300, 150, 56, "your sink", "table, files, database", "#f1f8e9"),
)
ARROWS = (
    Arrow(((170, 82), (240, 82)), dashed=True),
    Arrow(((390, 82), (730, 82)), ("every position", 440, 75), dashed=True),
    Arrow(((315, 150), (315, 108)), ("starts", 323, 134)),
    Arrow(((390, 176), (450, 176)), ("starts", 404, 169)),
    Arrow(((525, 202), (525, 270)), ("sends tasks", 533, 240)),
    Arrow(((170, 307), (450, 307)), ("read", 306, 299), 1),
    Arrow(((600, 286), (805, 286), (805, 212)), ("bind", 652, 278), 2),
    Arrow(((600, 328), (730, 328)), ("write", 652, 320), 3),
    Arrow(((600, 176), (730, 176)), ("commit", 652, 168), 4),
)
STORY = (
    (1, 30, 396, "A task reads a range of a shard."),
    (2, 258, 396, "It binds the range: batch 42 now has exactly these records."),
    (3, 656, 396, "process writes to the sink."),
    (4, 30, 421, "One write commits all shards. After a crash before it, batch 42 comes again, with the same records."),
)


def drawn() -> str:
    """The content of the file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif" font-size="14" role="img" '
        f'aria-label="{escape(ABOUT)}">'
    )
    heads = "".join(_head(name, colour) for name, colour in (("plain", INK), ("step", STRONG)))
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PALE}"/>'
    cluster = '<rect x="220" y="20" width="400" height="344" rx="10" fill="#e8f0f2" stroke="#90a4ae"/>'
    shapes = [ground, cluster, _words(236, 42, "Kubernetes", FAINT), *_boxes(), *_arrows(), *_story()]
    return "\n".join([head, f"<defs>{heads}</defs>", *shapes, "</svg>", ""])


def _head(name: str, colour: str) -> str:
    """The head of an arrow."""
    shape = f'<path d="M0 0L10 5L0 10z" fill="{colour}"/>'
    size = 'markerWidth="13" markerHeight="13" markerUnits="userSpaceOnUse"'
    return f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" {size} orient="auto">{shape}</marker>'


def _boxes() -> Iterator[str]:
    for box in BOXES:
        middle, height = box.x + box.width // 2, box.y + box.height // 2
        frame = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6" fill="{box.fill}"'
        yield f'<rect {frame} stroke="#455a64" stroke-width="1.5"/>'
        yield f'<text x="{middle}" y="{height - 4}" text-anchor="middle" font-weight="600">{escape(box.title)}</text>'
        yield f'<text x="{middle}" y="{height + 14}" text-anchor="middle" font-size="12" fill="{FAINT}">{escape(box.what)}</text>'


def _arrows() -> Iterator[str]:
    for arrow in ARROWS:
        (x, y), *others = arrow.corners
        way = f"M{x} {y}" + "".join(f"L{x} {y}" for x, y in others)
        colour, width, name = (STRONG, 2.4, "step") if arrow.step else (INK, 1.6, "plain")
        dashes = ' stroke-dasharray="5 4"' if arrow.dashed else ""
        yield f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes} marker-end="url(#{name})"/>'
        label, left, bottom = arrow.label
        if arrow.step:
            yield from _number(arrow.step, left - 11, bottom - 4)
        yield _words(left, bottom, label, colour)


def _story() -> Iterator[str]:
    """What the numbers mean, in the order of a batch."""
    for number, x, y, words in STORY:
        yield from _number(number, x, y)
        yield _words(x + 13, y + 4, words, INK)


def _number(number: int, x: int, y: int) -> Iterator[str]:
    yield f'<circle cx="{x}" cy="{y}" r="8" fill="{STRONG}"/>'
    yield f'<text x="{x}" y="{y + 4}" text-anchor="middle" font-size="11" font-weight="600" fill="#fff">{number}</text>'


def _words(x: int, y: int, words: str, colour: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="12" fill="{colour}">{escape(words)}</text>'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn(), encoding="utf-8")
