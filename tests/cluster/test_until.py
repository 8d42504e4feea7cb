"""`spec.until` on a real cluster: a bounded range is read again beside the live consumer, and the second consumer ends by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from cluster_bench import Bench
from rules_world import World, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LIVE, AGAIN = "live", "again"
APART = 2.0  # seconds between what is put before a time, and what is put after it


@dataclass(frozen=True)
class Ranges:
    """Numbers that were put before A, from A to B, and from B on; with both times."""

    world: World
    start: datetime
    until: datetime
    within: frozenset[int]
    beyond: frozenset[int]

    def text(self, moment: datetime) -> str:
        """As a spec has it."""
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment() -> datetime:
    """A time with a distance to whatever is put before it and after it. The emulator runs by this machine's clock."""
    threading.Event().wait(APART)
    now = datetime.now(UTC)
    threading.Event().wait(APART)
    return now


@pytest.fixture(scope="module")
def ranges(bench: Bench) -> Iterator[Ranges]:
    """The live consumer has read all of it; the shards were split meanwhile, between A and B."""
    with world(bench, "until", shards=2) as found:
        bench.apply(found.manifest(LIVE))

        def put() -> frozenset[int]:
            before = {record.n for record in found.producer.produced}
            found.put()
            return frozenset(record.n for record in found.producer.produced) - before

        put()
        start = moment()
        within = put()
        found.stream.split(0)
        within |= put()
        until = moment()
        beyond = put()
        bench.until("the live one has all", lambda: not found.missing(LIVE))
        yield Ranges(found, start, until, within, beyond)


@pytest.fixture(scope="module")
def ended(ranges: Ranges) -> World:
    """The second consumer has come to its end."""
    found = ranges.world
    start = {"position": "AT_TIMESTAMP", "timestamp": ranges.text(ranges.start)}
    found.bench.apply(found.manifest(AGAIN, start=start, until={"timestamp": ranges.text(ranges.until)}))
    found.bench.until("Completed", lambda: found.subject(AGAIN).status.get("phase") == "Completed")
    return found


def test_it_delivers_exactly_its_range_each_record_once(ended: World, ranges: Ranges) -> None:
    """Over a split; what came before A and from B on is not in it."""
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
    """Only another spec does."""
    subject = ended.subject(AGAIN)
    subject.annotate("restart=monday")
    ended.put()
    ended.bench.until("the live one has that, too", lambda: not ended.missing(LIVE))
    assert (subject.attempts(), subject.status["phase"], subject.left()) == (1, "Completed", [])


def test_a_later_end_continues_at_the_former_one(ended: World, ranges: Ranges) -> None:
    """What lies between the two comes once."""
    subject = ended.subject(AGAIN)
    until = moment()
    ended.put()
    subject.patch(until={"timestamp": ranges.text(until)})
    ended.bench.until("the second end", lambda: subject.attempts() == 2 and subject.status["phase"] == "Completed")
    assert ended.twice(AGAIN) == []
    kept = frozenset(n for row in ended.kept(AGAIN) for n in row["numbers"])
    assert ranges.within | ranges.beyond < kept
