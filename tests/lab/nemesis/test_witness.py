"""The witness: who worked on a shard, and which two were too close."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sluice_lab.nemesis import witness
from sluice_lab.nemesis.witness import Stint
from sluice_lab.scenario.ledger import Place

LEASE = 10.0
SHARD = "shardId-000000000003"


def stint(first: float, last: float, **changed: Any) -> Stint:
    """Work of the first attempt of a task of batch 1, by epoch A."""
    known: dict[str, Any] = {"epoch": "A", "batch": 1, "pod": "A-exec-1", "task": "0.0", "attempt": 0, "shard": SHARD, "places": (Place(1, 0),)}
    return Stint(first=first, last=last, **(known | changed))


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
    """Exactly that far is right, a moment less is not."""
    one = stint(100, 101)
    assert witness.clashes([one, stint(101 + gap, 120, **other)], released, LEASE) == []
    (clash,) = witness.clashes([stint(101 + gap - 0.01, 120, **other), one], released, LEASE)
    assert clash.one == one
    assert f"not {gap:g} s" in str(clash)


def test_another_shard_is_nobodys_business() -> None:
    """Two epochs may work on two shards."""
    assert witness.clashes([stint(1, 2), stint(1, 2, epoch="B", shard="shardId-000000000004")], set(), LEASE) == []


def test_a_zombie_is_found_behind_others() -> None:
    """One attempt that goes on while the next batches are read clashes with each of them."""
    zombie = stint(100, 104)
    found = witness.clashes([zombie, *(stint(100 + n, 100.5 + n, batch=n + 1, attempt=n) for n in (1, 2, 3))], set(), LEASE)
    assert [(pair.one, pair.other.batch) for pair in found] == [(zombie, 2), (zombie, 3), (zombie, 4)]


def test_the_closest_are_told_by_rule() -> None:
    """What was measured, of rules that ask for a time between."""
    stints = [stint(0, 1), stint(12, 13, attempt=1), stint(30, 31, epoch="B"), stint(60, 61, epoch="C")]
    assert witness.closest(stints, {"B"}, LEASE) == {"two attempts of a task": 11.0, "two epochs": 17.0}


def test_everyone_reads_the_same_batch() -> None:
    """Or the beginning of it; another record, or another order, is named."""
    places = tuple(Place(n, 0) for n in range(5))
    same = [stint(0, 1, places=places[:2]), stint(20, 21, attempt=1, places=places)]
    assert witness.unlike(same) == []
    assert witness.unlike([*same, stint(40, 41, epoch="B", places=(places[1],))]) == [f"{SHARD}, batch 1"]
    assert witness.repeated(same) == 1


def lines() -> Iterator[str]:
    """What `sink` writes: a driver's call of the pipeline, and two pieces of a shard."""
    who = {"epoch": "A", "batch": 7}
    yield json.dumps(who | {"issued": 50.0, "began": 30.0})
    task = who | {"pod": "A-exec-1", "task": "3.0", "attempt": 9, "shard": SHARD}
    for at, places in ((52.0, [["2", 1]]), (51.0, [["1", 0], ["2", 0]]), (51.5, []), (52.5, [])):
        yield json.dumps(task | {"at": at, "places": places})


def test_lines_become_stints_whatever_their_order() -> None:
    """By their times, for each worker process writes a file of its own."""
    seen = witness.parse(lines())
    assert seen.issues == (witness.Issue("A", 7, 50.0, 30.0),)
    places = (Place(1, 0), Place(2, 0), Place(2, 1))
    assert seen.stints == (Stint("A", 7, "A-exec-1", "3.0", 9, SHARD, 51.0, 52.5, places),)
