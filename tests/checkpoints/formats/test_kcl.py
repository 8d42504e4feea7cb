from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sluice_checkpoints.dynamodb.source_tables import key_schema
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import take_snapshot
from sluice_checkpoints.formats.kcl import Kcl
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Snapshot, TableKey
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_lab.fakes.migration import MemorySources

KEYS = (TableKey("leaseKey", "HASH", "S"),)
STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
SHARD, OTHER = "shardId-000000000007", "shardId-000000000008"
DIGITS = "49680415687250373589358353577612873132379619787452448802"

DUMPS = ["kcl1-graceful", "kcl1-sigkill", "kcl2-graceful", "kcl34-graceful", "kcl3-graceful", "kcl3-latest", "kcl3-pending", "kcl3-sigkill"]


def snapshot(*rows: RawItem) -> Snapshot:
    return Snapshot("app", {"app": KEYS}, {"app": rows})


def identity(summary: dict[str, Any]) -> StreamIdentity:
    created = round(summary["StreamCreationTimestamp"] * 1000)
    return StreamIdentity(summary["StreamName"], summary["StreamARN"], created, 86_400_000, "ACTIVE")


def read(*rows: RawItem) -> Reading:
    return Kcl().parse(snapshot(*rows), STREAM)


def refusal(*rows: RawItem) -> str:
    with pytest.raises(Refused) as refused:
        read(*rows)
    return str(refused.value)


@pytest.mark.parametrize(
    ("checkpoint", "sub", "position"),
    [
        (DIGITS, 0, Position.after(DIGITS, 0)),
        (DIGITS, 4, Position.after(DIGITS, 4)),
        ("0", 0, Position.after("0", 0)),
        ("TRIM_HORIZON", 0, TRIM_HORIZON),
        ("SHARD_END", 0, END),
        ("LATEST", 0, None),
        ("AT_TIMESTAMP", 0, None),
    ],
)
def test_every_checkpoint_kcl_writes_has_one_meaning(lease: Any, checkpoint: str, sub: int, position: Position | None) -> None:
    """Digits always carry the sub-sequence, and a sentinel never becomes a number."""
    assert read(lease(SHARD, checkpoint, sub)).shards[0].stored.position == position


def test_a_lease_without_a_sub_sequence_counts_as_0(lease: Any) -> None:
    """So an aggregate may come again, and no part of one is passed over."""
    row = lease(SHARD, DIGITS)
    del row["checkpointSubSequenceNumber"]
    assert read(row).shards[0].stored.position == Position.after(DIGITS, 0)


def test_at_timestamp_is_known_to_lack_its_time(lease: Any) -> None:
    """KCL stores the word alone."""
    assert read(lease(SHARD, "AT_TIMESTAMP")).shards[0].stored.at_timestamp


def test_parents_and_children_are_read(lease: Any) -> None:
    """Both are sets, in spite of the singular name."""
    (shard,) = read(lease(SHARD, "SHARD_END", parentShardId={"SS": [OTHER]}, childShardIds={"SS": [OTHER, SHARD]})).shards
    assert (set(shard.parents), set(shard.children)) == ({OTHER}, {OTHER, SHARD})


def test_a_pending_checkpoint_does_not_count(lease: Any) -> None:
    """It was prepared and never confirmed: the place is `checkpoint`, and a warning says so."""
    later = str(int(DIGITS) + 1)
    row = lease(SHARD, DIGITS, 2, pendingCheckpoint={"S": later}, pendingCheckpointState={"B": b"state"})
    (shard,) = read(row).shards
    assert shard.stored.position == Position.after(DIGITS, 2)
    assert later in shard.notes[0]
    assert "application state" in shard.notes[0]


@pytest.mark.parametrize("state", [{"B": b"x"}, {"N": "0"}])
def test_pending_state_is_bytes_or_the_number_kcl_writes_there_by_mistake(lease: Any, state: dict[str, Any]) -> None:
    """KCL's serializer puts the sub-sequence into that attribute when it creates a lease."""
    assert read(lease(SHARD, DIGITS, pendingCheckpoint={"S": DIGITS}, pendingCheckpointState=state)).shards


def test_a_handoff_in_flight_is_told(lease: Any) -> None:
    """Whoever looks at the plan may know why the place is older than expected."""
    (note,) = read(lease(SHARD, DIGITS, checkpointOwner={"S": "worker-2"})).shards[0].notes
    assert "worker-2" in note


def test_a_handoff_in_flight_changes_nothing_about_the_place(lease: Any) -> None:
    """`checkpointOwner` names who is asked to stop; the checkpoint stays the checkpoint."""
    assert read(lease(SHARD, DIGITS, 1, checkpointOwner={"S": "old"})).shards[0].stored.position == Position.after(DIGITS, 1)


