"""What happened, as one picture: deeds, epochs, lag, and who worked on each shard. Pure; the same run gives the same file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sluice_lab.nemesis import svg
from sluice_lab.nemesis.takeover import Look, commits
from sluice_lab.nemesis.witness import Stint
from sluice_lab.scenario.topology import short

LEFT, RIGHT, TOP = 90.0, 30.0, 34.0
PIXELS = 5.0  # a second
LANE, GAP, LAG = 15.0, 14.0, 90.0
TICK = 30  # seconds
LETTER = 6.2  # pixels, about
INK, PALE, HARM, AGAIN = "#444", "#ddd", "#c0392b", "#000"


@dataclass(frozen=True, slots=True)
class Done:
    """A deed that was done: what to, from when to when (the same for what is done once)."""

    title: str
    began: float
    ended: float
    note: str = ""


@dataclass(frozen=True)
class Story:
    """What is drawn. `stored` is the number of records of each batch; times are seconds since the epoch."""

    title: str
    done: Sequence[Done]
    looks: Sequence[Look]
    stints: Sequence[Stint]
    stored: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Where times lie, and which height is free."""

    began: float
    ended: float
    y: float

    def x(self, at: float) -> float:
        """A moment."""
        return LEFT + PIXELS * (min(max(at, self.began), self.ended) - self.began)

    def below(self, height: float) -> "_Sheet":
        """After something of that height."""
        return _Sheet(self.began, self.ended, self.y + height + GAP)


def draw(story: Story) -> str:
    """An SVG file."""
    times = [look.at for look in story.looks] + [stint.last for stint in story.stints]
    sheet = _Sheet(min(times), max(times), TOP)
    shapes: list[str] = [svg.text(LEFT, 16, story.title)]
    deeds, rows = _deeds(story, sheet)
    epochs = sheet.below(rows * LANE)
    lag = epochs.below(LANE)
    shards = lag.below(LAG)
    bottom = shards.y + LANE * len({stint.shard for stint in story.stints})
    shapes += [*_grid(sheet, bottom), *_marks(story, sheet, bottom), *deeds, *_epochs(story, epochs), *_lag(story, lag), *_shards(story, shards)]
    return svg.document(sheet.x(sheet.ended) + RIGHT, bottom + 24, shapes)


def lag(looks: Sequence[Look], stored: Mapping[int, int]) -> list[tuple[float, int]]:
    """At each look, the records that had been put and were in no committed batch."""
    found, counted, last = [], 0, 0
    for look in looks:
        counted += sum(stored.get(batch, 0) for batch in range(last + 1, look.batch + 1))
        last = max(last, look.batch)
        found.append((look.at, max(0, look.produced - counted)))
    return found


def _grid(sheet: _Sheet, bottom: float) -> Iterator[str]:
    for second in range(0, int(sheet.ended - sheet.began) + 1, TICK):
        x = sheet.x(sheet.began + second)
        yield svg.line((x, TOP), (x, bottom), PALE)
        yield svg.text(x, bottom + 14, f"{second // 60}:{second % 60:02d}", INK, "middle")


def _marks(story: Story, sheet: _Sheet, bottom: float) -> Iterator[str]:
    for done in story.done:
        yield svg.line((sheet.x(done.began), TOP), (sheet.x(done.began), bottom), HARM, dashed=True)
        if done.ended > done.began:
            yield svg.rect(sheet.x(done.began), TOP, sheet.x(done.ended) - sheet.x(done.began), bottom - TOP, "#c0392b14", done.title)


def _deeds(story: Story, sheet: _Sheet) -> tuple[list[str], int]:
    """Their titles, in as many rows as keep them apart."""
    ends: list[float] = []
    shapes = []
    for done in sorted(story.done, key=lambda done: done.began):
        words = f"{done.title} {done.note}".strip()
        x = sheet.x(done.began)
        row = next((number for number, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + LETTER * len(words) + 8]
        shapes.append(svg.text(x + 2, sheet.y + LANE * row + 11, words, HARM))
    return shapes, max(1, len(ends))


def _epochs(story: Story, sheet: _Sheet) -> Iterator[str]:
    """Who holds the lease; pale after a release."""
    yield svg.text(LEFT - 8, sheet.y + 11, "lease", INK, "end")
    colours = svg.colours(look.epoch for look in story.looks)
    looks = story.looks
    for number, look in enumerate(looks):
        if number and (looks[number - 1].epoch, looks[number - 1].released) == (look.epoch, look.released):
            continue
        end = next((later.at for later in looks[number:] if (later.epoch, later.released) != (look.epoch, look.released)), sheet.ended)
        x, width = sheet.x(look.at), sheet.x(end) - sheet.x(look.at)
        yield svg.rect(x, sheet.y, width, LANE - 2, PALE if look.released else colours[look.epoch], f"{look.epoch}, generation {look.generation}")
        if not look.released and width > LETTER * len(look.epoch):
            yield svg.text(x + 4, sheet.y + 11, look.epoch, "white")


def _lag(story: Story, sheet: _Sheet) -> Iterator[str]:
    """Records waiting, and a tick at each commit."""
    found = lag(story.looks, story.stored)
    most = max((waiting for _, waiting in found), default=0) or 1
    bottom = sheet.y + LAG
    yield svg.text(LEFT - 8, sheet.y + 10, f"{most:,}", INK, "end")
    yield svg.text(LEFT - 8, bottom - 30, "records", INK, "end")
    yield svg.text(LEFT - 8, bottom - 18, "behind", INK, "end")
    yield svg.area([(sheet.x(at), bottom - (LAG - 12) * waiting / most) for at, waiting in found], bottom, "#9db7d5")
    yield svg.text(LEFT - 8, bottom + 4, "commits", INK, "end")
    for look in commits(story.looks):
        yield svg.rect(sheet.x(look.at), bottom, 1, 6, INK, f"batch {look.batch}")


def _shards(story: Story, sheet: _Sheet) -> Iterator[str]:
    """A lane a shard, a colour an executor; work on a batch that another attempt had begun has a black edge."""
    lanes = {shard: sheet.y + LANE * number for number, shard in enumerate(sorted({stint.shard for stint in story.stints}))}
    colours = svg.colours(stint.pod for stint in story.stints)
    for shard, y in lanes.items():
        yield svg.text(LEFT - 8, y + 11, f"shard {short(shard)}", INK, "end")
    known: set[tuple[str, int]] = set()
    for stint in sorted(story.stints, key=lambda stint: stint.first):
        x, y, width = sheet.x(stint.first), lanes[stint.shard], sheet.x(stint.last) - sheet.x(stint.first)
        yield svg.rect(x, y, width, LANE - 3, colours[stint.pod], f"{stint.pod}, batch {stint.batch}, attempt {stint.attempt}")
        if (stint.shard, stint.batch) in known:
            yield svg.rect(x, y + LANE - 5, width, 2.5, AGAIN, "again")
        known.add((stint.shard, stint.batch))
