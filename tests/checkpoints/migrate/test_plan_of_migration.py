from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import AT_TIMESTAMP, CREATED, FINISHED, STARTED, T0, UNSTARTED, A, B, C, D, E, listed, made, start

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.kcl import Kcl
from sluice_checkpoints.formats.reader import Reading, SourceShard, StoredPosition
from sluice_checkpoints.formats.snapshot import Snapshot, TableKey
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.migrate.plan import PlanInput, as_document, digest_of, plan
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.stream.model import ShardList


@pytest.mark.parametrize(
    ("stored", "closed", "choices", "position", "warned"),
    [
        (STARTED, False, {}, Position.after("150", 0), False),
        (STARTED, True, {}, Position.after("150", 0), False),
        (STARTED, False, {"unstarted": "now"}, Position.after("150", 0), False),
        (FINISHED, True, {}, END, False),
        (CREATED, False, {}, TRIM_HORIZON, False),
        (CREATED, False, {"unstarted": "now"}, TRIM_HORIZON, False),
        (UNSTARTED, False, {}, TRIM_HORIZON, True),
        (UNSTARTED, False, {"unstarted": "trim-horizon"}, TRIM_HORIZON, True),
        (UNSTARTED, False, {"unstarted": "now"}, Position.timestamp(T0), False),
        (UNSTARTED, True, {"unstarted": "now"}, Position.timestamp(T0), False),
        (AT_TIMESTAMP, False, {}, TRIM_HORIZON, True),
        (AT_TIMESTAMP, False, {"unstarted": "now"}, TRIM_HORIZON, True),
        (AT_TIMESTAMP, False, {"timestamp_millis": 5}, Position.timestamp(5), False),
    ],
)
def test_a_row_decides_where_its_shard_starts(
    stored: StoredPosition, *, closed: bool, choices: dict[str, Any], position: Position, warned: bool
) -> None:
    result = made({A: stored}, (listed(A, closed=closed),), **choices)
    assert start(result) == position
    assert bool(result.warnings) is warned


def test_an_unfinished_shard_that_expired_is_ended_and_counted_as_lost() -> None:
    result = made({A: STARTED, B: STARTED}, (listed(B),))
    assert start(result) == END
    assert result.counts["possiblyLost"] == 1
    assert A in result.warnings[0]


def test_a_finished_shard_that_expired_stays_finished_and_loses_nothing() -> None:
    """KCL keeps such rows for minutes, retention for a day or more; a stopped consumer's rows outlive both."""
    result = made({A: FINISHED, B: STARTED}, (listed(B),))
    assert start(result) == END
    assert result.counts["possiblyLost"] == 0
    assert not result.warnings


def test_a_shard_that_an_earlier_try_planned_and_that_expired_since_is_ended() -> None:
    """Its row is in the target already and nothing is ever deleted there."""
    reading = Reading("kcl", (SourceShard(A, STARTED),))
    result = plan(PlanInput(reading, ShardList((listed(A),), T0), "app", frozenset({B})), Choices(T0))
    assert start(result, B) == END
    assert result.counts["possiblyLost"] == 1


def test_a_row_kcl_deleted_after_its_child_had_progress_is_a_finished_shard() -> None:
    """KCL deletes the row of a finished shard, and not before its children have started."""
    result = made({B: STARTED, C: STARTED}, (listed(A, closed=True), listed(B, A), listed(C, A)))
    assert start(result) == END


@pytest.mark.parametrize(("sequence", "closed"), [("99", False), ("99", True), ("201", True), ("0", False)])
def test_a_checkpoint_outside_its_shard_is_another_streams(sequence: str, *, closed: bool) -> None:
    """A stream that was made again repeats shard ids, never sequence numbers."""
    with pytest.raises(Refused) as refused:
        made({A: StoredPosition(sequence, Position.after(sequence, 0))}, (listed(A, closed=closed),))
    assert f"row {A}: checkpoint {sequence} is outside the shard's range [100, {'200' if closed else '…'}]" in str(refused.value)


@pytest.mark.parametrize("sequence", ["100", "200"])
def test_both_ends_of_the_range_are_inside(sequence: str) -> None:
    assert start(made({A: StoredPosition(sequence, Position.after(sequence, 0))}, (listed(A, closed=True),))).sequence == sequence


def test_an_ending_number_below_the_starting_one_bounds_nothing() -> None:
    """kinesis-local gives every closed shard 2^63 - 1."""
    shard = replace(listed(A, closed=True), ending_sequence="7")
    assert start(made({A: STARTED}, (shard,))).sequence == "150"


def test_a_finished_row_of_an_open_shard_is_another_streams() -> None:
    with pytest.raises(Refused, match=f"row {A}: is stored as finished"):
        made({A: FINISHED}, (listed(A),))


def test_where_the_source_keeps_no_row_by_nature_a_shard_starts_at_its_beginning() -> None:
    reading = Reading("nifi", (SourceShard(A, STARTED),), rowless="NiFi drops rows")
    observed = PlanInput(reading, ShardList((listed(A), listed(B, closed=True)), T0), "app")
    result = plan(observed, Choices(T0))
    assert start(result, B) == TRIM_HORIZON
    assert result.counts["readAgain"] == 1
    assert "NiFi drops rows" in result.warnings[0]
    assert start(plan(observed, Choices(T0, unstarted="now")), B) == Position.timestamp(T0)