def test_a_throughput_with_an_exponent_changes_nothing(lease: Any) -> None:
    """KCL 3 writes 2.3E-5."""
    assert read(lease(SHARD, throughputKBps={"N": "2.3E-5"})).shards == read(lease(SHARD)).shards != ()


@pytest.mark.parametrize(
    "row",
    [
        {"leaseKey": {"S": "Leader"}, "ownerName": {"S": "w"}},
        {"leaseKey": {"S": "Migration3.0"}, "cv": {"S": "CLIENT_VERSION_3X"}},
        {"leaseKey": {"S": "TableMigration3.5"}, "tm": {"S": "TABLE_MIGRATION_STATUS_INIT"}},
        {"leaseKey": {"S": "worker-1"}, "entityType": {"S": "WORKER_METRIC_STATS"}, "sts": {"M": {}}},
        {"leaseKey": {"S": "anything"}, "entityType": {"S": "STREAM"}, "streamId": {"S": "x"}},
    ],
)
def test_known_rows_that_are_no_shards_are_skipped(row: RawItem) -> None:
    """They are known by entityType, or by name where an older version wrote them."""
    reading = read(row)
    assert not reading.shards
    assert len(reading.skipped) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"checkpoint": {"S": "LATEST_ISH"}}, "checkpoint 'LATEST_ISH'"),
        ({"checkpoint": {"S": "007"}}, "checkpoint '007'"),
        ({"checkpoint": {"S": ""}}, "checkpoint ''"),
        ({"checkpoint": {"N": "7"}}, "checkpoint has type N, expected S"),
        ({"checkpoint": {"NULL": True}}, "checkpoint has type NULL"),
        ({"checkpointSubSequenceNumber": {"S": "3"}}, "checkpointSubSequenceNumber has type S, expected N"),
        ({"checkpointSubSequenceNumber": {"N": "-1"}}, "checkpointSubSequenceNumber '-1'"),
        ({"checkpointSubSequenceNumber": {"N": "1.5"}}, "checkpointSubSequenceNumber '1.5'"),
        ({"leaseCounter": {"N": "many"}}, "leaseCounter 'many'"),
        ({"parentShardId": {"S": OTHER}}, "parentShardId has type S, expected SS"),
        ({"childShardIds": {"SS": ["nonsense"]}}, "childShardIds holds 'nonsense'"),
        ({"pendingCheckpoint": {"S": "soon"}}, "pendingCheckpoint 'soon'"),
        ({"pendingCheckpointState": {"S": "x"}}, "pendingCheckpointState has type S, expected B or N"),
        ({"checkpointV2": {"S": "1"}}, "unknown attribute checkpointV2 (type S)"),
        ({"entityType": {"S": "SURPRISE"}}, "unknown entityType 'SURPRISE'"),
        ({"entityType": {"S": "LEADER"}}, "is not a lease, yet the row has a checkpoint"),
    ],
)
def test_what_is_not_known_is_refused_by_row_and_attribute(lease: Any, change: dict[str, Any], said: str) -> None:
    message = refusal(lease(SHARD) | change)
    assert said in message
    assert f"row {SHARD}" in message


@pytest.mark.parametrize("missing", ["checkpoint", "leaseCounter"])
def test_a_lease_needs_its_checkpoint_and_its_counter(lease: Any, missing: str) -> None:
    """Without the one there is no place, without the other nobody could tell that its worker lives."""
    row = lease(SHARD)
    del row[missing]
    assert f"{missing} is missing" in refusal(row)


@pytest.mark.parametrize("key", ["worker-1", "shardId-7", "shardId-0000000000077", "orders"])
def test_a_row_of_an_unknown_name_is_refused(lease: Any, key: str) -> None:
    """It might be a shard of a version nobody has looked at."""
    assert f"row {key}" in refusal(lease(key))


def test_all_strange_rows_are_named_at_once(lease: Any) -> None:
    message = refusal(*(lease(f"strange-{i:02d}") for i in range(12)))
    assert "strange-00" in message
    assert "strange-09" in message
    assert "and 2 more" in message


@pytest.mark.parametrize("name", ["st-kcl2-multistream", "st-kcl2-multistream-b"])
def test_in_a_table_of_several_streams_only_the_rows_of_this_one_count(golden: Callable[[str], Any], name: str) -> None:
    dump = golden("kcl2-multistream")
    stream = dump.document["streams"][name]
    reading = Kcl().parse(snapshot(*dump.rows), identity(stream["summary"]))
    stands = {shard.id: meaning(shard.stored) for shard in reading.shards}
    assert stands == {shard: derived["stored_position"] for shard, derived in stream["derived"].items()}
    assert len(reading.skipped) == len(dump.rows) - len(stands)


