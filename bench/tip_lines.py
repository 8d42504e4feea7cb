"""What a batch at the tip costs on each line of Spark, in rounds: each round runs every line, so that ratios are of runs that are neighbours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from canned import Options
from consumer_run import UNPACED, Plan, kinesis, run
from slab import CBOR, Shape

WARM_UP, BATCHES = 200, 100  # Java compiles for long
RATE, SIZE = 150.0, 200  # records a second and shard, bytes: every shard brings some to every batch
SHARDS_PER_TASK = 32
LONGEST_SECONDS = 600.0  # of a run: beside other work its batches take many times as long
KINDS = ("cpu", "jvm", "workers", "driver")

Figures = dict[str, float]


@dataclass(frozen=True)
class Length:
    warm_up: int = WARM_UP
    batches: int = BATCHES


LONG = Length()
NONE: Mapping[str, str] = MappingProxyType({})


def rounds(lines: Sequence[str], shards: int, dynamodb: str, count: int, images: Mapping[str, str] = NONE) -> Iterator[dict[str, Figures]]:
    """Figures by line, a dictionary a round; every other round begins with the last line. `images`: tags by line, each run in a container as well."""
    runs = {line: (line, "") for line in lines} | {f"{line}, image": (line, tag) for line, tag in images.items()}
    names = sorted(runs, key=lambda name: (lines.index(runs[name][0]), name))
    for number in range(count):
        found = {name: batch(runs[name][0], shards, dynamodb, image=runs[name][1]) for name in (names if number % 2 == 0 else names[::-1])}
        yield {name: found[name] for name in names}


def batch(line: str, shards: int, dynamodb: str, length: Length = LONG, more: Mapping[str, str] | None = None, image: str = "") -> Figures:
    """Milliseconds from trigger to commit (median), and CPU-milliseconds by kind of process (mean), of batches that follow each other at once."""
    shape = Shape(30_000, SIZE, round(time.time() * 1000) + 5000, RATE)
    options = {"intervalSeconds": 0, "shardsPerTask": SHARDS_PER_TASK}
    with kinesis(Options(shards, shape, (CBOR,))) as endpoint:
        count = length.warm_up + length.batches
        found = run(Plan(endpoint, dynamodb, "noop", options, count, LONGEST_SECONDS, path=UNPACED, line=line, more=dict(more or {}), image=image))
    marks = [mark for mark in found.marks if mark["batch"] >= length.warm_up]
    count = marks[-1]["batch"] - marks[0]["batch"]
    millis = {kind: (marks[-1][kind] - marks[0][kind]) * 1000 / count for kind in KINDS}
    return {"ms": statistics.median(batch.seconds * 1000 for batch in found.batches[length.warm_up :])} | millis
