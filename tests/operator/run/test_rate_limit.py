"""A resource whose report flaps costs a bounded number of writes and events, and its first change is written at once."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise

from simulated_cluster import BEGIN, SPEC, SimulatedCluster, ready

from sluice_operator.observe.cache import ResourceKey
from sluice_operator.run.shared import RateLimit

KEY, OTHER = ResourceKey("a", "orders"), ResourceKey("a", "payments")


def test_so_many_within_any_such_time_and_no_more() -> None:
    limit = RateLimit(3, timedelta(seconds=10))
    taken = [second for second in range(31) if limit.take(KEY, "x", BEGIN + timedelta(seconds=second))]
    assert taken == [0, 1, 2, 10, 11, 12, 20, 21, 22, 30]
    assert limit.take(KEY, "y", BEGIN)
    assert limit.take(OTHER, "x", BEGIN)
    limit.forget(KEY)
    assert limit.taken.keys() == {OTHER}


def test_a_clock_that_is_set_back_silences_nobody() -> None:
    limit = RateLimit(2, timedelta(seconds=10))
    assert [limit.take(KEY, "x", BEGIN + timedelta(days=1)) for _ in range(3)] == [True, True, False]
    assert [limit.take(KEY, "x", BEGIN) for _ in range(3)] == [True, True, False]


def test_a_report_that_flaps_every_second_is_written_a_few_times_a_minute() -> None:
    world = SimulatedCluster()
    world.apply(SPEC)
    assert world.run(120, until=lambda: ready(world))
    world.run(60)
    seen = list[bool]()
    for turn in range(120):
        driver = world.drivers()[0]
        report = {**json.loads(driver["metadata"]["annotations"]["sluice.dev/report"]), "warnings": [] if turn % 2 else ["Isolating: batch 7"]}
        world.memory.edit(driver, {"metadata": {"annotations": {"sluice.dev/report": json.dumps(report)}}})
        world.run(1)
        seen.append(bool(world.condition("Isolating")))
    assert seen[0], "the first change is written at once"
    changes = sum(one != other for one, other in pairwise(seen))
    assert 8 <= changes <= 2 * 16
    assert world.reasons().count("Isolating") <= 10
    world.run(12)
    assert not world.condition("Isolating"), "the last change is written, too"
