"""The search for a record that `process` cannot deal with: each step, as a table (docs/protocol.md, "Poison")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_consumer.batches.isolation import BatchFailure, Content, DoubtLimits, Evidence, Exclude, Retry, Search, Shorten, Step, half

BAD, OTHER = BatchFailure("bad", transient=False, at=0.0), BatchFailure("other", transient=False, at=0.0)
DOWN = BatchFailure("down", transient=True, at=0.0)
ONE = {"a": 1}


def after(*failures: BatchFailure, content: Content = ONE, others: tuple[str, ...] = (), attempts: int = 3) -> tuple[Search, Step]:
    """A search that has seen these failures of one content."""
    search, step = Search(attempts), Retry(0)
    for failure in failures:
        search, step = search.failed(content, failure, others)  # type: ignore[assignment]  # any step
    return search, step


TABLE: list[tuple[str, Callable[[], Step], Step]] = [
    ("a batch that failed once comes again", lambda: after(BAD, content={"a": 9, "b": 9})[1], Retry(1.0)),
    ("each time a little later", lambda: after(BAD, BAD, content={"a": 9, "b": 9})[1], Retry(2.0)),
    ("after enough failures half of its shards are kept", lambda: after(BAD, BAD, BAD, content={"a": 9, "b": 9, "c": 9})[1], Shorten({"a": 9})),
    ("of one shard half of the records", lambda: after(BAD, BAD, BAD, content={"a": 9})[1], Shorten({"a": 4})),
    (
        "what is short and fails gets shorter at once",
        lambda: after(BAD, BAD, BAD, content={"a": 9})[0].failed({"a": 4}, BAD)[1],
        Shorten({"a": 2}),
    ),
    ("an outage shortens nothing", lambda: after(DOWN, DOWN, DOWN, DOWN, content={"a": 9})[1], Retry(8.0)),
    ("failures before an outage do not count", lambda: after(BAD, BAD, DOWN, BAD, content={"a": 9})[1], Retry(8.0)),
    ("nor do those by another error", lambda: after(BAD, BAD, OTHER, content={"a": 9})[1], Retry(4.0)),
    ("a record that failed alone lets another shard's pass first", lambda: after(BAD, BAD, BAD, others=("c", "b"))[1], Shorten({})),
    ("without another shard it comes again", lambda: after(BAD, BAD, BAD)[1], Retry(4.0)),
]


@pytest.mark.parametrize(("step", "wanted"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_next_step(step: Callable[[], Step], wanted: Step) -> None:
    """What follows from what happened."""
    assert step() == wanted


def test_a_record_is_poison_when_another_shards_passed_between_two_failures_of_it_alone() -> None:
    """One record of one other shard is asked for."""
    search, step = after(BAD, BAD, BAD, others=("c", "b"))
    assert search.wanted() == {"b": 1}
    search = search.passed({"b": 1})
    assert search.wanted() == ONE
    search, step = search.failed(ONE, BAD, ("b", "c"))
    assert step == Exclude("a")
    assert not search.active


def test_a_record_is_not_poison_when_the_others_fail_too() -> None:
    """Each other shard is asked in turn; it takes an hour until the record is given up."""
    search, _ = after(BAD, BAD, BAD, others=("c", "b"))
    search, step = search.failed({"b": 1}, BAD, ("a", "c"))
    assert step == Shorten({}, 8.0)
    search, step = search.failed(ONE, replace(BAD, at=3599.0), ("c", "b"))
    assert (step, search.wanted()) == (Shorten({}), {"c": 1})
    search, _ = search.failed({"c": 1}, BAD, ("a", "b"))
    assert search.failed(ONE, replace(BAD, at=3600.0), ("c", "b"))[1] == Exclude("a")


@pytest.mark.parametrize(("passed", "seconds"), [(False, 300.0), (True, 90.0)])
def test_a_record_of_the_only_shard_is_poison_after_minutes(passed: bool, seconds: float) -> None:  # noqa: FBT001 - of the table
    """Sooner where something of its batch has passed."""
    evidence = Evidence("bad", failures=5, alone=2, since=10.0, passed=passed)
    assert not evidence.is_poison(3, DoubtLimits(), 10.0 + seconds - 1)
    assert evidence.is_poison(3, DoubtLimits(), 10.0 + seconds)


def test_a_record_that_passes_in_the_end_ends_the_search() -> None:
    """It was an outage."""
    search, _ = after(BAD, BAD, BAD)
    assert search.passed(ONE) == Search(3)


def test_a_suspect_that_is_gone_ends_the_search() -> None:
    """Retention took it, or the shard cannot be read now: the others do not wait for it."""
    search, _ = after(BAD, BAD, BAD, content={"a": 9})
    assert search.passed({}) == Search(3)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 5000), min_size=1), st.data())
def test_a_poison_record_is_found_in_few_runs_and_nothing_else_is_excluded(content: dict[str, int], data: st.DataObject) -> None:
    """At most `attempts` + 2 log2(records) runs have it, or one more where those are few; another shard, z, has a record that passes."""
    shard = data.draw(st.sampled_from(sorted(content)))
    place = data.draw(st.integers(0, content[shard] - 1))
    runs, left, search, held = 0, dict(content), Search(3), dict(content)
    for _ in range(200):
        has = held.get(shard, 0) > place
        runs += has
        if not has:
            search = search.passed(held)
            left = {name: left[name] - held.get(name, 0) for name in left}
            place -= held.get(shard, 0)
            wanted = search.wanted()
            held = {name: min(count, left[name]) for name, count in (left if wanted is None else wanted).items() if left.get(name)}
            continue
        search, step = search.failed(held, BAD, ["z"])
        if isinstance(step, Exclude):
            assert (step.shard, held, place) == (shard, {shard: 1}, 0)
            break
        if isinstance(step, Shorten):
            held = {name: count for name, count in step.keep.items() if count}
            if not held:
                assert search.wanted() == {"z": 1}
                search = search.passed({"z": 1})
                held = {name: min(count, left[name]) for name, count in (search.wanted() or {}).items()}
    else:
        raise AssertionError("not found")
    assert runs <= 3 + max(3.0, 2 * math.log2(sum(content.values())))


def test_half_is_never_nothing() -> None:
    """The first of several shards, the first of several records, the only record."""
    assert [half({"a": 1}), half({"a": 3}), half({"b": 3, "a": 5}), half({"a": 1, "b": 1, "c": 1})] == [{"a": 1}, {"a": 1}, {"a": 5}, {"a": 1}]