def several(shard: str = SHARD, stream: str = "orders", epoch: int = 1_700_000_000, account: str = "123456789012") -> RawItem:
    name = f"{account}:{stream}:{epoch}"
    return bare(f"{name}:{shard}") | {"streamName": {"S": name}, "shardId": {"S": shard}}


def bare(key: str) -> dict[str, Any]:
    return {"leaseKey": {"S": key}, "checkpoint": {"S": DIGITS}, "leaseCounter": {"N": "1"}}


def in_account(*rows: RawItem) -> Reading:
    arn = "arn:aws:kinesis:us-east-1:123456789012:stream/orders"
    return Kcl().parse(snapshot(*rows), StreamIdentity("orders", arn, 1_700_000_000_786, 86_400_000, "ACTIVE"))


@pytest.mark.parametrize("other", [several(stream="invoices"), several(account="999999999999")])
def test_rows_of_another_stream_or_account_are_skipped_and_said(other: RawItem) -> None:
    reading = in_account(several(), other)
    assert [shard.id for shard in reading.shards] == [SHARD]
    assert "of stream" in reading.skipped[0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([several(epoch=1_600_000_000)], "created at 1600000000, and today's was created at 1700000000"),
        ([several(stream="invoices")], "has no lease of stream orders in account 123456789012, but of invoices in account 123456789012"),
        ([several(), bare(OTHER)], f"row {OTHER}: leaseKey names no stream"),
        ([several("worker-1")], "is not a shard id"),
    ],
)
def test_a_table_of_several_streams_that_is_not_surely_ours_is_refused(rows: list[RawItem], said: str) -> None:
    with pytest.raises(Refused) as refused:
        in_account(*rows)
    assert said in str(refused.value)


def test_leases_of_an_earlier_stream_of_the_name_are_skipped_beside_todays() -> None:
    """KCL keeps them, and the table may not be touched."""
    reading = in_account(several(), several(OTHER, epoch=1_600_000_000))
    assert [shard.id for shard in reading.shards] == [SHARD]
    assert "of an earlier stream orders, created at 1600000000" in reading.skipped[0]


def test_the_key_of_a_worker_does_not_make_a_table_one_of_several_streams(lease: Any) -> None:
    """Workers are named by their applications."""
    worker = {"leaseKey": {"S": "10:host:77:abc"}, "entityType": {"S": "WORKER_METRIC_STATS"}}
    assert [shard.id for shard in read(lease(SHARD, DIGITS), worker).shards] == [SHARD]


def test_a_lease_of_one_stream_has_no_stream_attributes(lease: Any) -> None:
    """KCL writes them in tables of several streams only, so a mixed row is one that nobody has seen."""
    assert "unknown attribute streamName" in refusal(lease(SHARD, streamName={"S": "orders"}))


@pytest.mark.parametrize("name", DUMPS)
def test_every_shard_of_a_real_table_stands_where_its_consumer_left_it(golden: Callable[[str], Any], name: str) -> None:
    """Against the positions that the dumps' authors derived from what was delivered."""
    dump = golden(name)
    shards = {shard.id: shard.stored for shard in read(*dump.rows).shards}
    for shard, expected in dump.stands.items():
        assert meaning(shards[shard]) == expected


def meaning(stored: Any) -> Any:
    """A stored position in the words of the dumps: a word that names no record is "none"."""
    if stored.position is None or stored.position == TRIM_HORIZON:
        return ["none", stored.text, None]
    return ["after", stored.position.sequence, stored.position.sub] if stored.position.sequence else ["end", None, None]


@pytest.mark.parametrize(
    ("name", "skipped"),
    [("kcl1-graceful", 0), ("kcl34-graceful", 0), ("kcl3-graceful", 2), ("kcl3-sigkill", 3)],
)
def test_rows_that_are_no_shards_stand_among_those_of_kcl_3_5(golden: Callable[[str], Any], name: str, skipped: int) -> None:
    """A fresh KCL 3.5 keeps leader, migration state and worker metrics in the lease table."""
    assert len(read(*golden(name).rows).skipped) == skipped


def test_the_side_tables_of_kcl_3_4_are_watched_too(golden: Callable[[str], Any]) -> None:
    """A worker that holds no lease writes its metrics there every 30 s, and nowhere else."""
    document = golden("kcl34-graceful").document
    tables = {name: (keys_of(table), table["items"]) for name, table in document["tables"].items()}
    chosen, before = take_snapshot(MemorySources(tables), "kcl34-graceful")
    assert (chosen.name, len(before.tables)) == ("kcl", 3)
    later = copy.deepcopy(tables)
    later["kcl34-graceful-WorkerMetricStats"][1][0]["lut"] = {"N": "1795227601"}
    assert before.moved(take_snapshot(MemorySources(later), "kcl34-graceful")[1]) == ("w1: lut 1795227571 → 1795227601",)


def keys_of(table: dict[str, Any]) -> KeySchema:
    return key_schema(table["describe"])
