from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_consumer.batches import planner
from sluice_consumer.batches.planner import TableView

HERE = Position.after("7")


def row(name: str, end: Position = HERE, **values: object) -> ShardRow:
    return ShardRow(name, start=values.pop("start", end), end=end, **values)  # type: ignore[arg-type]  # literals of a test


def view(*rows: ShardRow, committed: int = 5, listed: str = "", asked: str = "", own: bool = False) -> TableView:
    return TableView({r.id: r for r in rows}, committed, frozenset(listed), frozenset(asked), own_commits=own)


def ids(rows: tuple[ShardRow, ...]) -> str:
    return "".join(r.id for r in rows)


A_ENDED = row("a", END, start=HERE, batch=5, children=(Child("c", frozenset("ab")), Child("d", frozenset("a"))))

PLANS = [
    ("every row that may join", view(row("b"), row("a")), "ab", False),
    ("nobody before the batch it joins", view(row("a"), row("b", joins=7)), "a", False),
    ("from the batch on that it joins", view(row("a", joins=6)), "a", False),
    ("nobody who stands at END", view(A_ENDED, row("b")), "b", False),
    ("nobody who started at END", view(row("a", END), row("b")), "b", False),
    ("a child of an ended parent", view(A_ENDED, row("d", parents=frozenset("a"))), "d", False),
    ("no child of a parent that goes on", view(row("a"), row("d", parents=frozenset("a"))), "a", False),
    ("no merged child while one parent goes on", view(A_ENDED, row("b"), row("c", parents=frozenset("ab"))), "b", False),
    ("a merged child of two ended parents", view(A_ENDED, row("b", END), row("c", parents=frozenset("ab"))), "c", False),
    ("a child of a parent that expired", view(row("c", parents=frozenset("x")), listed="c"), "c", False),
    ("no child of a parent that is listed and has no row", view(row("c", parents=frozenset("x")), listed="x"), "", False),
    ("exactly what was begun", view(row("a", batch=6), row("b"), row("c", batch=5)), "a", True),
    ("a begun row that was bound to END", view(row("a", END, start=HERE, batch=6), row("b")), "a", True),
    ("a begun row even before the batch it joins", view(row("a", batch=6, joins=9)), "a", True),
    (
        "no child of a parent that reached END in the begun batch",
        view(row("a", END, start=HERE, batch=6), row("d", parents=frozenset("a"))),
        "a",
        True,
    ),
]


@pytest.mark.parametrize(("seen", "expected", "replay"), [case[1:] for case in PLANS], ids=[case[0] for case in PLANS])
def test_a_batch_is(seen: TableView, expected: str, replay: bool) -> None:  # noqa: FBT001 - a table's column
    plan = planner.next_batch(seen)
    assert (plan.number, ids(plan.rows), plan.replay) == (6, expected, replay)


NOW = 1_700_000_000_000
QUIET = row("a", batch=5, read_to=NOW)
MAY_BE_LEFT_OUT = [
    ("one whose last range, of this epoch, came to the tip without a record", view(QUIET, row("b", batch=4, read_to=NOW)), "ab"),
    ("none whose last range an earlier epoch bound", replace(view(QUIET, row("b", batch=4, read_to=NOW)), inherited=4), "a"),
    ("none that was never read", view(QUIET, row("b")), "a"),
    ("none whose last range had a record", view(QUIET, replace(QUIET, id="b", records=1)), "a"),
    (
        "one that a probe had woken, and whose last range had one record",
        replace(view(QUIET, replace(QUIET, id="b", records=1)), woken=frozenset("b")),
        "ab",
    ),
    ("none that a probe had woken for more", replace(view(QUIET, replace(QUIET, id="b", records=2)), woken=frozenset("b")), "a"),
    ("none whose last range ended far behind the tip", view(QUIET, replace(QUIET, id="b", behind=1)), "a"),
    ("none that was not read for an hour", view(QUIET, replace(QUIET, id="b", read_to=NOW - planner.STALE_MILLIS - 1)), "a"),
    ("one that was read an hour ago", view(replace(QUIET, read_to=NOW - planner.STALE_MILLIS)), "a"),
    ("none that ended", view(QUIET, row("b", END, batch=5, read_to=NOW)), "a"),
    ("none that cannot join yet", view(QUIET, replace(QUIET, id="b", joins=7)), "a"),
    ("none of a batch that was begun", view(QUIET, row("b", batch=6)), ""),
]


