"""Positions that are kept in front of a version (docs/protocol.md, "Versions")."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.batch_writes import BatchSteps, Epoch
from sluice_checkpoints.protocol.rows import ConsumerRow, ShardRow
from sluice_checkpoints.protocol.versions import LISTED, KeptPosition, SpecName, Version, next_version, places, with_positions, within_reach
from sluice_lab.fakes.table import MemoryTable

AFTER_5, AFTER_9 = Position.after("5"), Position.after("9")
READING = ShardRow("a", AFTER_5, AFTER_9, batch=7, read_to=70)
ENDED = replace(READING, end=END)


def test_committed_positions_are_kept() -> None:
    """Of a range in an open batch its start, without the age: that is the age of its end."""
    assert places({"a": READING, "b": replace(READING, batch=8)}, 7) == {"a": KeptPosition(AFTER_9, 70), "b": KeptPosition(AFTER_5)}
    assert places({"a": ENDED}, 6) == {"a": KeptPosition(AFTER_5)}


def test_a_shard_that_is_over_is_kept_as_such() -> None:
    """Whoever goes back has to know it from one that came later."""
    assert places({"a": ENDED}, 7) == {"a": KeptPosition(END)}


def named(*firsts: int) -> tuple[Version, ...]:
    found: tuple[Version, ...] = ()
    for number, first in enumerate(firsts):
        version = next_version(found, SpecName(f"v{number}"), first, number + 1, 0)
        assert version is not None
        found = (*found, version)
    return found


def test_versions_that_commit_nothing_do_not_push_out_the_positions_of_one_that_did() -> None:
    """A bad version, then repairs that crash in their first batch, one after the other; each leaves what the last one has kept until it is named."""
    found = named(1, 1041, *[1048] * 9, 1050)
    assert [version.first for version in with_positions(found)] == [1, 1041, 1048, 1050]
    assert all(one.slot != other.slot for one, other in pairwise(found))


def test_versions_that_committed_nothing_leave_the_list_first() -> None:
    table = MemoryTable("t")
    store, epoch = BatchSteps(table), Epoch(1, "token")
    table.rows["consumer"] = {"id": "consumer", "generation": 1, "token": "token"}
    former = named(1, 1041, *[1048] * LISTED)
    for number in range(2, len(former)):
        versions.name(store, epoch, versions.known(store) or former[:2], former[number])
    assert [version.first for version in versions.known(store)] == [1, 1041, *[1048] * (LISTED - 2)]


def consumer(committed: int, last_reset: str | None = None, reset_after: int | None = None) -> ConsumerRow:
    """A consumer row."""
    return ConsumerRow("c", "arn", 1, committed=committed, last_reset=last_reset, reset_after=reset_after)


def test_what_a_reset_has_separated_is_out_of_reach_once_batches_were_committed() -> None:
    """Until then somebody may think better of it, and go back to where a version began."""
    one, two = Version(SpecName("a"), 1, 1, 0), Version(SpecName("b"), 4, 2, 0, slot=1)
    assert within_reach((one, two), consumer(7)) == (one, two)
    assert within_reach((one, two), consumer(7, "first", 7)) == (one, two)
    again = Version(SpecName("b"), 8, 3, 0, slot=2, reset="first")
    assert within_reach((one, two, again), consumer(7, "first", 7)) == (one, two, again)
    idle = Version(SpecName("b"), 8, 3, 0, slot=2)
    assert within_reach((one, two, idle, replace(again, slot=3)), consumer(7, "first", 7)) == (one, two, replace(again, slot=3))
    assert within_reach((one, two, again), consumer(7, "second", 7)) == (one, two)
    assert within_reach((one, two, again), consumer(9, "first", 7)) == (again,)
    assert within_reach((one, two, again), consumer(9, "second", 9)) == (again,)


def test_before_the_first_batch_only_the_last_reset_counts() -> None:
    one = Version(SpecName("a"), 1, 1, 0)
    assert within_reach((one,), consumer(0)) == (one,)
    assert within_reach((one,), consumer(0, "first", 0)) == (one,)
    assert within_reach((), consumer(0)) == ()


def listed_by(*firsts: int) -> tuple[Version, ...]:
    table = MemoryTable("t")
    store, epoch = BatchSteps(table), Epoch(1, "token")
    table.rows["consumer"] = {"id": "consumer", "generation": 1, "token": "token"}
    for number, first in enumerate(firsts):
        former = versions.known(store)
        version = next_version(former, SpecName(f"v{number}"), first, number + 1, 0)
        assert version is not None
        versions.name(store, epoch, former, version)
    return versions.known(store)


def test_a_full_list_does_not_push_out_the_positions_of_a_bad_version_either() -> None:
    """After twenty deploys, too, repairs that crash share two slots: those that leave the list first are not the ones by which that is known."""
    found = listed_by(*range(1, LISTED + 1), 1041, *[1048] * 9)
    kept = [version.first for version in with_positions(found)]
    assert (len(found), kept) == (LISTED, [LISTED - 1, LISTED, 1041, 1048, 1048])


def test_of_versions_in_front_of_the_same_batch_the_last_one_is_last() -> None:
    """A reset may lie between them: the positions of the last one are those from which records were read again."""
    found = with_positions(named(1, 1041, 1048, 1048, 1048))
    assert [version.generation for version in found] == [1, 2, 4, 5]
