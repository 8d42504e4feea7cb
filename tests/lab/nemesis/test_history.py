"""The history: which attempts read a shard, and which two reads were too close."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sluice_lab.nemesis import history, sampler
from sluice_lab.nemesis.history import ShardRead
from sluice_lab.nemesis.takeover import Sample
from sluice_lab.scenario.account import RecordPosition

LEASE = 10.0
SHARD = "shardId-000000000003"


def read(first: float, last: float, **changed: Any) -> ShardRead:
    known: dict[str, Any] = {
        "epoch": "A",
        "batch": 1,
        "pod": "A-exec-1",
        "task": "0.0",
        "attempt": 0,
        "shard": SHARD,
        "positions": (RecordPosition(1, 0),),
    }
    return ShardRead(first=first, last=last, **(known | changed))


@pytest.mark.parametrize(
    ("other", "released", "gap"),
    [
        ({"attempt": 1}, set(), 10.0),  # another attempt of the same task
        ({"epoch": "B", "batch": 1}, set(), 10.0),  # the same batch in another epoch
        ({"epoch": "B", "batch": 2}, set(), 10.0),  # another batch in another epoch
        ({"epoch": "B", "batch": 2}, {"A"}, 0.0),  # after a clean drain
        ({"batch": 2, "task": "1.0"}, set(), 0.0),  # the next batch
        ({"task": "0.1"}, set(), 10.0),  # a shard in two tasks of one batch: a stage that was made again
    ],
)
def test_two_are_as_far_apart_as_the_rule_says(other: dict[str, Any], released: set[str], gap: float) -> None:
    one = read(100, 101)
    assert history.violations([one, read(101 + gap, 120, **other)], released, LEASE) == []
    (violation,) = history.violations([read(101 + gap - 0.01, 120, **other), one], released, LEASE)
    assert violation.one == one
    assert f"not {gap:g} s" in str(violation)


def test_a_zombie_is_found_behind_others() -> None:
    """One attempt that goes on while the next batches are read breaks the rule with each of them."""
    zombie = read(100, 104)
    found = history.violations([zombie, *(read(100 + n, 100.5 + n, batch=n + 1, attempt=n) for n in (1, 2, 3))], set(), LEASE)
    assert [(pair.one, pair.other.batch) for pair in found] == [(zombie, 2), (zombie, 3), (zombie, 4)]


def test_everyone_reads_the_same_batch() -> None:
    positions = tuple(RecordPosition(n, 0) for n in range(5))
    same = [read(0, 1, positions=positions[:2]), read(20, 21, attempt=1, positions=positions)]
    assert history.divergent(same) == []
    assert history.divergent([*same, read(40, 41, epoch="B", positions=(positions[1],))]) == [f"{SHARD}, batch 1"]
    assert history.rereads(same) == 1


def lines() -> Iterator[str]:
    """What `sink` writes: a driver's call of the pipeline, and two pieces of a shard."""
    who = {"epoch": "A", "batch": 7}
    yield json.dumps(who | {"invoked": 50.0, "began": 30.0})
    task = who | {"pod": "A-exec-1", "task": "3.0", "attempt": 9, "shard": SHARD}
    for at, positions in ((52.0, [["2", 1]]), (51.0, [["1", 0], ["2", 0]]), (51.5, []), (52.5, [])):
        yield json.dumps(task | {"at": at, "positions": positions})


def test_lines_become_reads_whatever_their_order() -> None:
    """By their times, for each worker process writes a file of its own."""
    seen = history.parse(lines())
    assert seen.invocations == (history.Invocation("A", 7, 50.0, 30.0),)
    positions = (RecordPosition(1, 0), RecordPosition(2, 0), RecordPosition(2, 1))
    assert seen.reads == (ShardRead("A", 7, "A-exec-1", "3.0", 9, SHARD, 51.0, 52.5, positions),)


def test_an_epoch_is_the_pod_that_holds_the_lease() -> None:
    """If one counted as released that is not, two epochs would need no gap."""
    row: dict[str, Any] = {"generation": {"N": "3"}, "committed": {"N": "41"}, "holder": {"S": "nemesis-driver-2/7"}}
    assert sampler.of_row(row, 5.0, 9) == Sample(5.0, 3, "nemesis-driver-2", 41, released=False, produced=9)
    assert sampler.of_row(row | {"released": {"BOOL": True}}, 5.0, 9).released
    assert sampler.of_row({"generation": {"N": "0"}, "committed": {"N": "0"}}, 5.0, 9).epoch == ""