@pytest.mark.parametrize(("seen", "expected"), [case[1:] for case in MAY_BE_LEFT_OUT], ids=[case[0] for case in MAY_BE_LEFT_OUT])
def test_a_batch_may_leave_out(seen: TableView, expected: str) -> None:
    """If a probe finds nothing. Clauses of protocol.md, "Idle shards"."""
    assert ids(planner.may_be_left_out(seen, NOW)) == expected


def test_a_probe_has_woken_who_could_have_been_left_out_and_took_part() -> None:
    """A shard that takes part whenever there is a batch is busy, and is not probed before each."""
    before = view(QUIET, replace(QUIET, id="b", records=1), replace(QUIET, id="c"))
    after = [replace(QUIET, id=each, batch=6, records=1) for each in "ab"]
    assert planner.woken(before, 6, after) == frozenset("a")
    assert planner.woken(replace(before, woken=frozenset("abc")), 6, [replace(each, records=2) for each in after]) == frozenset("abc")
    assert planner.woken(replace(before, woken=frozenset("bc"), inherited=5), 6, after) == frozenset("c"), "an earlier epoch had bound them"
    assert planner.woken(view(*after), 6, after) == frozenset(), "they are of this batch already"


def test_a_first_issue_leaves_idle_shards_out_and_a_replay_does_not() -> None:
    assert ids(planner.next_batch(view(row("a"), row("b")), frozenset("a")).rows) == "b"
    assert ids(planner.next_batch(view(row("a", batch=6), row("b")), frozenset("a")).rows) == "a"


def test_no_child_joins_the_batch_in_which_its_parent_was_bound_to_end() -> None:
    """A parent stands at END only once that batch is committed."""
    parent, child = row("a", END, start=HERE, batch=6), row("d", parents=frozenset("a"))
    assert not planner.is_read_to_end(view(parent, child), child, "a")
    assert planner.is_read_to_end(view(parent, child, committed=6), child, "a")


@pytest.mark.parametrize(("own", "joins"), [(True, 6), (False, 7)])
def test_children_join_the_batch_after_next_until_this_epoch_has_committed(own: bool, joins: int) -> None:  # noqa: FBT001
    """What an earlier epoch may have issued must not change."""
    created = planner.missing_children(view(A_ENDED, own=own), generation=3)
    assert [(c.id, c.joins, c.generation, c.parents) for c in created] == [("c", joins, 3, frozenset("ab")), ("d", joins, 3, frozenset("a"))]


def test_every_child_starts_at_its_beginning() -> None:
    """LATEST never applies to a shard that was found later."""
    assert {(c.start, c.end, c.batch) for c in planner.missing_children(view(A_ENDED), 3)} == {(TRIM_HORIZON, TRIM_HORIZON, 0)}


def test_a_child_is_younger_than_anything_that_was_read_of_a_parent() -> None:
    """From then on its records may expire, though nobody has read one yet: `readTo` says so."""
    a, b = replace(A_ENDED, read_to=70), row("b", END, batch=5, read_to=90, children=(Child("c", frozenset("ab")),))
    assert [(c.id, c.read_to) for c in planner.missing_children(view(a, b), 3)] == [("c", 90), ("d", 70)]
    assert [(c.id, c.read_to) for c in planner.unaccounted(view(a), [Child("x", frozenset("a")), Child("y", frozenset("z"))], 3)] == [
        ("x", 70),
        ("y", 0),
    ]


