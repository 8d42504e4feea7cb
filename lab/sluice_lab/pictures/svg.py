"""The few shapes of SVG that timelines and dashboards need, as text. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

FONT = "font-family='sans-serif' font-size='11'"
LETTER = 6.2  # pixels, approximately


def rect(x: float, y: float, width: float, height: float, fill: str, title: str = "") -> str:
    """A box; a viewer shows its title under the pointer."""
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0.8):.1f}' height='{height:.1f}' fill='{fill}'>{_title(title)}</rect>"


def line(start: tuple[float, float], end: tuple[float, float], colour: str, dashed: bool = False) -> str:  # noqa: FBT001, FBT002 - of a drawing
    """A thin line between two points."""
    dashes = " stroke-dasharray='3 3'" if dashed else ""
    (x1, y1), (x2, y2) = start, end
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}'{dashes}/>"


def text(x: float, y: float, words: str, colour: str = "#222", anchor: str = "start") -> str:
    """A text; `anchor` says which part of it is at x: start, middle or end."""
    return f"<text x='{x:.1f}' y='{y:.1f}' fill='{colour}' text-anchor='{anchor}'>{escape(words)}</text>"


def area(points: Sequence[tuple[float, float]], bottom: float, fill: str) -> str:
    """The area between a curve and its bottom."""
    if not points:
        return ""
    outline = [(points[0][0], bottom), *points, (points[-1][0], bottom)]
    return f"<polygon points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in outline)}' fill='{fill}'/>"


def curve(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    """A line through points. One point alone is a dot."""
    if len(points) == 1:
        return f"<circle cx='{points[0][0]:.1f}' cy='{points[0][1]:.1f}' r='1.5' fill='{colour}'/>"
    return f"<polyline points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}' fill='none' stroke='{colour}' stroke-width='{width:g}'/>"


def document(width: float, height: float, shapes: Iterable[str]) -> str:
    """A whole file."""
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' {FONT}>"
    return "\n".join([head, f"<rect width='{width:.0f}' height='{height:.0f}' fill='white'/>", *shapes, "</svg>", ""])


def colours(names: Iterable[str]) -> Mapping[str, str]:
    """A colour for each name, in order of appearance. A dozen colours repeat."""
    return {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(dict.fromkeys(names))}


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""


PALETTE = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#1f5a8a", "#a0cbe8", "#8cd17d", "#d4a6c8")
