"""What `make bench` measured, as tables: `docs/bench/*.json` has the figures, and pages have them from there.

`python -m sluice_lab.site.bench README.md docs/performance.md docs/plain-pyspark.md docs/compare.md docs/pools.md` writes them (`make
generate`); a test compares. The bench prints the same tables. Pure but for `main`.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sluice_lab import places
from sluice_lab.generate import markdown
from sluice_lab.generate.markdown import table
from sluice_lab.site import bench_compare, bench_fleet

FOLDER = places.REPO / "docs" / "bench"
QUIET = 1.0  # load average up to which nothing else counts as at work
FLOOR, SLUICE, CONNECTOR = "floor", "sluice, CBOR", "awslabs connector"

Found = Mapping[str, Any]
"""A file: `run` says when, where and on what, `settings` how, `figures` what was measured."""


def under(found: Found, spark: str = "") -> str:
    """What is printed below a table: line, date, machine and settings."""
    run = found["run"]
    beside = f", beside other work (load average {run['load']})" if run["load"] > QUIET else ""
    settings = " · ".join(f"{name}: {value}" for name, value in found["settings"].items())
    return f"{spark or 'Spark ' + run['spark']}, {run['date']}, {run['machine']}{beside}. {settings[:1].upper()}{settings[1:]}."


def catch_up(found: Found) -> str:
    """CPU and speed of every contestant, and both beside the floor's and the connector's."""
    sizes: Mapping[str, Mapping[str, Sequence[Found]]] = found["figures"]
    head = ["catching up", *(cell for size in sizes for cell in (f"{size} B: CPU-s per 1M", "x floor", "records/s"))]
    names = list(next(iter(sizes.values())))
    rows = [[name, *(cell for size in sizes.values() for cell in _speed(size, name))] for name in names]
    return "\n".join((table(head, rows), "", *_beside(sizes), under(found)))


def _speed(size: Mapping[str, Sequence[Found]], name: str) -> Iterable[str]:
    cpu, wall = _median(size[name], "cpu"), _median(size[name], "wall")
    yield from (f"{cpu:.2f}", f"{cpu / _median(size[FLOOR], 'cpu'):.2f}", f"{1000 / wall:,.0f}k")


def _has_connector(sizes: Mapping[str, Mapping[str, Sequence[Found]]]) -> bool:
    return all(size.get(CONNECTOR) for size in sizes.values())


def _beside(sizes: Mapping[str, Mapping[str, Sequence[Found]]]) -> Iterable[str]:
    """Sluice beside the connector, if somebody had it."""
    if _has_connector(sizes):
        yield "Sluice beside the connector, round by round (median, least and greatest):\n"
        for name, size in sizes.items():
            cpu, speed = _ratio(size[SLUICE], size[CONNECTOR], "cpu"), _ratio(size[CONNECTOR], size[SLUICE], "wall")
            yield f"* Records of {name} B: {cpu} times its CPU, {speed} times its records/s."
        yield ""


def backlog(found: Found) -> str:
    """How fast a shard is read that is far behind, if nobody set anything."""
    sizes = found["figures"]
    rows = [(name, *(f"{size[name]:.2f}" for size in sizes.values())) for name in next(iter(sizes.values()))]
    return "\n".join((table(("far behind, by defaults", *(f"{size} B: MB/s a shard" for size in sizes)), rows), "", under(found)))


def tip(found: Found) -> str:
    """How long a record waits."""
    rows = [(f"{shards} shards", f"{each['median']:.0f}", f"{each['p90']:.0f}") for shards, each in found["figures"].items()]
    return "\n".join((table(("at the tip", "put to sink, ms: median", "p90"), rows), "", under(found)))


def quiet(found: Found) -> str:
    """How long a record waits where records come seldom."""
    head = ("shards", "records a minute and shard", "`intervalSeconds`", "`probeShare`", "put to sink, ms: median", "p90", "a batch, ms")
    rows = [_quiet(each) for each in found["figures"]]
    return "\n".join((table((*head, "GetRecords a second and shard", "throttled"), rows), "", under(found)))


def _quiet(each: Found) -> tuple[str, ...]:
    share = "omitted" if each["share"] is None else f"{each['share']:g}"
    settings = (f"{each['shards']}", f"{each['rate'] * 60:.0f}", f"{each['interval']:g}", share)
    return (*settings, *(f"{each[what]:.0f}" for what in ("median", "p90", "batch")), *(f"{each[what]:.2f}" for what in ("calls", "throttled")))


def lines(found: Found) -> str:
    """A batch at the tip on each line, the last one's as the measure."""
    head = ("a batch at the tip", "Spark", "ms", "CPU-ms", "JVM", "Python workers", "driver", "CPU, x the last line's", "workers, x the last line's")
    figures = found["figures"]
    rows = [row for shards, rounds in figures.items() for row in _of_lines(shards, rounds)]
    return "\n".join((table(head, rows), "", under(found, "Spark " + ", ".join(next(iter(figures.values()))[0]))))


