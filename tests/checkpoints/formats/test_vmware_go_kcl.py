from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot
from sluice_checkpoints.formats.vmware_go_kcl import KEY, VmwareGoKcl
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.stream.model import StreamIdentity

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
SHARD, OTHER = "shardId-000000000007", "shardId-000000000008"


def row(checkpoint: str | None = "150", **more: dict[str, Any]) -> RawItem:
    place = {} if checkpoint is None else {"Checkpoint": {"S": checkpoint}}
    return {"ShardID": {"S": SHARD}, "LeaseTimeout": {"S": "2026-11-21T02:12:59Z"}} | place | more


def read(*rows: RawItem) -> Reading:
    return VmwareGoKcl().parse(Snapshot("app", {"app": KEY}, {"app": rows}), STREAM)


@pytest.mark.parametrize(("checkpoint", "position"), [("150", Position.after("150")), ("SHARD_END", END), (None, None)])
def test_a_checkpoint_means_the_whole_kinesis_record(checkpoint: str | None, position: Position | None) -> None:
    """No sub-sequence is stored; without a checkpoint nothing was acknowledged."""
    assert read(row(checkpoint)).shards[0].stored.position == position


@pytest.mark.parametrize("timeout", ["2026-11-21T02:12:59Z", "2026-11-21T02:11:05.644608777Z", "2026-11-21T02:11:06.93741843+01:00"])
def test_lease_timeouts_of_both_versions_are_known(timeout: str) -> None:
    """Version 1 writes whole seconds, version 2 nanoseconds; neither is compared with a clock."""
    assert read(row(LeaseTimeout={"S": timeout})).shards


def test_an_owner_left_behind_says_nothing_about_the_place() -> None:
    """It stays after SIGKILL."""
    assert read(row(AssignedTo={"S": "w1"})).shards == read(row()).shards


@pytest.mark.parametrize("change", [{"Checkpoint": {"S": ""}}, {}], ids=["empty", "missing"])
def test_an_empty_checkpoint_was_never_acknowledged(change: RawItem) -> None:
    """vmware-go-kcl itself starts such a shard at its initial position."""
    had = {name: tagged for name, tagged in row().items() if name != "Checkpoint"}
    assert read({**had, **change}).shards[0].stored.position is None


def test_a_claim_in_flight_is_told_and_changes_nothing() -> None:
    (shard,) = read(row(ClaimRequest={"S": "w2"})).shards
    assert shard.stored.position == Position.after("150")
    assert "w2" in shard.notes[0]


def test_the_one_parent_that_is_stored_is_read() -> None:
    """ListShards knows the other."""
    assert read(row(ParentShardId={"S": OTHER})).shards[0].parents == {OTHER}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Checkpoint": {"S": "LATEST"}}, "Checkpoint 'LATEST'"),
        ({"Checkpoint": {"N": "150"}}, "Checkpoint has type N"),
        ({"LeaseTimeout": {"S": "soon"}}, "LeaseTimeout 'soon'"),
        ({"ParentShardId": {"S": "0"}}, "ParentShardId '0'"),
        ({"SubSequence": {"N": "1"}}, "unknown attribute SubSequence"),
        ({"ShardID": {"S": "worker"}}, "ShardID 'worker' is not a shard id"),
    ],
)
def test_what_is_not_known_is_refused_by_row_and_attribute(change: RawItem, said: str) -> None:
    with pytest.raises(Refused) as refused:
        read({**row(), **change})
    assert said in str(refused.value)


def test_a_missing_row_is_no_finished_shard() -> None:
    """vmware-go-kcl deletes rows of shards that ListShards no longer knows, and no others."""
    reading = read(row())
    assert (reading.finished_rows_vanish, reading.rowless) == (False, None)
