"""What a user says of one shard is about this shard: no other one starts elsewhere for it, and what a source says of others still counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from migrating.bench import Bench
from migrating.cases import CASES
from migrating.stage import Case
from plans import AT_TIMESTAMP, CREATED, FINISHED, STARTED, T0, UNSTARTED, A, B, C, listed, start

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.kcl import Kcl
from sluice_checkpoints.formats.reader import StoredPosition
from sluice_checkpoints.formats.snapshot import Snapshot, TableKey
from sluice_checkpoints.migrate.overrides import SourceScan, understand
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.migrate.plan import MigrationPlan, PlanInput, plan
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import Shard, ShardList, StreamIdentity

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", 1, 86_400_000, "ACTIVE")
REFUSED = StoredPosition("SOMEWHERE")
SPLIT = (listed(A, closed=True), listed(B, A), listed(C, A))
PLACES = [TRIM_HORIZON, Position.after("160"), END]


def lease(shard_id: str, stored: StoredPosition) -> Any:
    checkpoint, _, sub = stored.text.partition("/")
    numbers = {"checkpointSubSequenceNumber": sub or "0", "leaseCounter": "5", "ownerSwitchesSinceCheckpoint": "0"}
    return {"leaseKey": {"S": shard_id}, "checkpoint": {"S": checkpoint}} | {name: {"N": number} for name, number in numbers.items()}


def planned(
    rows: dict[str, StoredPosition], shards: tuple[Shard, ...], places: dict[str, Position], unstarted: str | None = "trim-horizon"
) -> MigrationPlan:
    items = tuple(lease(shard_id, stored) for shard_id, stored in rows.items())
    snapshot = Snapshot("app", {"app": (TableKey("leaseKey", "HASH", "S"),)}, {"app": items})
    choices, there = Choices(T0, unstarted=unstarted, places=places), ShardList(shards, T0)
    found = understand(SourceScan(Kcl(), snapshot, STREAM, there), choices)
    assert not found.reading.problems
    return plan(PlanInput(found.reading, there, "app"), choices)


def others(made: MigrationPlan, shard_id: str) -> dict[str, Any]:
    return {p.id: (p.stored, p.verdict, p.row) for p in made.shards if p.id != shard_id}


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Shard, ...], dict[str, StoredPosition]]:
    shards = {i: listed(i) for i in (A, B)[: draw(st.integers(1, 2))]}
    for _ in range(draw(st.integers(0, 4))):
        parents = draw(st.lists(st.sampled_from([i for i in shards if not shards[i].closed]), min_size=1, max_size=2, unique=True))
        shards |= {i: replace(shards[i], ending_sequence="200") for i in parents}
        shards |= {i: listed(i, *parents) for n in range(3 - len(parents)) if (i := f"shardId-{len(shards) + n:012d}")}
    states = st.sampled_from([STARTED, STARTED, FINISHED, CREATED, UNSTARTED, AT_TIMESTAMP, None, None])
    rows = {i: draw(states) for i in shards}
    return tuple(shards.values()), {i: row for i, row in rows.items() if row and (row != FINISHED or shards[i].closed)}


def chosen(draw: st.DataObject, shards: tuple[Shard, ...]) -> tuple[str, Position]:
    shard = draw.draw(st.sampled_from(shards))
    return shard.id, draw.draw(st.sampled_from(PLACES if shard.closed else PLACES[:2]))


@settings(max_examples=400)
@given(table=tables(), data=st.data())
def test_a_place_changes_the_plan_of_no_other_shard(table: tuple[tuple[Shard, ...], dict[str, StoredPosition]], data: st.DataObject) -> None:
    shards, rows = table
    shard_id, place = chosen(data, shards)
    made = planned(rows, shards, {shard_id: place})
    assert others(made, shard_id) == others(planned(rows, shards, {}), shard_id)
    assert start(made, shard_id) == place


@settings(max_examples=400)
@given(table=tables(), data=st.data(), number=st.sampled_from([REFUSED, StoredPosition("900/0")]))
def test_a_row_that_was_refused_proves_no_more_than_one_that_was_just_made(
    table: tuple[tuple[Shard, ...], dict[str, StoredPosition]], data: st.DataObject, number: StoredPosition
) -> None:
    """Wherever the user places its shard: no text, or a number that cannot be one in a closed shard, is no proof that KCL has read it.

    Nor that it has not, so what stands before it is told.
    """
    shards, rows = table
    shard_id, place = chosen(data, shards)
    closed = next(shard for shard in shards if shard.id == shard_id).closed
    made, created = (
        planned(rows | {shard_id: row}, shards, places) for row, places in ((number if closed else REFUSED, {shard_id: place}), (CREATED, {}))
    )
    assert [p.row for p in made.shards if p.id != shard_id] == [p.row for p in created.shards if p.id != shard_id]


@pytest.mark.parametrize("unstarted", [None, "trim-horizon", "now"])
def test_a_parent_without_a_row_is_read_and_told_though_all_rows_after_it_were_refused(unstarted: str | None) -> None:
    """KCL may have deleted it as finished, or a person has: nobody knows. `--unstarted` is not about it."""
    made = planned({B: REFUSED, C: REFUSED}, SPLIT, {B: TRIM_HORIZON, C: Position.after("160")}, unstarted)
    assert start(made, A) == TRIM_HORIZON
    assert made.risks["readAgain"] == 2
    assert f"{A}: its row is missing, so it starts at its beginning" in made.warnings


def test_a_row_with_other_hash_keys_proves_nothing_either() -> None:
    alien = lease(C, STARTED) | {"startingHashKey": {"S": "7"}, "endingHashKey": {"S": "8"}}
    snapshot = Snapshot("app", {"app": (TableKey("leaseKey", "HASH", "S"),)}, {"app": (lease(B, STARTED), alien)})
    choices, there = Choices(T0, places={C: Position.after("160")}), ShardList(SPLIT, T0)
    found = understand(SourceScan(Kcl(), snapshot, STREAM, there), choices)
    made = plan(PlanInput(found.reading, there, "app"), choices)
    assert (start(made, A), start(made, C)) == (TRIM_HORIZON, Position.after("160"))
    assert f"{A}: its row is missing, so it starts at its beginning" in made.warnings


def test_a_place_in_a_shard_that_is_gone_is_refused_but_for_its_end() -> None:
    """Nothing can be read from there, and a warning that says otherwise is wrong."""
    rows, shards = {B: STARTED, C: UNSTARTED}, (*SPLIT[:2], listed("shardId-000000000009"))
    with pytest.raises(Refused, match=f"^--place {C}=160: stream orders does not list this shard any more.* again with --place {C}=END, or without"):
        planned(rows, shards, {C: Position.after("160")})
    for row in (UNSTARTED, REFUSED):
        made = planned(rows | {C: row}, shards, {C: END})
        assert (start(made, C), next(p.verdict.lost for p in made.shards if p.id == C)) == (END, True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_place_changes_no_other_shard_whatever_the_format(case: Case) -> None:
    def dry(bench: Bench, **choices: Any) -> MigrationPlan:
        made = bench.migrator(unstarted="trim-horizon", **choices).dry_run().plan
        assert made
        return made

    whole = Bench(case)
    for shard_id in (p.id for p in dry(whole).shards):
        made = dry(whole, places={shard_id: TRIM_HORIZON})
        assert others(made, shard_id) == others(dry(whole), shard_id)
        assert start(made, shard_id) == TRIM_HORIZON