def _of_lines(shards: str, rounds: Sequence[Mapping[str, Found]]) -> Iterable[tuple[str, ...]]:
    last = list(rounds[0])[-1]
    for line in rounds[0]:
        of, to = [each[line] for each in rounds], [each[last] for each in rounds]
        figures = (f"{_median(of, what):.0f}" for what in ("ms", "cpu", "jvm", "workers", "driver"))
        yield f"{shards} shards", line, *figures, *(("1", "1") if line == last else (_ratio(of, to, "cpu"), _ratio(of, to, "workers")))


def lines_catching_up(found: Found) -> str:
    """What a line costs while catching up."""
    figures = found["figures"]
    lines_ = "Spark " + ", ".join(figures)
    rows = [
        ("CPU-s per 1M records", *(f"{each[SLUICE]['cpu']:.2f}" for each in figures.values())),
        ("of these the floor", *(f"{each[FLOOR]['cpu']:.2f}" for each in figures.values())),
        ("records/s", *(f"{1000 / each[SLUICE]['wall']:.0f}k" for each in figures.values())),
    ]
    return "\n".join((table(("", *figures), rows), "", under(found, lines_)))


def start(found: Found) -> str:
    """The first 100,000 records."""
    figures = found["figures"]["rounds"]
    head = ("a cold start, to 100,000 records", "s", "CPU-s", "JVM", "Python workers", "driver")
    rows = [(name, *(f"{_median(each, what):.1f}" for what in ("wall", "cpu", "jvm", "workers", "driver"))) for name, each in figures.items() if each]
    said = []
    if figures.get(CONNECTOR):
        wall, cpu = (_ratio(figures[SLUICE], figures[CONNECTOR], what) for what in ("wall", "cpu"))
        said = [f"Sluice beside the connector, round by round (median, least and greatest): {wall} its time, {cpu} its CPU.\n"]
    return "\n".join((table(head, rows), "", *said, "Second by second, in one more start:\n", _timeline(found), "", under(found)))


def _timeline(found: Found) -> str:
    """Moments, and programs with their CPU."""
    told = found["figures"]["timeline"]
    rows = [(f"{at:.1f}", what if cpu is None else f"begins: {what}", "" if cpu is None else f"{cpu:.1f}") for what, at, cpu in told]
    return table(("at second", "", "CPU-s until the end"), rows)


def extremes(found: Found) -> str:
    """Nothing at all, and as much as there can be."""
    idle, held = found["figures"]["idle"], found["figures"]["held"]
    rows = [
        (f"batches of a stream with 4 records in 20 s, over {idle['seconds']:.0f} s", str(idle["batches"])),
        ("GetRecords a second and shard in that time", f"{idle['calls']:.2f}"),
        ("longest wait of a record put on the idle stream", f"{idle['waited'] / 1000:.1f} s"),
        (f"{held['megabytes']:.0f} MB/s on 8 shards: ms behind the tip, first and last third", f"{held['early']:.0f}, {held['late']:.0f}"),
    ]
    return "\n".join((table(("idle, and at the limits", ""), rows), "", under(found)))


def lake(found: Found) -> str:
    """The sinks beside Spark alone."""
    sizes = found["figures"]
    cells = ("CPU-s per 1M", "x floor", "records/s", "x floor's time")
    head = ("into a lake on S3", *(f"{size} B: {cell}" if cell == cells[0] else cell for size in sizes for cell in cells))
    kinds = list(next(iter(sizes.values())))
    rows = [
        (f"{kind}: {name}", *(cell for size in sizes.values() for cell in _stored(size[kind], who)))
        for kind in kinds
        for who, name in ((FLOOR, "Spark alone"), (SLUICE, "sluice"))
    ]
    return "\n".join((table(head, rows), "", under(found)))


def _stored(pair: Mapping[str, Found], who: str) -> Iterable[str]:
    of, to = pair[who], pair[FLOOR]
    yield from (f"{of['cpu']:.2f}", f"{of['cpu'] / to['cpu']:.2f}", f"{1000 / of['wall']:.0f}k", f"{of['wall'] / to['wall']:.2f}")


def compare(found: Found) -> str:
    """Sluice beside KCL, in four scenarios."""
    return "\n".join((bench_compare.rows(found["figures"], found["run"]["spark"]), "", under(found)))


