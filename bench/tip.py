"""At the tip of a stream: what a batch takes, how long a record waits, and whether a stream at its limits is held."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from canned import Options
from consumer_run import Plan, asked, kinesis, run
from slab import CBOR, Shape

WARM_UP, BATCHES = 30, 40
INTERVAL = 0.5
RATE, SIZE, SHARDS_PER_TASK = 20.0, 200, 32
LIMIT_RATE = 2_000_000 / 1024  # records of 1 KiB a second: a shard's two megabytes


def waits(shards: int, dynamodb: str) -> dict[str, float]:
    """Milliseconds from the arrival of a record to its presence in the driver: median and 90th percentile. Up to an interval of it is rest."""
    shape = Shape(20_000, SIZE, round(time.time() * 1000) + 5000, RATE)
    with kinesis(Options(shards, shape, (CBOR,), limits=True)) as endpoint:
        found = run(Plan(endpoint, dynamodb, "sink", {"intervalSeconds": INTERVAL, "shardsPerTask": SHARDS_PER_TASK}, WARM_UP + BATCHES, 600.0))
    millis = [seconds * 1000 for mark in found.marks if mark["batch"] > WARM_UP for seconds in mark["waited"]]
    return {"median": statistics.median(millis), "p90": statistics.quantiles(millis, n=10)[8]}


@dataclass(frozen=True)
class Quiet:
    """Records at any moment, and an interval. `share`: `stream.probeShare`; None: omitted."""

    shards: int
    share: float | None
    interval: float = 0.0
    rate: float = 1.0
    batches: int = 60
    warm_up: int = WARM_UP


@dataclass(frozen=True)
class Waited:
    """Milliseconds that a record waited, median and 90th percentile; of a batch, median; and calls a second and shard, some of them throttled."""

    median: float
    p90: float
    batch: float
    calls: float
    throttled: float


def quiet(dynamodb: str, way: Quiet) -> Waited:
    """With an interval of 0, a batch begins when a probe has found something."""
    shape = Shape(2000, 200, round(time.time() * 1000) + 5000, way.rate, seed=1)
    with kinesis(Options(way.shards, shape, (CBOR,), limits=True)) as endpoint:
        stream, batches = {"probeShare": way.share}, way.warm_up + way.batches
        plan = Plan(endpoint, dynamodb, "sink", {"intervalSeconds": way.interval}, batches, 900.0, stream=stream)
        begun, before = time.monotonic(), asked(endpoint)
        found = run(plan)
        seconds, counts = time.monotonic() - begun, asked(endpoint)
    millis = [seconds * 1000 for mark in found.marks if mark["batch"] > way.warm_up for seconds in mark["waited"]]
    took = [batch.seconds * 1000 for batch in found.batches[way.warm_up :] if batch.records]
    made = [(counts.get(name, 0) - before.get(name, 0)) / seconds / way.shards for name in ("GetRecords", "throttled")]
    return Waited(statistics.median(millis), statistics.quantiles(millis, n=10)[8], statistics.median(took), *made)


@dataclass(frozen=True)
class Idle:
    """An idle stream: batches run in these seconds, and calls a second and shard; and how long its next record waited, milliseconds."""

    seconds: float
    batches: int
    calls: float
    waited: float


def idle(dynamodb: str, shards: int = 4) -> Idle:
    """A record a shard every twenty seconds; in between nothing happens but probes."""
    shape = Shape(20, 200, round(time.time() * 1000), 0.05)
    with kinesis(Options(shards, shape, (CBOR,), limits=True)) as endpoint:
        begun, before = time.monotonic(), asked(endpoint).get("GetRecords", 0)
        found = run(Plan(endpoint, dynamodb, "sink", {"intervalSeconds": INTERVAL}, 10, 130.0))
        seconds, calls = time.monotonic() - begun, asked(endpoint)["GetRecords"] - before
    waited = [wait * 1000 for mark in found.marks[2:] for wait in mark["waited"]]
    return Idle(seconds, len(found.batches), calls / seconds / shards, max(waited))


@dataclass(frozen=True)
class Held:
    """Two megabytes a second in each of eight shards: milliseconds behind the tip in the first and the last third of the batches."""

    early: float
    late: float
    megabytes: float
    throttled: int


def at_limits(dynamodb: str, shards: int = 8) -> Held:
    """For half a minute; the server throttles as the service does."""
    shape = Shape(120_000, 1024, round(time.time() * 1000) + 20_000, LIMIT_RATE)
    with kinesis(Options(shards, shape, (CBOR,), limits=True)) as endpoint:
        limits = {"intervalSeconds": 1, "maxRecordsPerShard": 20_000, "maxBytesPerShard": 2**25}
        found = run(Plan(endpoint, dynamodb, "noop", limits, 40, 100.0))
        throttled = asked(endpoint).get("throttled", 0)
    behind = [batch.behind_millis for batch in found.batches if batch.records]
    third = max(1, len(behind) // 3)
    return Held(statistics.median(behind[:third]), statistics.median(behind[-third:]), 2.0 * shards, throttled)
