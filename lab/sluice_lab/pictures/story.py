"""`python -m sluice_lab.pictures.story DASHBOARD FOLDER`: draws what panels of a dashboard showed in an incident (`make generate`); a test compares.

The answers are Prometheus' own, recorded by `python -m sluice_lab.demo.incidents`. All panels of a picture share one axis of time, and its marks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sluice_lab.pictures import svg
from sluice_lab.pictures.axes import levels
from sluice_lab.pictures.panels import DrawnPanel, panels
from sluice_lab.pictures.units import written

RECORDED = Path(__file__).with_name("recorded")
INK, FAINT, GRID, MARK = "#222", "#666", "#e6e8eb", "#c0392b"
WIDTH, LEFT, RIGHT = 860, 70, 690  # the curves; legends are right of them
TITLE, LINE, HEAD, STRIP, GAP, FOOT = 24, 15, 14, 84, 34, 30
THIN, WIDER = 1.5, 1.4  # pixels
TICK, MISSING = 10, 4.0  # seconds between times of the axis; without a point for so long, a curve ends


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: points are (seconds since the picture begins, value), in order of time."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Recording:
    """An incident.

    Attributes:
        seconds: how long it is.
        marks: what happened, by the second.
        answers: series of each panel, by its title.
    """

    title: str
    seconds: float
    marks: Sequence[tuple[float, str]]
    answers: Mapping[str, Sequence[Series]]


@dataclass(frozen=True, slots=True)
class _Strip:
    """Where a panel's curves are: its upper edge, and the values at its lower and upper edge."""

    seconds: float
    top: float
    low: float
    high: float

    def place(self, point: tuple[float, float]) -> tuple[float, float]:
        """Pixels of a point."""
        height = STRIP * (point[1] - self.low) / (self.high - self.low)
        return LEFT + (RIGHT - LEFT) * point[0] / self.seconds, self.top + STRIP - height


def recorded(name: str) -> Recording:
    """A recording that is kept beside this module."""
    kept = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    answers = {title: [Series(one["name"], one["points"]) for one in found] for title, found in kept["answers"].items()}
    return Recording(kept["title"], kept["seconds"], kept["marks"], answers)


def draw(recording: Recording, found: Sequence[DrawnPanel]) -> str:
    """The content of a file; `found` has the panels of the dashboard.

    Raises:
        ValueError: the dashboard has no such panel, or a panel has no data.
    """
    rows = _rows(recording.marks, recording.seconds)
    first = TITLE + LINE * (max(rows, default=0) + 1) + HEAD
    tops = [first + number * (STRIP + GAP) for number in range(len(recording.answers))]
    bottom = tops[-1] + STRIP
    shapes = [svg.text(LEFT, 18, recording.title, INK), *_times(recording.seconds, first, bottom)]
    for top, (title, series) in zip(tops, recording.answers.items(), strict=True):
        shapes += _panel(recording, _named(found, title), series, top)
    return svg.document(WIDTH, bottom + FOOT, [*shapes, *_marks(recording, rows, bottom)])


def _named(found: Sequence[DrawnPanel], title: str) -> DrawnPanel:
    named = [panel for panel in found if panel.title == title]
    if not named:
        raise ValueError(f"{title}: the dashboard has no such panel; run python -m sluice_lab.demo.incidents")
    return named[0]


def _panel(recording: Recording, panel: DrawnPanel, series: Sequence[Series], top: float) -> Iterator[str]:
    values = [value for each in series for _, value in each.points]
    if not values:
        raise ValueError(f"{panel.title}: no data")
    marks = levels(min(values), max(values), panel.unit)
    strip = _Strip(recording.seconds, top, marks[0], marks[-1])
    yield svg.text(LEFT, top - 8, panel.title, INK)
    for value in marks:
        y = strip.place((0, value))[1]
        yield svg.line((LEFT, y), (RIGHT, y), GRID)
        yield svg.text(LEFT - 6, y + 4, written(value, panel.unit), FAINT, "end")
    yield from _curves(strip, series)


def _curves(strip: _Strip, series: Sequence[Series]) -> Iterator[str]:
    colours = svg.colours(each.name for each in series)
    for number, (name, colour) in enumerate(colours.items()):
        y = strip.top + 6 + LINE * number
        yield svg.rect(RIGHT + 14, y - 4, 12, 4, colour)
        yield svg.text(RIGHT + 32, y + 1, name, INK)
    for number, each in enumerate(series, 1):
        width = THIN + WIDER * (len(series) - number)  # so that a curve that lies under others is seen on both sides of them
        for piece in _pieces(each.points):
            yield svg.curve([strip.place(point) for point in piece], colours[each.name], width)


def _pieces(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """A curve ends where there was nothing to scrape, and begins again."""
    if not points:
        return []
    found = [[points[0]]]
    for earlier, later in pairwise(points):
        if later[0] - earlier[0] > MISSING:
            found.append([])
        found[-1].append(later)
    return found


def _times(seconds: float, top: float, bottom: float) -> Iterator[str]:
    for second in range(0, int(seconds) + 1, TICK):
        x = LEFT + (RIGHT - LEFT) * second / seconds
        yield svg.line((x, top), (x, bottom), GRID)
        yield svg.text(x, bottom + 16, f"{second // 60}:{second % 60:02d}", FAINT, "middle")


def _rows(marks: Sequence[tuple[float, str]], seconds: float) -> list[int]:
    """The row of each mark's words, so that they lie apart."""
    ends: list[float] = []
    found = []
    for at, words in marks:
        x = (RIGHT - LEFT) * at / seconds
        row = next((number for number, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + svg.LETTER * len(words) + 14]
        found.append(row)
    return found


def _marks(recording: Recording, rows: Sequence[int], bottom: float) -> Iterator[str]:
    for (at, words), row in zip(recording.marks, rows, strict=True):
        x, y = LEFT + (RIGHT - LEFT) * at / recording.seconds, TITLE + LINE * (row + 1)
        yield svg.line((x, y - 9), (x, bottom), MARK, dashed=True)
        yield svg.text(x + 4, y, words, MARK)


def main(dashboard: Path, folder: Path) -> None:
    """Draw all recordings into a folder."""
    found = panels(json.loads(dashboard.read_text(encoding="utf-8")))
    for path in sorted(RECORDED.glob("*.json")):
        (folder / f"{path.stem}.svg").write_text(draw(recorded(path.stem), found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
