"""What a missing row means: a shard that KCL deleted, one that it has not seen, or one that nothing accounts for."""

from __future__ import annotations

import pytest
from drawn import TIMES
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import AT_TIMESTAMP, CREATED, FINISHED, STARTED, T0, UNSTARTED, A, B, C, D, E, listed, made, start

from sluice_checkpoints.diagnose.model import Observation as Diagnosed
from sluice_checkpoints.diagnose.model import Severity
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import Reading, SourceShard, StoredPosition
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import Shard, ShardList

EXAMPLES = 60 * TIMES

SPLIT_TWICE = (listed(A, closed=True), listed(B, A, closed=True), listed(C, A), listed(D, B), listed(E, B))
MERGE = (listed(A, closed=True), listed(B, closed=True), listed(C, A, B))


@pytest.mark.parametrize(
    ("shards", "rows", "missing"),
    [
        (SPLIT_TWICE, {A: STARTED, C: STARTED, D: STARTED, E: STARTED}, (B,)),
        (SPLIT_TWICE, {A: CREATED, C: STARTED, D: STARTED, E: STARTED}, (B,)),
        (SPLIT_TWICE, {C: STARTED, D: STARTED, E: CREATED}, (A, B)),
        (SPLIT_TWICE, {C: STARTED, D: STARTED}, (A, B)),
        (MERGE, {A: STARTED, C: STARTED}, (B,)),
        (SPLIT_TWICE, {A: STARTED, C: STARTED, D: AT_TIMESTAMP, E: STARTED}, (B,)),
    ],
    ids=[
        "its parent has a row",
        "its parent was not started",
        "a child was not started",
        "a child has no row",
        "the other parent has a row",
        "its parent has a row, and a child waits for a time",
    ],
)
def test_a_missing_row_that_kcl_cannot_have_deleted_is_no_finished_shard(
    shards: tuple[Shard, ...], rows: dict[str, StoredPosition], missing: tuple[str, ...]
) -> None:
    """It is a hole, or a person deleted it: no record of it may ever have been read."""
    result = made(rows, shards, unstarted="trim-horizon")
    again = [p.id for p in result.shards if p.verdict.again]
    assert {shard: start(result, shard) for shard in missing} == dict.fromkeys(missing, TRIM_HORIZON)
    assert set(missing) & set(again)
    reading = Reading("kcl", tuple(SourceShard(i, stored) for i, stored in rows.items()), finished_rows_vanish=True)
    found = diagnose(Diagnosed(reading, ShardList(shards, T0)))
    assert {f.shard for f in found if f.severity.loss} & set(missing)


def test_a_shard_that_was_passed_over_on_purpose_is_not_read() -> None:
    """Its consumer began at the tip, after the shard was closed."""
    result = made({B: UNSTARTED, C: STARTED}, (listed(A, closed=True), listed(B, A), listed(C, A)))
    assert start(result) == END


# Each: the stream and its rows, and the shards without a row that only AT_TIMESTAMP keeps from being finished.
WAITING = {
    "a child": ((listed(A, closed=True), listed(B, A), listed(C, A)), {B: AT_TIMESTAMP, C: STARTED}, (A,)),
    "a grandchild": (SPLIT_TWICE, {C: STARTED, D: AT_TIMESTAMP, E: STARTED}, (A, B)),
}


@pytest.mark.parametrize(("shards", "rows", "missing"), WAITING.values(), ids=WAITING)
@pytest.mark.parametrize(("given_time", "starts"), [(None, TRIM_HORIZON), (5, Position.timestamp(5))], ids=["no time", "a time"])
def test_a_shard_is_not_finished_while_what_followed_it_waits_for_a_time(
    shards: tuple[Shard, ...], rows: dict[str, StoredPosition], missing: tuple[str, ...], given_time: int | None, starts: Position
) -> None:
    """KCL keeps its row then. It was closed before that time, or nobody read it: the table does not say, so it is read from that time on."""
    result = made(rows, shards, timestamp_millis=given_time)
    assert {start(result, shard) for shard in missing} == {starts}
    assert {p.id for p in result.shards if p.verdict.again and p.verdict.warning} >= set(missing)
    reading = Reading("kcl", tuple(SourceShard(i, stored) for i, stored in rows.items()), finished_rows_vanish=True)
    suspected = {f.shard for f in diagnose(Diagnosed(reading, ShardList(shards, T0))) if f.severity == Severity.SUSPECTED}
    assert suspected == set(missing)


