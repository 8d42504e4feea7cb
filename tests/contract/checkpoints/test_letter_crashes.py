"""A record is in the sink, in the final letters, or still owed: in exactly one of them, whatever dies (docs/dead-letters.md, "What is certain")."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from lettered_world import (
    AFTER,
    BEFORE,
    HANGS,
    IN_PARTS,
    LOOKS_FIRST,
    OVERWRITES,
    RAISES,
    REJECTS,
    REJECTS_AND_RAISES,
    SKIPS,
    STORES,
    Crashes,
    World,
    check,
    lived_through,
)

from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.pipelines import DriverLetters
from sluice_lab.fakes.table import MemoryTable

KINDS = [SKIPS, LOOKS_FIRST, OVERWRITES]
MIDDLE = {0: ["a0", "a1", "a2"], 1: ["b0", "poison 1", "b2", "poison 2", "b4"]}
TWO = {0: ["a0", "poison 1", "poison 2"], 1: ["b0", "b1", "b2"]}
each_kind = pytest.mark.parametrize("kind", KINDS)


def world(root: Path, does: str, repaired: str | None, kind: str, attempts: int | None = 2) -> World:
    return World(MemoryTable(), root, does, repaired, kind, TWO, attempts)


def crashed_at_each(made: Callable[[int], World], when: str) -> list[int]:
    """Worlds that end well though a driver died at a write, one for each write that is made; how many were made in each."""
    writes: list[int] = []
    for at in count():
        crashes = Crashes((at,), when)
        lived_through(one := made(at), crashes)
        check(one)
        if at >= len(crashes.seen):
            break
        writes.append(len(crashes.seen))
    return writes


@each_kind
def test_rejected_records_are_final_once_their_batch_is_committed(tmp_path: Path, kind: str) -> None:
    made, crashes = world(tmp_path, REJECTS, None, kind), Crashes()
    lived_through(made, crashes)
    check(made)
    assert made.final() == ["poison 1", "poison 2"]
    assert crashes.seen[:7] == ["hold", "sink", "commit", "letter", "letter", "named", "drop"]


@each_kind
@pytest.mark.parametrize("attempts", [None, 2], ids=["without isolation", "isolating"])
def test_a_process_that_raises_has_rejected_nothing(tmp_path: Path, kind: str, attempts: int | None) -> None:
    made, crashes = world(tmp_path, REJECTS_AND_RAISES, STORES, kind, attempts), Crashes()
    lived_through(made, crashes)
    check(made)
    if attempts is None:
        assert (made.final(), crashes.seen[:2]) == ([], ["hold", "drop"])


def test_a_driver_that_dies_in_a_batch_leaves_its_records_rejected(tmp_path: Path) -> None:
    """Nobody knows whether the sink has the batch: the repaired `process` is given it without them."""
    made = world(tmp_path, REJECTS, STORES, SKIPS)
    lived_through(made, Crashes((1,), BEFORE))
    check(made)
    assert made.final() == ["poison 1", "poison 2"]


def stored_in_parts(root: Path, repaired: str, attempts: int | None) -> None:
    """The claim: a part of the sink is down, its driver dies at some write, and `process` is repaired."""
    crashed_at_each(lambda at: World(MemoryTable(), root / str(at), REJECTS_AND_RAISES, repaired, IN_PARTS, MIDDLE, attempts), AFTER)


@pytest.mark.parametrize("attempts", [None, 1, 2])
@pytest.mark.parametrize("repaired", [STORES, REJECTS])
def test_a_sink_that_stores_in_parts_loses_no_record_that_was_rejected_before_it_failed(tmp_path: Path, repaired: str, attempts: int | None) -> None:
    """Its position is behind the record, also when the batch is shortened before it and a repaired `process` would accept it."""
    stored_in_parts(tmp_path, repaired, attempts)


@pytest.mark.parametrize(
    ("of", "name", "sabotage"),
    [
        (BatchLetters, "_carry", lambda *_: None),
        (DriverLetters, "raised", lambda letters, consumer: letters.stores[consumer].raised()),
    ],
    ids=["what is let go is rejected no more", "process that raised has rejected nothing"],
)
def test_rejections_that_a_sink_in_parts_needs_and_that_are_forgotten_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: type, name: str, sabotage: Callable[..., None]
) -> None:
    monkeypatch.setattr(of, name, sabotage)
    with pytest.raises(AssertionError):
        stored_in_parts(tmp_path, STORES, 1)


def lives(does: str) -> list[tuple[str, str | None]]:
    return [(does, None), (does, STORES), (does, REJECTS)]


@each_kind
@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize(
    ("does", "repaired"), [*lives(REJECTS), *lives(RAISES), *lives(HANGS), (REJECTS_AND_RAISES, STORES), (REJECTS_AND_RAISES, REJECTS)]
)
def test_one_crash_at_any_write(tmp_path: Path, does: str, repaired: str | None, when: str, kind: str) -> None:
    crashed_at_each(lambda at: world(tmp_path / str(at), does, repaired, kind), when)


@each_kind
@pytest.mark.parametrize("at", ["letter", "named", "drop"])
def test_what_fails_after_the_commit_is_no_failure_of_process(tmp_path: Path, at: str, kind: str) -> None:
    calm = Crashes()
    lived_through(world(tmp_path / "calm", REJECTS, None, kind), calm)
    made = world(tmp_path / "made", REJECTS, None, kind, attempts=1)
    crashes = Crashes((calm.seen.index(at),), error=ValueError)
    lived_through(made, crashes)
    check(made)
    assert "shorten" not in crashes.seen
    assert made.final() == ["poison 1", "poison 2"]


@pytest.mark.slow
@each_kind
@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize(("does", "repaired"), [(REJECTS, STORES), (RAISES, STORES), (RAISES, REJECTS), (REJECTS_AND_RAISES, REJECTS)])
def test_two_crashes_at_any_writes(tmp_path: Path, does: str, repaired: str, when: str, kind: str) -> None:
    """The second hits the repair. A pair that is not tried has a crash at a write that is not made."""
    for first, writes in enumerate(crashed_at_each(lambda at: world(tmp_path / f"{at}", does, repaired, kind), when)):
        for second in range(first + 1, writes):
            made = world(tmp_path / f"{first} {second}", does, repaired, kind)
            lived_through(made, Crashes((first, second), when))
            check(made)
