"""A run as one picture: faults, epochs, lag, and the reads of each shard. Pure: the same run gives the same file."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sluice_lab.nemesis.history import ShardRead
from sluice_lab.nemesis.takeover import Sample, commits
from sluice_lab.pictures import svg
from sluice_lab.scenario.topology import short

LEFT, RIGHT, TOP = 90.0, 30.0, 34.0
PIXELS = 5.0  # per second
LANE, GAP, LAG = 15.0, 14.0, 90.0
TICK = 30  # seconds
INK, PALE, FAULT, REREAD = "#444", "#ddd", "#c0392b", "#000"


@dataclass(frozen=True, slots=True)
class Injection:
    """An injected fault and its victim. `began` and `ended` are equal if it happened at one moment."""

    title: str
    began: float
    ended: float
    victim: str = ""


@dataclass(frozen=True)
class Timeline:
    """What is drawn. Times are in seconds since 1970.

    Attributes:
        reached: after each batch, how many records are behind the positions of all shards (`passes`).
    """

    title: str
    injections: Sequence[Injection]
    samples: Sequence[Sample]
    reads: Sequence[ShardRead]
    reached: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The horizontal scale of times, and the height at which the next part begins."""

    began: float
    ended: float
    y: float

    def x(self, at: float) -> float:
        """The horizontal position of a moment."""
        return LEFT + PIXELS * (min(max(at, self.began), self.ended) - self.began)

    def below(self, height: float) -> "_Layout":
        """The layout below a part of that height."""
        return _Layout(self.began, self.ended, self.y + height + GAP)


def draw(timeline: Timeline) -> str:
    """The content of an SVG file."""
    times = [sample.at for sample in timeline.samples] + [read.last for read in timeline.reads]
    layout = _Layout(min(times), max(times), TOP)
    shapes: list[str] = [svg.text(LEFT, 16, timeline.title)]
    faults, rows = _faults(timeline, layout)
    epochs = layout.below(rows * LANE)
    lag = epochs.below(LANE)
    shards = lag.below(LAG)
    bottom = shards.y + LANE * len({read.shard for read in timeline.reads})
    shapes += [
        *_grid(layout, bottom),
        *_marks(timeline, layout, bottom),
        *faults,
        *_epochs(timeline, epochs),
        *_lag(timeline, lag),
        *_shards(timeline, shards),
    ]
    return svg.document(layout.x(layout.ended) + RIGHT, bottom + 24, shapes)


def lag(samples: Sequence[Sample], reached: Mapping[int, int]) -> list[tuple[float, int]]:
    """At each sample, the number of records that were produced and are not behind the positions that were committed.

    After a reset it grows with the first batch that comes again.
    """
    batches = sorted(reached)
    ends = [0, *(reached[batch] for batch in batches)]
    return [(sample.at, max(0, sample.produced - ends[bisect_right(batches, sample.batch)])) for sample in samples]


def _grid(layout: _Layout, bottom: float) -> Iterator[str]:
    for second in range(0, int(layout.ended - layout.began) + 1, TICK):
        x = layout.x(layout.began + second)
        yield svg.line((x, TOP), (x, bottom), PALE)
        yield svg.text(x, bottom + 14, f"{second // 60}:{second % 60:02d}", INK, "middle")


def _marks(timeline: Timeline, layout: _Layout, bottom: float) -> Iterator[str]:
    for injection in timeline.injections:
        yield svg.line((layout.x(injection.began), TOP), (layout.x(injection.began), bottom), FAULT, dashed=True)
        if injection.ended > injection.began:
            yield svg.rect(
                layout.x(injection.began), TOP, layout.x(injection.ended) - layout.x(injection.began), bottom - TOP, "#c0392b14", injection.title
            )


def _faults(timeline: Timeline, layout: _Layout) -> tuple[list[str], int]:
    """Titles of the faults, in as many rows as keep them apart; returns the number of rows too."""
    ends: list[float] = []
    shapes = []
    for injection in sorted(timeline.injections, key=lambda injection: injection.began):
        words = f"{injection.title} {injection.victim}".strip()
        x = layout.x(injection.began)
        row = next((number for number, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + svg.LETTER * len(words) + 8]
        shapes.append(svg.text(x + 2, layout.y + LANE * row + 11, words, FAULT))
    return shapes, max(1, len(ends))


def _epochs(timeline: Timeline, layout: _Layout) -> Iterator[str]:
    """The holder of the lease; pale after a release."""
    yield svg.text(LEFT - 8, layout.y + 11, "lease", INK, "end")
    colours = svg.colours(sample.epoch for sample in timeline.samples)
    samples = timeline.samples
    for number, sample in enumerate(samples):
        if number and (samples[number - 1].epoch, samples[number - 1].released) == (sample.epoch, sample.released):
            continue
        end = next((later.at for later in samples[number:] if (later.epoch, later.released) != (sample.epoch, sample.released)), layout.ended)
        x, width = layout.x(sample.at), layout.x(end) - layout.x(sample.at)
        yield svg.rect(
            x, layout.y, width, LANE - 2, PALE if sample.released else colours[sample.epoch], f"{sample.epoch}, generation {sample.generation}"
        )
        if not sample.released and width > svg.LETTER * len(sample.epoch):
            yield svg.text(x + 4, layout.y + 11, sample.epoch, "white")


def _lag(timeline: Timeline, layout: _Layout) -> Iterator[str]:
    """The lag, and a tick at each commit."""
    found = lag(timeline.samples, timeline.reached)
    most = max((waiting for _, waiting in found), default=0) or 1
    bottom = layout.y + LAG
    yield svg.text(LEFT - 8, layout.y + 10, f"{most:,}", INK, "end")
    yield svg.text(LEFT - 8, bottom - 30, "records", INK, "end")
    yield svg.text(LEFT - 8, bottom - 18, "behind", INK, "end")
    yield svg.area([(layout.x(at), bottom - (LAG - 12) * waiting / most) for at, waiting in found], bottom, "#9db7d5")
    yield svg.text(LEFT - 8, bottom + 4, "commits", INK, "end")
    for sample in commits(timeline.samples):
        yield svg.rect(layout.x(sample.at), bottom, 1, 6, INK, f"batch {sample.batch}")


def _shards(timeline: Timeline, layout: _Layout) -> Iterator[str]:
    """A lane for each shard, a colour for each executor. A read of a batch that another attempt had begun has a black edge."""
    lanes = {shard: layout.y + LANE * number for number, shard in enumerate(sorted({read.shard for read in timeline.reads}))}
    colours = svg.colours(read.pod for read in timeline.reads)
    for shard, y in lanes.items():
        yield svg.text(LEFT - 8, y + 11, f"shard {short(shard)}", INK, "end")
    known: set[tuple[str, int]] = set()
    for read in sorted(timeline.reads, key=lambda read: read.first):
        x, y, width = layout.x(read.first), lanes[read.shard], layout.x(read.last) - layout.x(read.first)
        yield svg.rect(x, y, width, LANE - 3, colours[read.pod], f"{read.pod}, batch {read.batch}, attempt {read.attempt}")
        if (read.shard, read.batch) in known:
            yield svg.rect(x, y + LANE - 5, width, 2.5, REREAD, "again")
        known.add((read.shard, read.batch))