def test_a_shard_that_more_than_a_time_keeps_is_read_from_its_beginning() -> None:
    """One child waits for a time, the other was never started: --timestamp is about the first alone."""
    result = made(
        {B: AT_TIMESTAMP, C: CREATED, D: STARTED}, (listed(A, closed=True), listed(B, A, closed=True), listed(C, A), listed(D, B)), timestamp_millis=5
    )
    assert start(result) == TRIM_HORIZON


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Shard], dict[str, StoredPosition], set[str]]:
    """A stream that was split and merged, what KCL read of it, and the rows that KCL's cleaner has deleted since."""
    shards: dict[str, Shard] = {f"shardId-{i:012d}": listed(f"shardId-{i:012d}") for i in range(draw(st.integers(1, 3)))}
    opened = list(shards)
    for _ in range(draw(st.integers(0, 4))):
        parents = draw(st.lists(st.sampled_from(opened), min_size=1, max_size=2, unique=True))
        for _ in range(2 if len(parents) == 1 else 1):
            child = f"shardId-{len(shards):012d}"
            shards[child] = listed(child, *parents)
            opened.append(child)
        for parent in parents:
            shards[parent] = listed(parent, *shards[parent].parents, closed=True)
            opened.remove(parent)
    rows: dict[str, StoredPosition] = {}
    for shard in shards.values():  # parents come before their children
        ready = all(rows.get(parent) == FINISHED for parent in shard.parents)
        states = [CREATED, STARTED, FINISHED] if shard.closed else [CREATED, STARTED]
        if ready:
            rows[shard.id] = draw(st.sampled_from(states))
    deleted: set[str] = set()
    for shard in draw(st.permutations(list(shards.values()))) if draw(st.booleans()) else list(shards.values()):
        if cleanable(shard, shards, rows, deleted) and draw(st.booleans()):
            deleted.add(shard.id)
    return list(shards.values()), rows, deleted


def cleanable(shard: Shard, shards: dict[str, Shard], rows: dict[str, StoredPosition], deleted: set[str]) -> bool:
    """KCL's rule (`LeaseCleanupManager.cleanupLeaseForCompletedShard`)."""
    children = [other.id for other in shards.values() if shard.id in other.parents]
    started = all(child in deleted or rows.get(child) not in {None, CREATED, AT_TIMESTAMP} for child in children)
    parents_gone = all(parent in deleted or parent not in rows for parent in shard.parents)
    return rows.get(shard.id) == FINISHED and bool(children) and started and parents_gone


@settings(max_examples=5 * EXAMPLES)
@given(history=histories())
def test_whatever_kcl_deletes_by_its_rule_is_finished_and_what_it_has_not_read_is_never_taken_for_finished(
    history: tuple[list[Shard], dict[str, StoredPosition], set[str]],
) -> None:
    """Rows that KCL deleted are ended; of a row that was never there, or that KCL would have kept, nothing is passed over."""
    shards, rows, deleted = history
    left = {shard: stored for shard, stored in rows.items() if shard not in deleted}
    if not left:
        return
    result = made(left, tuple(shards), unstarted="trim-horizon")
    for shard in deleted:
        assert start(result, shard) == END or not _before_progress(shard, shards, left)
    for shard in (s.id for s in shards if rows.get(s.id) != FINISHED):
        assert start(result, shard) != END


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Shard], dict[str, StoredPosition]]:
    """A stream, and rows as they may stand in any table of KCL, after whatever a person or a restore did to it."""
    shards, _, _ = draw(histories())
    states = st.sampled_from([STARTED, STARTED, FINISHED, CREATED, UNSTARTED, AT_TIMESTAMP, None, None])
    stored = {shard.id: draw(states) for shard in shards}
    return shards, {i: row for i, row in stored.items() if row and (row != FINISHED or next(s for s in shards if s.id == i).closed)}