def test_what_a_source_processed_after_its_place_is_said_to_come_again() -> None:
    """An open batch of Sluice's own; what is lost is counted apart."""
    open_batch = StoredPosition("AFTER 150", Position.after("150"), again="batch 7 was open and not committed")
    result = made({A: open_batch, B: STARTED}, (listed(A), listed(B)))
    assert (result.counts["readAgain"], result.counts["possiblyLost"]) == (1, 0)
    assert result.warnings == (f"{A}: batch 7 was open and not committed: its records are read again",)


def test_a_pinned_time_is_kept() -> None:
    """Sluice's own table holds times that LATEST once meant."""
    assert start(made({A: StoredPosition("TIMESTAMP 5", Position.timestamp(5))}, (listed(A),))) == Position.timestamp(5)


def test_warnings_about_the_table_come_first() -> None:
    reading = Reading("nifi", (SourceShard(A, UNSTARTED),), notes=("interrupted",))
    assert plan(PlanInput(reading, ShardList((listed(A),), T0), "app"), Choices(T0)).warnings[0] == "interrupted"


def test_rows_know_their_parents_and_the_finished_ones_their_children() -> None:
    rows = {p.id: p.row for p in made({A: FINISHED, B: STARTED, C: CREATED}, (listed(A, closed=True), listed(B), listed(C, A))).shards}
    assert rows[A].children == (Child(C, frozenset({A})),)
    assert (rows[B].children, rows[C].children) == (None, None)
    assert rows[C].parents == {A}


def test_every_row_is_one_the_first_batch_may_use() -> None:
    for planned in made({A: STARTED}, (listed(A),)).shards:
        assert (planned.row.generation, planned.row.batch, planned.row.joins) == (0, 0, 1)
        assert planned.row.start == planned.row.end


def test_a_stored_child_that_is_nowhere_is_reported() -> None:
    """KCL never deletes a child before its parent, so its records were lost or never were."""
    reading = Reading("kcl", (SourceShard(A, FINISHED, children=frozenset({E})), SourceShard(B, STARTED)))
    result = plan(PlanInput(reading, ShardList((listed(A, closed=True), listed(B)), T0), "app"), Choices(T0))
    assert E in result.warnings[0]


def test_a_plan_is_a_document() -> None:
    (line,) = (as_document(p) for p in made({A: STARTED}, (listed(A),)).shards)
    assert line == {
        "shard": A,
        "stored": "150",
        "planned": {"at": "AFTER", "sequence": "150", "sub": 0},
        "why": "at the source's position",
        "readAgain": False,
        "possiblyLost": False,
    }


def test_the_digest_of_a_plan_is_that_of_its_rows_in_any_order() -> None:
    """The target is compared with it after a scan, which has no order."""
    result = made({A: STARTED, B: FINISHED}, (listed(A), listed(B, closed=True)))
    assert digest_of([p.row for p in reversed(result.shards)]) == result.digest
    assert digest_of([p.row for p in result.shards[1:]]) != result.digest


STORED = st.sampled_from([STARTED, FINISHED, CREATED, UNSTARTED, AT_TIMESTAMP, None])


@given(stored=st.lists(STORED, min_size=4, max_size=4), seed=st.booleans(), vanish=st.booleans())
def test_every_shard_has_a_place_or_the_plan_is_refused(*, stored: list[StoredPosition | None], seed: bool, vanish: bool) -> None:
    """A was split into B and C, and C into D: whatever the rows say, no shard is left out and none starts later than its row says."""
    shards = (listed(A, closed=True), listed(B, A), listed(C, A, closed=True), listed(D, C))
    rows = {shard.id: one for shard, one in zip(shards, stored, strict=True) if one}
    try:
        result = made(rows, shards, vanish=vanish, unstarted="trim-horizon" if seed else None)
    except Refused:
        return
    assert [p.id for p in result.shards] == [A, B, C, D]
    for planned in result.shards:
        known = rows[planned.id].position if planned.id in rows else None
        assert planned.row.start in ({known} if known else {TRIM_HORIZON, END})


@pytest.mark.parametrize(
    "name", ["kcl1-graceful", "kcl1-sigkill", "kcl2-graceful", "kcl34-graceful", "kcl3-graceful", "kcl3-latest", "kcl3-pending", "kcl3-sigkill"]
)
def test_the_plan_of_a_real_table_delivers_what_is_missing_and_nothing_else(golden: Callable[[str], Any], name: str) -> None:
    """From each planned position to the tip, the user records are those that a correct take-over must deliver."""
    dump = golden(name)
    snapshot = Snapshot(name, {name: (TableKey("leaseKey", "HASH", "S"),)}, {name: dump.rows})
    reading = Kcl().parse(snapshot, dump.describe())
    result = plan(PlanInput(reading, dump.list_shards(), name), Choices(T0))
    assert {p.id for p in result.shards} == set(dump.stands)
    for planned in result.shards:
        assert delivered(dump.stream["records"].get(planned.id, []), planned.row.start) == expected(dump, planned.id)


def delivered(records: list[dict[str, Any]], start: Position) -> list[tuple[str, int]]:
    if start == END:
        return []
    after = (int(start.sequence), start.sub or 0) if start.sequence else (-1, 0)
    users = [(r["seq"], u["sub"] or 0) for r in records for u in r.get("user") or [{"sub": 0}]]
    return [user for user in users if (int(user[0]), user[1]) > after]


def expected(dump: Any, shard_id: str) -> list[tuple[str, int]]:
    return [(record[0], record[1] or 0) for record in dump.stream["derived"][shard_id]["must_deliver"]]
