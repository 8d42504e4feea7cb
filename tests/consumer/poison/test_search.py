"""The search for a record that `process` cannot deal with: each step, as a table (docs/protocol.md, "Poison")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_consumer.poison.search import (
    CRASH,
    DATA,
    HANG,
    UNKNOWN,
    BatchFailure,
    Content,
    DoubtLimits,
    Evidence,
    Exclude,
    Retry,
    Search,
    Shorten,
    Step,
    half,
)

BAD, OTHER = BatchFailure("bad", transient=False, at=0.0, kind=DATA), BatchFailure("other", transient=False, at=0.0)
DOWN = BatchFailure("down", transient=True, at=0.0)
ONE = {"a": 1}
OUTAGE = 600.0  # seconds that a part of a sink may be down


def after(*failures: BatchFailure, content: Content = ONE, others: tuple[str, ...] = (), attempts: int = 3) -> tuple[Search, Step]:
    search, step = Search(attempts), Retry(0)
    for failure in failures:
        search, step = search.failed(content, failure, others)  # type: ignore[assignment]  # any step
    return search, step


TABLE: list[tuple[str, Callable[[], Step], Step]] = [
    ("a batch that failed once comes again", lambda: after(BAD, content={"a": 9, "b": 9})[1], Retry(1.0)),
    ("each time a little later", lambda: after(BAD, BAD, content={"a": 9, "b": 9})[1], Retry(2.0)),
    ("after enough failures half of its shards are kept", lambda: after(BAD, BAD, BAD, content={"a": 9, "b": 9, "c": 9})[1], Shorten({"a": 9})),
    ("of one shard half of the records", lambda: after(BAD, BAD, BAD, content={"a": 9})[1], Shorten({"a": 4})),
    ("the sink is asked once more before a first shortening", lambda: after(BAD, content={"a": 9}, attempts=1)[1], Retry(1.0)),
    ("and then it is shortened", lambda: after(BAD, BAD, content={"a": 9}, attempts=1)[1], Shorten({"a": 4})),
    (
        "what is short and fails by the same error gets shorter at once",
        lambda: after(BAD, BAD, BAD, content={"a": 9})[0].failed({"a": 4}, BAD)[1],
        Shorten({"a": 2}),
    ),
    (
        "what is short and fails by another error is tried again first: a sink may have it",
        lambda: after(BAD, BAD, BAD, content={"a": 9})[0].failed({"a": 4}, OTHER)[1],
        Retry(1.0),
    ),
    ("an outage shortens nothing", lambda: after(DOWN, DOWN, DOWN, DOWN, content={"a": 9})[1], Retry(8.0)),
    ("failures before an outage do not count", lambda: after(BAD, BAD, DOWN, BAD, content={"a": 9})[1], Retry(8.0)),
    ("nor do those by another error", lambda: after(BAD, BAD, OTHER, content={"a": 9})[1], Retry(4.0)),
    ("errors of two records may alternate", lambda: after(BAD, OTHER, BAD, OTHER, BAD, content={"a": 9})[1], Shorten({"a": 4})),
    (
        "a record that failed alone lets another shard's pass first, after a pause",
        lambda: after(BAD, BAD, BAD, others=("c", "b"))[1],
        Shorten({}, 4.0),
    ),
    ("without another shard it comes again", lambda: after(BAD, BAD, BAD)[1], Retry(4.0)),
]


@pytest.mark.parametrize(("step", "wanted"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_next_step(step: Callable[[], Step], wanted: Step) -> None:
    assert step() == wanted


@dataclass
class Sink:
    """A sink of parts, and time, for one suspect in shard `a`.

    Attributes:
        refuses: whether it refuses a record of this shard at this time.
        kind: of the error.
        shards: others that have records; idle ones have none.
    """

    refuses: Callable[[str, float], bool]
    kind: str = UNKNOWN
    shards: tuple[str, ...] = ("b", "c")
    idle: tuple[str, ...] = ()
    now: float = 0.0
    runs: int = 0

    def until_it_is_over(self, longest: float = 7200.0) -> float | None:
        """When the record is excluded; None: it passes."""
        search, content = Search(3), dict(ONE)
        others = [*self.shards, *self.idle]
        while self.now < longest:
            self.runs += 1
            (shard,) = content
            if self.refuses(shard, self.now):
                failure = BatchFailure("no", transient=False, at=self.now, kind=self.kind)
                search, step = search.failed(content, failure, [name for name in ["a", *others] if name != shard])
                if isinstance(step, Exclude):
                    return self.now
                self.now += step.seconds
            else:
                search = search.passed(content)
                if shard == "a":
                    return None
            search, content = self._next(search)
            self.now += 0.1
        raise AssertionError("it is not over")

    def _next(self, search: Search) -> tuple[Search, dict[str, int]]:
        wanted = search.wanted() or ONE
        if set(wanted) & set(self.idle):
            return self._next(search.passed({}))
        return search, dict(wanted)


@pytest.mark.parametrize("part", ["its shard", "its key", "most calls", "everything"])
@given(seed=st.integers(0, 2**16), length=st.floats(1, OUTAGE), kind=st.sampled_from([UNKNOWN, CRASH]))
def test_a_part_of_a_sink_that_is_down_for_ten_minutes_excludes_nothing(part: str, seed: int, length: float, kind: str) -> None:
    chance = Random(seed)  # noqa: S311 - of a test
    parts: dict[str, Callable[[str], bool]] = {
        "its shard": lambda shard: shard == "a",
        "its key": lambda shard: shard == "a",
        "most calls": lambda _shard: chance.random() < 0.7,
        "everything": lambda _shard: True,
    }
    sink = Sink(lambda shard, now: now < length and parts[part](shard), kind, idle=("d",) * (seed % 2))
    assert sink.until_it_is_over() is None


@pytest.mark.parametrize("length", [1.0, 20.0, 55.0])
def test_an_outage_of_less_than_a_minute_excludes_nothing_whatever_it_says(length: float) -> None:
    assert Sink(lambda shard, now: shard == "a" and now < length, DATA).until_it_is_over() is None


@pytest.mark.parametrize(
    ("kind", "shards", "least", "most", "runs"),
    [
        (DATA, ("b", "c"), 60, 90, 20),
        (DATA, ("b",), 60, 90, 20),
        (DATA, (), 300, 400, 20),
        (UNKNOWN, ("b", "c"), 900, 1000, 60),
        (UNKNOWN, (), 900, 1000, 60),
        (HANG, ("b", "c"), 60, 90, 20),
        (CRASH, ("b", "c"), 900, 1000, 60),
        (CRASH, (), 3600, 3700, 80),
    ],
)
def test_poison_is_found_in_reasonable_time(kind: str, shards: tuple[str, ...], least: float, most: float, runs: int) -> None:
    sink = Sink(lambda shard, _now: shard == "a", kind, shards)
    found = sink.until_it_is_over()
    assert found is not None
    assert least <= found <= most
    assert sink.runs <= runs


def test_while_a_doubt_waits_nothing_is_busy() -> None:
    sink = Sink(lambda _shard, _now: True, DATA, shards=(), idle=("b", "c"))
    assert (sink.until_it_is_over() or 0) >= DoubtLimits().nothing
    assert sink.runs < 20


def test_another_shards_record_that_fails_is_let_go_when_it_failed_twice() -> None:
    """A sink may have it, and say so when it is asked again. An outage is waited for."""
    search, _ = after(BAD, BAD, BAD, others=("b",))
    search, step = search.failed({"b": 1}, OTHER, ("a",))
    assert (step, search.evidence.refused) == (Retry(4.0), False)
    assert search.failed({"b": 1}, DOWN, ("a",))[1] == Retry(4.0)
    again, step = search.failed({"b": 1}, OTHER, ("a",))
    assert (step, again.evidence.refused, again.wanted()) == (Shorten({}), True, ONE)
    assert not again.failed(ONE, BAD, ("b",))[0].passed({"b": 1}).evidence.refused, "one that passes since then takes that back"


def test_a_shard_that_brings_nothing_is_not_asked_again_while_another_one_has_records() -> None:
    search, asked = replace(after(BAD, BAD, BAD, others=("b", "c"))[0], busy=frozenset("abc")), []
    for brings in (0, 1, 1):
        asked.append(search.control)
        search, _ = search.passed({str(search.control): 1} if brings else {}).failed(ONE, BAD, ("b", "c"))
    assert asked == ["b", "c", "c"]


def test_what_spoke_against_one_record_does_not_speak_against_the_next_suspects() -> None:
    known = Evidence("bad", failures=5, alone=3, witnesses=frozenset("b"), kind=DATA)
    left = Search(3, suspects={"a": 9}, evidence=known).passed({"a": 4}).evidence
    assert (left.failures, left.alone, left.witnesses) == (5, 0, frozenset())


def test_a_sink_that_raises_each_time_when_it_has_the_batch_is_asked_again_each_time() -> None:
    search, _ = after(BAD, BAD, BAD, content={"a": 16})
    for held in (8, 4, 2):
        search, step = search.failed({"a": held}, OTHER)
        assert isinstance(step, Retry)
        search = search.passed({"a": held})


def test_poison_in_every_shard_is_found_after_an_hour() -> None:
    """It looks like an outage of everything."""
    sink = Sink(lambda _shard, _now: True, DATA)
    assert (sink.until_it_is_over() or 0) >= DoubtLimits().refused


def test_records_of_two_other_shards_pass_before_one_is_poison_where_there_are_two() -> None:
    search, _ = after(BAD, BAD, BAD, others=("c", "b", "d"))
    search = replace(search, busy=frozenset("acd"))
    asked = []
    for _ in range(2):
        asked.append(dict(search.wanted() or {}))
        search, step = search.passed(asked[-1]).failed(ONE, replace(BAD, at=9.0), ("b", "c", "d"))
        assert not isinstance(step, Exclude)
    assert asked == [{"b": 1}, {"d": 1}]
    assert search.evidence.witnesses == frozenset("bd")


@pytest.mark.parametrize(("witnesses", "seconds"), [("", 300.0), ("b", 300.0), ("bc", 60.0)])
def test_fewer_witnesses_take_longer(witnesses: str, seconds: float) -> None:
    evidence = Evidence("bad", failures=5, alone=2, since=10.0, witnesses=frozenset(witnesses), kind=DATA)
    assert evidence.doubt(DoubtLimits(), others=5) == seconds


@pytest.mark.parametrize("failure", [DOWN, BAD], ids=["an outage", "a batch that cannot be searched"])
def test_the_pauses_of_a_search_have_no_end(failure: BatchFailure) -> None:
    search = Search(3, tries=10**6)
    assert search.failed(ONE, failure)[1] == Retry(60.0)


LASTING = {
    "an outage": lambda _n: DOWN,
    "unknown errors in turn": lambda n: replace(OTHER, error=f"other {n % 2}"),
    "an outage and an error in turn": lambda n: (DOWN, BAD)[n % 2],
    "a new error each time": lambda n: replace(OTHER, error=f"other {n}"),
}


@pytest.mark.parametrize("error", LASTING.values(), ids=LASTING.keys())
def test_a_day_in_which_no_suspect_passes_is_known_whatever_the_errors_are(error: Callable[[int], BatchFailure]) -> None:
    search, now, tries = Search(3), 0.0, 0
    while now < 90_000.0:
        search, step = search.failed(ONE, replace(error(tries), at=now), ["b", "c"])
        assert not isinstance(step, Exclude)
        search = search.passed({search.control: 1}) if search.control else search
        now, tries = now + step.seconds, tries + 1
    assert search.waited(90_000.0) == 90_000.0
    assert search.passed(ONE).waited(90_001.0) == 0


def test_a_suspect_that_passes_begins_the_day_anew() -> None:
    search, _ = after(BAD, BAD, BAD, content={"a": 4})
    search = search.passed({"a": 2})
    assert (search.active, search.waited(90_000.0)) == (True, 0)


@given(st.lists(st.sampled_from(["KeyError at m.py:1", "KeyError at m.py:2", "ValueError at m.py:3"]), min_size=100, max_size=100))
def test_a_record_that_fails_alone_by_errors_of_data_is_found_whichever_comes(errors: list[str]) -> None:
    """Which line raises depends on chance: the order of a set, two fields that are wrong."""
    search, now = Search(3), 0.0
    for error in errors:
        search, step = search.failed(ONE, replace(BAD, error=error, at=now), ["b", "c"])
        if isinstance(step, Exclude):
            break
        search = search.passed({search.control: 1}) if search.control else search
        now += step.seconds
    assert isinstance(step, Exclude)
    assert 60 <= now <= 600  # each error comes twice before a control is asked


@pytest.mark.parametrize(
    ("first", "then"),
    [(BAD, OTHER), (OTHER, replace(OTHER, error="third")), (OTHER, BAD), (replace(OTHER, kind=CRASH), replace(BAD, kind=CRASH))],
)
def test_errors_that_do_not_all_say_that_a_value_is_wrong_prove_nothing_together(first: BatchFailure, then: BatchFailure) -> None:
    search, _ = after(first, first, replace(then, at=50.0))
    assert (search.evidence.failures, search.evidence.alone, search.evidence.since) == (1, 1, 50.0)


@pytest.mark.parametrize(("before", "now", "failures"), [(True, True, 2), (True, False, 1), (False, True, 1), (False, False, 1)])
def test_errors_of_data_count_together_only_while_a_record_is_alone(*, before: bool, now: bool, failures: int) -> None:
    """Those of a batch of many may be of two records; a record of an aggregate comes with the others again."""
    assert Evidence().and_of(BAD, alone=before).and_of(replace(BAD, error="third"), alone=now).failures == failures


def test_only_failures_of_a_batch_of_one_record_are_failures_of_it_alone() -> None:
    """Those of more records may be of another one, however long they lasted."""
    search, step = after(BAD, BAD, BAD, content={"a": 2})[0].failed(ONE, replace(BAD, at=3600.0))
    assert (search.evidence.failures, search.evidence.alone, search.evidence.since) == (4, 1, 3600.0)
    assert not isinstance(step, Exclude)


@pytest.mark.parametrize(("kind", "times"), [(DATA, 2), (UNKNOWN, 2), (HANG, 3), (CRASH, 5)])
def test_a_record_fails_alone_so_often_at_least_however_long_each_try_takes(kind: str, times: int) -> None:
    """The table of the page, with one attempt."""
    search, tries, step = Search(1), 0, cast("Step", Retry(0))
    while not isinstance(step, Exclude):
        tries += 1
        search, step = search.failed(ONE, BatchFailure("no", transient=False, at=tries * 86_400.0, kind=kind))
    assert tries == times


def test_a_record_that_passes_in_the_end_ends_the_search() -> None:
    search, _ = after(BAD, BAD, BAD)
    assert search.passed(ONE) == Search(3)


@pytest.mark.parametrize("coming", [False, True])
def test_a_suspect_that_is_gone_ends_the_search_and_one_that_is_on_its_way_does_not(*, coming: bool) -> None:
    """Retention took it; or its shard is sparse."""
    search, _ = after(BAD, BAD, BAD, content={"a": 9})
    assert search.passed({}, coming=coming) == (search if coming else Search(3))


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 5000), min_size=1), st.data())
def test_a_poison_record_is_found_in_few_runs_and_nothing_else_is_excluded(content: dict[str, int], data: st.DataObject) -> None:
    """At most `attempts` + 2 log2(records) runs have it, and those of a minute alone; another shard, z, has a record that passes."""
    shard = data.draw(st.sampled_from(sorted(content)))
    place = data.draw(st.integers(0, content[shard] - 1))
    runs, left, search, held, now = 0, dict(content), Search(3), dict(content), 0.0
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
        search, step = search.failed(held, replace(BAD, at=now), ["z"])
        now += getattr(step, "seconds", 0.0)
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
    assert runs <= 3 + 7 + 2 * math.log2(sum(content.values()))


def test_half_is_never_nothing() -> None:
    assert [half({"a": 1}), half({"a": 3}), half({"b": 3, "a": 5}), half({"a": 1, "b": 1, "c": 1})] == [{"a": 1}, {"a": 1}, {"a": 5}, {"a": 1}]
