from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import kcl
from sluice_checkpoints.formats.nifi import HALF_MADE, KEY, Nifi
from sluice_checkpoints.formats.reader import Reading, SourceShard
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import StreamIdentity

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
SHARD, OTHER = "shardId-000000000007", "shardId-000000000008"
HALF = "app" + HALF_MADE


def row(shard: str = SHARD, sequence: str | None = "150", stream: str = "orders", **more: dict[str, Any]) -> RawItem:
    place = {} if sequence is None else {"sequenceNumber": {"S": sequence}}
    return {"streamName": {"S": stream}, "shardId": {"S": shard}, "lastUpdateTimestamp": {"N": "1"}} | place | more


def lease(shard: str, checkpoint: str, sub: int = 0) -> RawItem:
    numbers = {"checkpointSubSequenceNumber": {"N": str(sub)}, "leaseCounter": {"N": "1"}}
    return {"leaseKey": {"S": shard}, "checkpoint": {"S": checkpoint}} | numbers


def read(*main: RawItem, half: list[RawItem] | None = None) -> Reading:
    tables = {"app": main} | ({} if half is None else {HALF: half})
    return Nifi().parse(Snapshot("app", dict.fromkeys(tables, KEY), tables), STREAM)


def read_half(*half: RawItem, legacy: list[RawItem] | None = None) -> Reading:
    tables = {HALF: half} | ({} if legacy is None else {"app": legacy})
    keys = {HALF: KEY} | ({} if legacy is None else {"app": kcl.KEY})
    return Nifi().parse(Snapshot("app", keys, tables), STREAM)


def places(reading: Reading) -> dict[str, Position | None]:
    return {shard.id: shard.stored.position for shard in reading.shards}


@pytest.mark.parametrize(
    ("stored", "position"),
    [
        (row(), Position.after("150")),
        (row(subSequenceNumber={"N": "0"}), Position.after("150", 0)),
        (row(subSequenceNumber={"N": "3"}), Position.after("150", 3)),
        (row(leaseOwner={"S": "node"}, leaseExpiry={"N": "5"}), Position.after("150")),
        (row(sequence=None, leaseOwner={"S": "node"}), None),
    ],
)
def test_a_number_means_the_whole_kinesis_record(stored: RawItem, position: Position | None) -> None:
    """NiFi resumes after it; a sub-sequence may say less, 0 too (NiFi's copy of a KCL row). A lease without a number was never acknowledged."""
    assert places(read(stored, row(OTHER)))[SHARD] == position


@pytest.mark.parametrize(
    "other",
    [
        row("__node__#735f2295", None, nodeHeartbeat={"N": "1"}),
        row("__node__#735f2295", None),
        row("__migration__", None, migrationStatus={"S": "COMPLETE"}, renameOwner={"S": "x"}, renameStartedAt={"N": "1"}),
        row(stream="invoices"),
    ],
)
def test_heartbeats_markers_and_other_streams_are_skipped(other: RawItem) -> None:
    """One table may serve several processors."""
    reading = read(other, row(OTHER))
    assert list(places(reading)) == [OTHER]
    assert len(reading.skipped) == 1


@pytest.mark.parametrize(
    ("strange", "said"),
    [
        (row(sequence="SHARD_END"), "sequenceNumber 'SHARD_END'"),
        (row(sequence="007"), "sequenceNumber '007'"),
        (row(checkpoint={"S": "150"}), "unknown attribute checkpoint"),
        (row(subSequenceNumber={"N": "-1"}), "subSequenceNumber '-1'"),
        (row(sequenceNumber={"N": "150"}), "sequenceNumber has type N"),
        (row("shardId-7"), "is not a shard id"),
        (row("__node__#1", None, sequenceNumber={"S": "1"}), "unknown attribute sequenceNumber"),
    ],
)
def test_what_is_not_known_is_refused_by_row_and_attribute(strange: RawItem, said: str) -> None:
    """NiFi itself reads a malformed number as none, and starts again."""
    with pytest.raises(Refused) as refused:
        read(strange, row(OTHER))
    assert said in str(refused.value)
    assert f"row orders/{strange['shardId']['S']}" in str(refused.value)