def test_a_child_of_a_shard_that_begins_at_a_time_is_younger_than_that() -> None:
    pinned = row("p", Position.timestamp(50))
    assert [c.read_to for c in planner.unaccounted(view(pinned), [Child("x", frozenset("p"))], 3)] == [50]


@pytest.mark.parametrize(
    "seen",
    [
        view(row("a", END, start=HERE, batch=6, children=A_ENDED.children)),
        view(A_ENDED, row("c"), row("d")),
        view(row("a", END)),
    ],
    ids=["the parent's END is not committed", "the children have rows", "no children are known"],
)
def test_no_children_are_created_when(seen: TableView) -> None:
    assert planner.missing_children(seen, 3) == ()


def test_a_child_of_two_ended_parents_is_created_once() -> None:
    other = row("b", END, start=HERE, batch=5, children=(Child("c", frozenset("ab")),))
    assert ids(planner.missing_children(view(A_ENDED, other), 3)) == "cd"


@pytest.mark.parametrize("own", [True, False])
def test_what_an_audit_finds_always_joins_the_batch_after_next(own: bool) -> None:  # noqa: FBT001
    """An audit may find what an earlier epoch had not seen."""
    listed = [Child("a", frozenset()), Child("x", frozenset("a"))]
    assert [(r.id, r.joins, r.parents) for r in planner.unaccounted(view(row("a"), own=own), listed, 3)] == [("x", 7, frozenset("a"))]


OF_TWO = row("c", parents=frozenset("ax"))
ROWLESS = [
    ("listed with its child", view(A_ENDED, OF_TWO, listed="acx", asked="ac"), False, True),
    ("expired: its child is listed", view(A_ENDED, OF_TWO, listed="c"), True, False),
    ("expired before its child did", view(A_ENDED, OF_TWO, listed="z", asked="ac"), True, False),
    ("not known: the stream was asked before its child was known", view(A_ENDED, OF_TWO, listed="z", asked="a"), False, True),
    ("not known: the other parent is listed, so its child must be", view(A_ENDED, OF_TWO, listed="a", asked="ac"), False, True),
    ("known", view(A_ENDED, OF_TWO, row("x"), listed="acx", asked="acx"), False, False),
    ("at its end", view(A_ENDED, OF_TWO, row("x", END, batch=5), listed="acx", asked="acx"), True, False),
]


@pytest.mark.parametrize(("seen", "done", "needed"), [case[1:] for case in ROWLESS], ids=[case[0] for case in ROWLESS])
def test_a_parent_without_a_row_is_waited_for_until_a_listing_that_knows_better(seen: TableView, done: bool, needed: bool) -> None:  # noqa: FBT001
    """Where the stream split while a shard was read far behind, a merge may be known before one of its parents is."""
    assert ("c" in ids(planner.next_batch(seen).rows)) is done
    assert planner.needs_audit(seen) is needed


def test_an_empty_plan_is_worth_a_number_only_when_somebody_waits_for_one() -> None:
    assert planner.waits_for_number(view(A_ENDED, row("d", joins=7)))
    assert not planner.waits_for_number(view(A_ENDED, row("d", joins=6)))


shard_ids = st.lists(st.integers(0, 99).map(lambda n: f"s{n:02}"), unique=True, max_size=40)


@given(shard_ids, st.integers(1, 16), st.integers(1, 8))
def test_dealing_loses_and_doubles_no_shard(names: list[str], cores: int, most: int) -> None:
    tasks = planner.deal((row(name) for name in names), cores, most)
    assert sorted(r.id for task in tasks for r in task) == sorted(names)
    assert all(1 <= len(task) <= most for task in tasks)
    assert len(tasks) <= max(cores, -(-len(names) // most))


def test_few_shards_are_one_task_a_core() -> None:
    """A further task costs more than a further shard."""
    assert [len(task) for task in planner.deal([row(c) for c in "abcde"], 2, 8)] == [3, 2]