@settings(max_examples=5 * EXAMPLES)
@given(table=tables(), time=st.sampled_from([None, 5]))
def test_no_shard_is_taken_for_finished_that_kcl_cannot_have_deleted(table: tuple[list[Shard], dict[str, StoredPosition]], time: int | None) -> None:
    """The shards that the plan ends without a word get their rows back, finished. KCL's cleaner must be able to delete them all, one by one."""
    shards, rows = table
    result = made(rows, tuple(shards), unstarted="trim-horizon", timestamp_millis=time)
    ended = {p.id for p in result.shards if p.row.start == END and p.id not in rows and not p.verdict.warning}
    before = rows | dict.fromkeys(ended, FINISHED)
    deleted: set[str] = set()
    by_id = {shard.id: shard for shard in shards}
    while more := {i for i in ended - deleted if cleanable(by_id[i], by_id, before, deleted)}:
        deleted |= more
    assert deleted == ended


def _before_progress(shard: str, shards: list[Shard], left: dict[str, StoredPosition]) -> bool:
    children = [other.id for other in shards if shard in other.parents]
    return any((child in left and left[child].progress) or _before_progress(child, shards, left) for child in children)


def test_where_rows_do_not_vanish_a_missing_row_is_read_again() -> None:
    """Other systems keep no such order, so a missing row proves nothing."""
    result = made({B: STARTED}, (listed(A, closed=True), listed(B, A)), vanish=False)
    assert start(result) == TRIM_HORIZON
    assert result.warnings


def test_the_progress_of_a_grandchild_proves_as_much() -> None:
    result = made({C: STARTED}, (listed(A, closed=True), listed(B, A, closed=True), listed(C, B)))
    assert (start(result, A), start(result, B)) == (END, END)


def test_a_child_that_merely_has_a_row_proves_nothing() -> None:
    """KCL makes the rows of children before a shard is finished."""
    with pytest.raises(Refused, match=f"{A} has no row"):
        made({B: CREATED}, (listed(A, closed=True), listed(B, A)))


def test_a_shard_kcl_has_not_seen_yet_starts_at_its_beginning() -> None:
    result = made({A: STARTED}, (listed(A, closed=True), listed(B, A, closed=True), listed(C, B)))
    assert (start(result, B), start(result, C)) == (TRIM_HORIZON, TRIM_HORIZON)
    assert not result.warnings


def test_a_merged_child_follows_if_either_parent_has_a_row() -> None:
    result = made({A: STARTED, B: FINISHED}, (listed(A, closed=True), listed(B, closed=True), listed(C, A, B)))
    assert start(result, C) == TRIM_HORIZON


def test_a_shard_follows_a_row_whose_own_shard_has_expired() -> None:
    """ListShards names parents that it no longer lists."""
    assert start(made({A: FINISHED}, (listed(B, A),)), B) == TRIM_HORIZON


@pytest.mark.parametrize(("unstarted", "position"), [("trim-horizon", TRIM_HORIZON), ("now", Position.timestamp(T0))])
def test_a_shard_that_nothing_accounts_for_starts_where_the_user_says(unstarted: str, position: Position) -> None:
    assert start(made({A: STARTED}, (listed(A), listed(B)), unstarted=unstarted), B) == position


def test_without_a_word_of_the_user_every_such_shard_is_refused_by_name() -> None:
    with pytest.raises(Refused) as refused:
        made({A: STARTED}, (listed(A), listed(B), listed(C)))
    assert f"{B} has no row" in str(refused.value)
    assert f"{C} has no row" in str(refused.value)
    assert "--unstarted" in str(refused.value)