def test_a_table_without_a_shard_of_the_stream_is_refused() -> None:
    """A wrong name, or the only copy is gone: not a reason to read everything from anywhere."""
    with pytest.raises(Refused, match="no row of a shard of stream orders"):
        read(row(stream="invoices"))


def test_a_row_is_taken_from_whichever_table_has_it() -> None:
    """NIFI-16003: the main table was made again and is empty, or the copy stopped half-way."""
    assert places(read(half=[row()])) == {SHARD: Position.after("150")}
    assert places(read(row(OTHER), half=[row()])) == {SHARD: Position.after("150"), OTHER: Position.after("150")}
    assert places(read_half(row())) == {SHARD: Position.after("150")}


@pytest.mark.parametrize(("main", "half", "stands"), [("150", "160", "160"), ("160", "150", "160"), (None, "150", "150"), ("150", None, "150")])
def test_where_both_tables_have_a_row_the_higher_place_counts(main: str | None, half: str | None, stands: str) -> None:
    """NiFi's own repair copies the older one over the newer."""
    assert places(read(row(sequence=main), half=[row(sequence=half)])) == {SHARD: Position.after(stands)}


@pytest.mark.parametrize(
    ("legacy", "half", "stands"),
    [
        (lease(SHARD, "150", 3), row(), Position.after("150", 3)),
        (lease(SHARD, "SHARD_END"), row(), END),
        (lease(SHARD, "TRIM_HORIZON"), None, TRIM_HORIZON),
        (lease(SHARD, "150", 3), row(sequence="160"), Position.after("150", 3)),
        (lease(SHARD, "LATEST"), row(sequence="160"), Position.after("160")),
    ],
)
def test_a_kcl_table_beside_its_copy_knows_more(legacy: RawItem, half: RawItem | None, stands: Position) -> None:
    """The place inside an aggregate and the ends of shards, which the copy has lost (H4, H5)."""
    assert places(read_half(*([half] if half else []), legacy=[legacy])) == {SHARD: stands}


def test_an_interrupted_migration_is_told() -> None:
    """The next start of NiFi may delete the only copy."""
    assert "the main table is not there" in read_half(row()).notes[0]
    assert "the main table is NiFi's" in read(row(), half=[]).notes[0]
    assert "the main table is still KCL's" in read_half(legacy=[lease(SHARD, "150")]).notes[0]
    assert not read(row()).notes


def test_a_missing_row_means_finished_only_in_a_kcl_table() -> None:
    """KCL deletes rows of finished shards after their children started; NiFi's migration drops them before."""
    whole = read_half(legacy=[lease(SHARD, "150")])
    assert (whole.finished_rows_vanish, whole.rowless) == (True, None)
    assert not read(row()).finished_rows_vanish
    assert "drops the rows of finished" in str(read(row()).rowless)


def test_the_further_of_two_rows_is_named() -> None:
    (shard,) = read(row(), half=[row(sequence="160")]).shards
    assert isinstance(shard, SourceShard)
    assert "160" in shard.notes[0]
    assert "150" in shard.notes[0]


def test_nifis_copy_of_a_real_kcl_table_is_read_with_it(golden: Callable[[str], Any]) -> None:
    """H1: the scan failed before the copy; the legacy table is whole and the half-made one holds its marker alone."""
    dump = golden("kcl1-sigkill")
    stream = dump.describe()
    marker = row("__migration__", None, stream=stream.name)
    tables = {"app": dump.rows, HALF: [marker]}
    reading = Nifi().parse(Snapshot("app", {"app": kcl.KEY, HALF: KEY}, tables), stream)
    alone = kcl.Kcl().parse(Snapshot("app", {"app": kcl.KEY}, {"app": dump.rows}), stream)
    assert json.dumps([str(s) for s in reading.shards]) == json.dumps([str(s) for s in alone.shards])
