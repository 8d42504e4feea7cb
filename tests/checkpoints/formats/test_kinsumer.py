from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.kinsumer import KEY, Kinsumer
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.snapshot import RawItem, Snapshot, TableKey
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_lab.fakes.migration import MemorySources

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
SHARD = "shardId-000000000007"
NULL = {"NULL": True}


def row(sequence: dict[str, Any], **more: dict[str, Any]) -> RawItem:
    times = {"LastUpdate": {"N": "1795227252488397394"}, "LastUpdateRFC": {"S": "Sat, 21 Nov 2026 02:14:12 +0000"}}
    return {"Shard": {"S": SHARD}, "SequenceNumber": sequence, "Finished": NULL, "FinishedRFC": NULL} | times | more


def read(*rows: RawItem) -> Reading:
    keys = {"app_checkpoints": KEY, "app_clients": (TableKey("ID", "HASH", "S"),)}
    return Kinsumer().parse(Snapshot("app_checkpoints", keys, {"app_checkpoints": rows, "app_clients": []}), STREAM)


@pytest.mark.parametrize(
    ("sequence", "position"),
    [({"S": "150"}, Position.after("150")), (NULL, None), ({"S": ""}, None), ({"S": "LATEST"}, None)],
)
def test_a_number_means_the_whole_record_and_everything_else_nothing(sequence: dict[str, Any], position: Position | None) -> None:
    """NULL, empty and LATEST stand there until the first commit."""
    assert read(row(sequence)).shards[0].stored.position == position


@pytest.mark.parametrize("sequence", [{"S": "150"}, NULL])
def test_a_finished_shard_is_at_its_end_whatever_its_number(sequence: dict[str, Any]) -> None:
    """A bootstrap marks closed shards as finished without one."""
    finished = row(sequence, Finished={"N": "1795227245485476441"}, FinishedRFC={"S": "Sat, 21 Nov 2026 02:14:05 +0000"})
    assert read(finished).shards[0].stored.position == END


@pytest.mark.parametrize("owner", [{"S": "w1-id"}, NULL])
def test_an_owner_left_behind_says_nothing_about_the_place(owner: dict[str, Any]) -> None:
    """It stays after SIGKILL; a release removes it."""
    assert read(row({"S": "150"}, OwnerID=owner, OwnerName=owner)).shards == read(row({"S": "150"})).shards


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"SequenceNumber": {"S": "TRIM_HORIZON"}}, "SequenceNumber 'TRIM_HORIZON'"),
        ({"SequenceNumber": {"N": "150"}}, "SequenceNumber has type N"),
        ({"Finished": {"S": "yes"}}, "Finished has type S"),
        ({"Shard": {"S": "Leader"}}, "Shard 'Leader' is not a shard id"),
        ({"Confirmed": {"N": "1"}}, "unknown attribute Confirmed"),
    ],
)
def test_what_is_not_known_is_refused_by_row_and_attribute(change: RawItem, said: str) -> None:
    with pytest.raises(Refused) as refused:
        read({**row({"S": "150"}), **change})
    assert said in str(refused.value)


def test_a_client_that_beats_is_a_sign_of_life() -> None:
    """An idle one writes nothing else."""

    def tables(beat: str) -> dict[str, tuple[tuple[TableKey, ...], list[RawItem]]]:
        client = {"ID": {"S": "w1-id"}, "LastUpdate": {"N": beat}}
        return {"app_checkpoints": (KEY, [row({"S": "150"})]), "app_clients": ((TableKey("ID", "HASH", "S"),), [client])}

    before, after = (take_snapshot(MemorySources(tables(beat)), "app_checkpoints")[1] for beat in ("1", "2"))
    assert before.moved(after) == ("w1-id: LastUpdate 1 → 2",)


def test_without_its_clients_table_nobody_can_tell_that_it_is_stopped() -> None:
    alone = Kinsumer().parse(Snapshot("mine", {"mine": KEY}, {"mine": [row({"S": "150"})]}), STREAM)
    assert "_clients" in alone.notes[0]
    assert not read(row({"S": "150"})).notes
