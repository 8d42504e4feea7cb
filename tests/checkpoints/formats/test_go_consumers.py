"""What the rows of vmware-go-kcl and of kinsumer say, both written in Go: neither stores a position inside an aggregate."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import kinsumer, vmware_go_kcl
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot, TableKey
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_lab.fakes.migration import MemorySources

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
SHARD, OTHER = "shardId-000000000007", "shardId-000000000008"
NULL = {"NULL": True}
CLIENTS = (TableKey("ID", "HASH", "S"),)


def lease(**more: dict[str, Any]) -> RawItem:
    """A row of vmware-go-kcl."""
    return {"ShardID": {"S": SHARD}, "LeaseTimeout": {"S": "2026-11-21T02:12:59Z"}} | more


def checkpoint(sequence: dict[str, Any], **more: dict[str, Any]) -> RawItem:
    """A row of kinsumer."""
    times = {"LastUpdate": {"N": "1795227252488397394"}, "LastUpdateRFC": {"S": "Sat, 21 Nov 2026 02:14:12 +0000"}}
    return {"Shard": {"S": SHARD}, "SequenceNumber": sequence, "Finished": NULL, "FinishedRFC": NULL} | times | more


GO_KCL, KINSUMER = lease(Checkpoint={"S": "150"}), checkpoint({"S": "150"})
FINISHED = {"Finished": {"N": "1795227245485476441"}, "FinishedRFC": {"S": "Sat, 21 Nov 2026 02:14:05 +0000"}}


def read(row: RawItem) -> Reading:
    if "ShardID" in row:
        return vmware_go_kcl.VmwareGoKcl().parse(Snapshot("app", {"app": vmware_go_kcl.KEY}, {"app": (row,)}), STREAM)
    keys = {"app_checkpoints": kinsumer.KEY, "app_clients": CLIENTS}
    return kinsumer.Kinsumer().parse(Snapshot("app_checkpoints", keys, {"app_checkpoints": (row,), "app_clients": []}), STREAM)


@pytest.mark.parametrize(
    ("row", "position"),
    [
        pytest.param(GO_KCL, Position.after("150"), id="go-kcl: a number"),
        pytest.param(lease(Checkpoint={"S": "SHARD_END"}), END, id="go-kcl: the end"),
        pytest.param(lease(Checkpoint={"S": ""}), None, id="go-kcl: empty"),
        pytest.param(lease(), None, id="go-kcl: missing"),
        pytest.param(KINSUMER, Position.after("150"), id="kinsumer: a number"),
        pytest.param(checkpoint(NULL), None, id="kinsumer: null"),
        pytest.param(checkpoint({"S": ""}), None, id="kinsumer: empty"),
        pytest.param(checkpoint({"S": "LATEST"}), None, id="kinsumer: the tip"),
        pytest.param(checkpoint({"S": "150"}, **FINISHED), END, id="kinsumer: finished"),
        pytest.param(checkpoint(NULL, **FINISHED), END, id="kinsumer: finished by a bootstrap, without a number"),
    ],
)
def test_a_number_means_the_whole_record_and_what_says_none_was_never_acknowledged(row: RawItem, position: Position | None) -> None:
    assert read(row).shards[0].stored.position == position


@pytest.mark.parametrize(
    ("row", "owner"),
    [
        (GO_KCL, {"AssignedTo": {"S": "w1"}}),
        (KINSUMER, {"OwnerID": {"S": "w1"}, "OwnerName": {"S": "w1"}}),
        (KINSUMER, {"OwnerID": NULL, "OwnerName": NULL}),
    ],
    ids=["go-kcl", "kinsumer", "kinsumer after a release"],
)
def test_an_owner_left_behind_says_nothing_about_the_place(row: RawItem, owner: dict[str, Any]) -> None:
    """It stays after SIGKILL."""
    assert read({**row, **owner}).shards == read(row).shards


@pytest.mark.parametrize(
    ("row", "change", "said"),
    [
        (GO_KCL, {"Checkpoint": {"S": "LATEST"}}, "Checkpoint 'LATEST'"),
        (GO_KCL, {"Checkpoint": {"N": "150"}}, "Checkpoint has type N"),
        (GO_KCL, {"LeaseTimeout": {"S": "soon"}}, "LeaseTimeout 'soon'"),
        (GO_KCL, {"ParentShardId": {"S": "0"}}, "ParentShardId '0'"),
        (GO_KCL, {"SubSequence": {"N": "1"}}, "unknown attribute SubSequence"),
        (GO_KCL, {"ShardID": {"S": "worker"}}, "ShardID 'worker' is not a shard id"),
        (KINSUMER, {"SequenceNumber": {"S": "TRIM_HORIZON"}}, "SequenceNumber 'TRIM_HORIZON'"),
        (KINSUMER, {"SequenceNumber": {"N": "150"}}, "SequenceNumber has type N"),
        (KINSUMER, {"Finished": {"S": "yes"}}, "Finished has type S"),
        (KINSUMER, {"Shard": {"S": "Leader"}}, "Shard 'Leader' is not a shard id"),
        (KINSUMER, {"Confirmed": {"N": "1"}}, "unknown attribute Confirmed"),
    ],
)
def test_what_is_not_known_is_refused_by_row_and_attribute(row: RawItem, change: RawItem, said: str) -> None:
    with pytest.raises(Refused) as refused:
        read({**row, **change})
    assert said in str(refused.value)


# -- vmware-go-kcl -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", ["2026-11-21T02:12:59Z", "2026-11-21T02:11:05.644608777Z", "2026-11-21T02:11:06.93741843+01:00"])
def test_lease_timeouts_of_both_versions_are_known(timeout: str) -> None:
    """Version 1 writes whole seconds, version 2 nanoseconds; neither is compared with a clock."""
    assert read(lease(LeaseTimeout={"S": timeout})).shards


def test_a_claim_in_flight_is_told_and_changes_nothing() -> None:
    (shard,) = read({**GO_KCL, "ClaimRequest": {"S": "w2"}}).shards
    assert shard.stored.position == Position.after("150")
    assert "w2" in shard.notes[0]


def test_the_one_parent_that_is_stored_is_read() -> None:
    """ListShards knows the other."""
    assert read(lease(ParentShardId={"S": OTHER})).shards[0].parents == {OTHER}


def test_a_missing_row_is_no_finished_shard() -> None:
    """vmware-go-kcl deletes rows of shards that ListShards no longer knows, and no others."""
    reading = read(GO_KCL)
    assert (reading.finished_rows_vanish, reading.rowless) == (False, None)


# -- kinsumer ----------------------------------------------------------------------------------------------------------------------


def test_a_client_that_beats_is_a_sign_of_life() -> None:
    """An idle one writes nothing else."""

    def tables(beat: str) -> dict[str, tuple[tuple[TableKey, ...], list[RawItem]]]:
        client = {"ID": {"S": "w1-id"}, "LastUpdate": {"N": beat}}
        return {"app_checkpoints": (kinsumer.KEY, [KINSUMER]), "app_clients": (CLIENTS, [client])}

    before, after = (take_snapshot(MemorySources(tables(beat)), "app_checkpoints")[1] for beat in ("1", "2"))
    assert before.moved(after) == ("w1-id: LastUpdate 1 → 2",)


def test_without_its_clients_table_nobody_can_tell_that_it_is_stopped() -> None:
    alone = kinsumer.Kinsumer().parse(Snapshot("mine", {"mine": kinsumer.KEY}, {"mine": [KINSUMER]}), STREAM)
    assert "_clients" in alone.notes[0]
    assert not read(KINSUMER).notes