def fleet(found: Found) -> str:
    """A pool beside drivers of their own, on a cluster."""
    return "\n".join((bench_fleet.rows(found["figures"]), "", under(found)))


def readme(files: Mapping[str, Found]) -> str:
    """The rows of README.md."""
    held, idle = (files["extremes"]["figures"][what] for what in ("held", "idle"))
    waits = (f"{shards} shards: median {each['median']:.0f} ms" for shards, each in files["tip"]["figures"].items())
    rows = [
        _in_short(files["catch-up"]),
        (f"a batch at the tip, from trigger to commit, one after the other ({_dated(files['lines'])})", "; ".join(_batches(files["lines"]))),
        (f"from put to sink, a batch every 500 ms ({_dated(files['tip'])})", "; ".join(waits)),
        (f"{held['megabytes']:.0f} MB/s on 8 shards ({_dated(files['extremes'])})", f"held, {held['late']:.0f} ms behind"),
        ("an idle stream", f"one batch an hour, and one small probe a second and shard; {idle['calls']:.1f} in the five minutes after a record"),
    ]
    return table(("batches, `local[2]`", ""), rows)


def _in_short(found: Found) -> tuple[str, str]:
    """Catching up, in a row."""
    speeds = [{name: _median(each, "cpu") for name, each in size.items() if each} for size in found["figures"].values()]
    ours, boto = (" / ".join(f"{each[name] / each[FLOOR]:.1f}" for each in speeds) for name in (SLUICE, "boto3 to tuples"))
    cpu = " / ".join(f"{each[SLUICE]:.1f}" for each in speeds)
    what = f"catching up, records of {' / '.join(found['figures'])} B, fetch to commit ({_dated(found)})"
    floor = "the cost of Spark producing the same rows without reading"
    return what, f"{cpu} CPU-s per million: {ours} times {floor}; a plain boto3 reader costs {boto} times{_beside_in_short(found['figures'])}"


def _beside_in_short(sizes: Mapping[str, Mapping[str, Sequence[Found]]]) -> str:
    """The connector, if somebody had it."""
    if not _has_connector(sizes):
        return ""
    cpu = " / ".join(f"{statistics.median(_quotients(size[SLUICE], size[CONNECTOR], 'cpu')):.2f}" for size in sizes.values())
    speed = " / ".join(f"{statistics.median(_quotients(size[CONNECTOR], size[SLUICE], 'wall')):.2f}" for size in sizes.values())
    return f"; beside the awslabs connector {cpu} times its CPU at {speed} times its records/s"


def _batches(found: Found) -> Iterable[str]:
    """A batch at the tip on the image's line."""
    for shards, rounds in found["figures"].items():
        each = [round_[found["run"]["line"]] for round_ in rounds]
        yield f"{shards} shards {_median(each, 'ms'):.0f} ms, {_median(each, 'cpu'):.0f} CPU-ms"


def _dated(found: Found) -> str:
    return f"Spark {found['run']['spark']}, {found['run']['date']}"


def _median(found: Sequence[Found], what: str) -> float:
    return statistics.median(float(each[what]) for each in found)


def _ratio(of: Sequence[Found], to: Sequence[Found], what: str) -> str:
    """Median ratio of neighbours, and between which they lie."""
    each = _quotients(of, to, what)
    return f"{statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})"


def _quotients(of: Sequence[Found], to: Sequence[Found], what: str) -> list[float]:
    return [float(one[what]) / float(other[what]) for one, other in zip(of, to, strict=True)]


TABLES: Mapping[str, Callable[[Found], str]] = {
    "catch-up": catch_up,
    "backlog": backlog,
    "tip": tip,
    "quiet": quiet,
    "lines": lines,
    "lines-catch-up": lines_catching_up,
    "start": start,
    "extremes": extremes,
    "lake": lake,
    "compare": compare,
    "fleet": fleet,
}
ON_A_CLUSTER = frozenset({"fleet"})  # tables of `pool_fleet`, which `make bench` does not run


def shown(name: str, found: Found) -> str:
    """The tables of a file."""
    return TABLES[name](found)


def kept() -> dict[str, Found]:
    """The files that are committed."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def filled(text: str) -> str:
    """A page with its tables as the files have them."""
    files = kept()
    parts = {function.__name__: functools.partial(function, files[name]) for name, function in TABLES.items() if name in files}
    return markdown.filled(text, parts | {"readme": functools.partial(readme, files)})


def main(pages: Iterable[str]) -> None:
    """Writes the tables of pages."""
    for page in map(Path, pages):
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
