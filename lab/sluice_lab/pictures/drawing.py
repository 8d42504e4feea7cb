"""A dashboard as SVG: readable on light and dark pages, as it brings its own background. Pure, and the same for the same answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sluice_lab.pictures import svg
from sluice_lab.pictures.panels import COLUMN, LINE, DrawnPanel
from sluice_lab.pictures.units import written

INK, FAINT, FRAME = "#222", "#777", "#d0d4da"
HEAD, FOOT, LEFT, ROW = 28, 46, 62, 22
GAP = 5  # steps


@dataclass(frozen=True, slots=True)
class Series:
    """One curve, or one cell of a table: points are (Unix seconds, value), in order of time.

    Attributes:
        name: of the curve, or of the table's row.
        column: of the table.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    column: str = ""


Answer = Callable[[DrawnPanel], Sequence[Series]]


def picture(found: Sequence[DrawnPanel], answer: Answer) -> str:
    """A whole dashboard; `answer` gives the series of a panel.

    Raises:
        ValueError: a panel has no data, or is of a kind that cannot be drawn.
    """
    height = max(panel.y + panel.height for panel in found)
    shapes = [shape for panel in found for shape in _panel(panel, answer)]
    return svg.document(24 * COLUMN, height + LINE // 2, shapes)


def _panel(panel: DrawnPanel, answer: Answer) -> list[str]:
    if panel.kind == "row":
        return [svg.text(panel.x + 6, panel.y + 20, panel.title, INK)]
    series = answer(panel)
    if not any(each.points for each in series):
        raise ValueError(f"{panel.title}: no data")
    if panel.kind not in KINDS:
        raise ValueError(f"{panel.title}: a panel of kind {panel.kind} cannot be drawn")
    frame = svg.rect(panel.x + 3, panel.y + 3, panel.width - 6, panel.height - 6, FRAME, panel.title)
    inside = svg.rect(panel.x + 4, panel.y + 4, panel.width - 8, panel.height - 8, "#fff")
    return [frame, inside, svg.text(panel.x + 12, panel.y + 21, panel.title, INK), *KINDS[panel.kind](panel, series)]


def _stat(panel: DrawnPanel, series: Sequence[Series]) -> list[str]:
    last = next(each.points[-1][1] for each in series if each.points)
    middle = panel.x + panel.width / 2
    return [f"<g font-size='26'>{svg.text(middle, panel.y + panel.height / 2 + 16, written(last, panel.unit), INK, 'middle')}</g>"]


def _curves(panel: DrawnPanel, series: Sequence[Series]) -> list[str]:
    points = [point for each in series for point in each.points]
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    top = max(value for _, value in points) or 1.0
    x0, x1 = panel.x + LEFT, panel.x + panel.width - 14
    y0, y1 = panel.y + panel.height - FOOT, panel.y + HEAD + 10

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return x0 + (x1 - x0) * (point[0] - first) / ((last - first) or 1), y0 - (y0 - y1) * point[1] / top

    colours = svg.colours(each.name for each in series)
    grid = [shape for part in (0, 0.5, 1) for shape in _level(panel, top * part, x0, x1, y0 - (y0 - y1) * part)]
    times = [_moment((last - first) * part, (x0 + (x1 - x0) * part, y0), anchor) for part, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))]
    pieces = [(each.name, piece) for each in series for piece in _pieces(each.points)]
    lines = [_line([place(point) for point in piece], colours[name]) for name, piece in pieces]
    return [*grid, *times, *lines, *_legend(panel, colours)]


def _level(panel: DrawnPanel, value: float, x0: float, x1: float, y: float) -> list[str]:
    return [svg.line((x0, y), (x1, y), "#e6e8eb"), svg.text(x0 - 6, y + 4, written(value, panel.unit), FAINT, "end")]


def _moment(seconds: float, at: tuple[float, float], anchor: str) -> str:
    """Time since the curves begin, below their axis."""
    return svg.text(at[0], at[1] + 12, written(seconds, "s"), FAINT, anchor)


def _pieces(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """A curve ends where its series has no points for some steps, and begins again."""
    step = min((later[0] - earlier[0] for earlier, later in pairwise(points)), default=0)
    found: list[list[tuple[float, float]]] = []
    for point in points:
        if not found or point[0] - found[-1][-1][0] > GAP * step:
            found.append([])
        found[-1].append(point)
    return found


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    return f"<polyline points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}' fill='none' stroke='{colour}' stroke-width='1.5'/>"


def _legend(panel: DrawnPanel, colours: Mapping[str, str]) -> list[str]:
    shapes, x, y = [], panel.x + 14.0, panel.y + panel.height - 16
    for name, colour in colours.items():
        width = 24 + 6.2 * len(name)
        if x + width > panel.x + panel.width - 10:
            break  # no room: the curves stay, their names do not
        shapes += [svg.rect(x, y - 6, 10, 4, colour), svg.text(x + 14, y, name, INK)]
        x += width
    return shapes


def _table(panel: DrawnPanel, series: Sequence[Series]) -> list[str]:
    cells = {(each.name, each.column): each.points[-1][1] for each in series if each.points}
    names = list(dict.fromkeys(name for name, _ in cells))
    places = [panel.x + 12 + (panel.width - 24) * n / (len(panel.targets) + 1) for n in range(len(panel.targets) + 1)]
    shapes = [svg.text(x, panel.y + 46, target.legend, FAINT) for x, target in zip(places[1:], panel.targets, strict=True)]
    for row, name in enumerate(names[: (panel.height - 60) // ROW]):
        y = panel.y + 46 + ROW * (row + 1)
        shapes += [svg.line((panel.x + 12, y - 15), (panel.x + panel.width - 12, y - 15), "#e6e8eb"), svg.text(places[0], y, name, INK)]
        found = [(x, cells.get((name, target.legend)), target.unit) for x, target in zip(places[1:], panel.targets, strict=True)]
        shapes += [svg.text(x, y, written(value, unit), INK) for x, value, unit in found if value is not None]
    return shapes


KINDS: Mapping[str, Callable[[DrawnPanel, Sequence[Series]], list[str]]] = {"stat": _stat, "timeseries": _curves, "table": _table}
