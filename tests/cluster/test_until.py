"""`spec.until` on a real cluster: a bounded range is read again beside the live consumer, and the second consumer ends by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from cluster_bench import Bench
from rules_world import World, iso, moment, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LIVE, AGAIN = "live", "again"
INTERVAL = 5  # seconds; the chart's own, of the live consumer


@dataclass
class Lags:
    """Seconds from a put to the sink, by the producer's log. What is not there yet counts with its age.

    Attributes:
        put: when each number was put that is not in the sink yet.
        seen: the age of the oldest one at each look.
    """

    put: dict[int, float] = field(default_factory=dict)
    seen: list[float] = field(default_factory=list)

    def look(self, found: World) -> None:
        missing = set(found.missing(LIVE))
        now = time.monotonic()
        self.seen.append(now - min(self.put.values(), default=now))
        self.put = {n: at for n, at in self.put.items() if n in missing}
        self.put |= {record.n: now for record in found.put(1)}


@dataclass(frozen=True)
class Ranges:
    """Numbers that were put before A, from A to B, and from B on; with both times. `lags`: of the live consumer, while the range is read again."""

    world: World
    start: datetime
    until: datetime
    within: frozenset[int]
    beyond: frozenset[int]
    lags: Lags = field(default_factory=Lags)


@pytest.fixture(scope="module")
def ranges(bench: Bench) -> Iterator[Ranges]:
    """The live consumer has read all of it; the shards were split meanwhile, between A and B."""
    with world(bench, "until", shards=2) as found:
        bench.apply(found.manifest(LIVE, batch={"intervalSeconds": INTERVAL}))

        def put() -> frozenset[int]:
            return frozenset(record.n for record in found.put())

        put()
        start = moment()
        within = put()
        found.stream.split(0)
        within |= put()
        until = moment()
        beyond = put()
        bench.until("the live one has all", lambda: found.subject(LIVE).ready() and not found.missing(LIVE))
        yield Ranges(found, start, until, within, beyond)


@pytest.fixture(scope="module")
def ended(ranges: Ranges) -> World:
    found = ranges.world
    start = {"position": "AT_TIMESTAMP", "timestamp": iso(ranges.start)}
    found.bench.apply(found.manifest(AGAIN, start=start, until={"timestamp": iso(ranges.until)}))

    def completed() -> bool:
        ranges.lags.look(found)
        return bool(found.subject(AGAIN).status.get("phase") == "Completed")

    found.bench.until("Completed", completed)
    return found


def test_the_live_consumer_stays_within_two_intervals(ended: World, ranges: Ranges) -> None:
    lags = ranges.lags.seen
    assert len(lags) > 5
    assert max(lags) <= 2 * INTERVAL, [round(lag, 1) for lag in lags]
    assert not ended.twice(LIVE)


def test_it_delivers_exactly_its_range_each_record_once(ended: World, ranges: Ranges) -> None:
    assert ended.twice(AGAIN) == []
    assert frozenset(n for row in ended.kept(AGAIN) for n in row["numbers"]) == ranges.within


def test_nothing_of_it_is_left_and_its_counts_are_in_the_status(ended: World, ranges: Ranges) -> None:
    """Ready is True, and neither Reconciling nor Stalled is there: kstatus calls it Current."""
    subject = ended.subject(AGAIN)
    ended.bench.until("no pod", lambda: subject.left() == [])
    ready = subject.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("True", "EndReached")
    assert f"{len(ranges.within)} records" in ready["message"]
    assert not subject.condition("Reconciling")
    assert not subject.condition("Stalled")
    assert (subject.status["restarts"]["count"], subject.attempts()) == (0, 1)


def test_a_restart_that_is_asked_for_starts_nothing(ended: World) -> None:
    subject = ended.subject(AGAIN)
    subject.annotate("restart=monday")
    ended.put()
    ended.bench.until("the live one has that, too", lambda: not ended.missing(LIVE))
    assert (subject.attempts(), subject.status["phase"], subject.left()) == (1, "Completed", [])


def test_a_later_end_continues_at_the_former_one(ended: World, ranges: Ranges) -> None:
    subject = ended.subject(AGAIN)
    until = moment()
    ended.put()
    subject.patch(until={"timestamp": iso(until)})
    ended.bench.until("the second end", lambda: subject.attempts() == 2 and subject.status["phase"] == "Completed")
    assert ended.twice(AGAIN) == []
    kept = frozenset(n for row in ended.kept(AGAIN) for n in row["numbers"])
    assert ranges.within | ranges.beyond < kept
