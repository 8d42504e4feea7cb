from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import SourceActive
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.reader import StoredPosition
from sluice_checkpoints.formats.snapshot import Snapshot, TableKey
from sluice_checkpoints.formats.writer import RowChange, RowContent, in_transactions, same, same_rows, write_rows
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import Shard, StreamIdentity
from sluice_lab.fakes.migration import MemoryTargetTables

ID, PARENT, OTHER, CHILD = (f"shardId-{i:012d}" for i in (3, 0, 1, 7))
SHARD = Shard(ID, (PARENT, OTHER), 5, 9, "100", "900")
STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", 1_000, 86_400_000, "ACTIVE")
AT = 1_700_000_000_000
LONG = str(2**63 - 1)
S150 = Position.after("150")
NOTHING: Any = {"NULL": True}


def write(name: str, position: Position | None, had: Any = None) -> Any:
    """The row as it is written; None: it says so already."""
    change = WRITERS[name].change(RowContent(SHARD, (CHILD,), position, "orders", AT), had)
    return change.after if change else None


def lease(checkpoint: str, sub: str = "0", **more: Any) -> Any:
    return {
        "leaseKey": {"S": ID},
        "checkpoint": {"S": checkpoint},
        "checkpointSubSequenceNumber": {"N": sub},
        "leaseCounter": {"N": "0"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
        "parentShardId": {"SS": [PARENT, OTHER]},
        "startingHashKey": {"S": "5"},
        "endingHashKey": {"S": "9"},
    } | more


def nifi(**more: Any) -> Any:
    return {"streamName": {"S": "orders"}, "shardId": {"S": ID}, "lastUpdateTimestamp": {"N": str(AT)}} | more


def kinsumer(number: Any, **more: Any) -> Any:
    times = {"LastUpdate": {"N": f"{AT}000000"}, "LastUpdateRFC": {"S": "Tue, 14 Nov 2023 22:13:20 +0000"}}
    return {"Shard": {"S": ID}, "SequenceNumber": number, "Finished": NOTHING, "FinishedRFC": NOTHING} | times | more


FINISHED = {"Finished": {"N": f"{AT}000000"}, "FinishedRFC": {"S": "Tue, 14 Nov 2023 22:13:20 +0000"}}
GO = {"ShardID": {"S": ID}, "ParentShardId": {"S": PARENT}}


@pytest.mark.parametrize(
    ("name", "position", "row"),
    [
        ("kcl", S150, lease("150", LONG)),
        ("kcl", Position.after("150", 3), lease("150", "3")),
        ("kcl", Position.after("150", 0), lease("150", "0")),
        ("kcl", END, lease("SHARD_END", childShardIds={"SS": [CHILD]})),
        ("kcl", TRIM_HORIZON, lease("TRIM_HORIZON")),
        ("nifi", S150, nifi(sequenceNumber={"S": "150"})),
        ("nifi", None, nifi()),
        ("vmware-go-kcl", S150, GO | {"Checkpoint": {"S": "150"}}),
        ("vmware-go-kcl", END, GO | {"Checkpoint": {"S": "SHARD_END"}}),
        ("vmware-go-kcl", None, GO),
        ("kinsumer", S150, kinsumer({"S": "150"})),
        ("kinsumer", END, kinsumer(NOTHING, **FINISHED)),
        ("kinsumer", None, kinsumer(NOTHING)),
    ],
)
def test_a_new_row_is_what_its_system_would_have_left(name: str, position: Position | None, row: Any) -> None:
    assert write(name, position) == row


SAID = {
    "kcl": (S150, Position.after("150", 3), END, TRIM_HORIZON),
    "nifi": (S150, None),
    "vmware-go-kcl": (S150, END, None),
    "kinsumer": (S150, END, None),
}


@pytest.mark.parametrize(("name", "position"), [(name, position) for name, said in SAID.items() for position in said])
def test_what_is_written_is_understood_by_the_formats_own_reader(name: str, position: Position | None) -> None:
    writer = WRITERS[name]
    snapshot = Snapshot("t", {"t": writer.keys}, {"t": (write(name, position),)})
    ((row,),) = (writer.reader.parse(snapshot, STREAM).shards,)
    assert (row.id, row.stored.position) == (ID, position)


@pytest.mark.parametrize("name", WRITERS)
def test_a_row_that_was_written_is_not_written_again(name: str) -> None:
    """Counters and times alone are no reason: so a crash and a second run change nothing."""
    for position in (S150, END if WRITERS[name].supports_shard_end else None):
        assert write(name, position, write(name, position)) is None


@pytest.mark.parametrize(
    ("name", "had", "gone"),
    [
        ("kcl", {"leaseOwner": {"S": "w"}, "checkpointOwner": {"S": "v"}}, ("leaseOwner", "checkpointOwner")),
        (
            "kcl",
            {"pendingCheckpoint": {"S": "1"}, "pendingCheckpointSubSequenceNumber": {"N": "0"}, "pendingCheckpointState": {"B": b"x"}},
            ("pendingCheckpoint", "pendingCheckpointSubSequenceNumber", "pendingCheckpointState"),
        ),
        ("nifi", {"leaseOwner": {"S": "n"}, "leaseExpiry": {"N": "1"}, "subSequenceNumber": {"N": "0"}}, ("leaseOwner", "leaseExpiry")),
        ("vmware-go-kcl", {n: {"S": "w"} for n in ("AssignedTo", "LeaseTimeout", "ClaimRequest")}, ("AssignedTo", "LeaseTimeout", "ClaimRequest")),
        ("kinsumer", {"OwnerID": {"S": "i"}, "OwnerName": NOTHING}, ("OwnerID", "OwnerName")),
    ],
)
def test_owners_and_wishes_are_taken_out_even_where_the_place_is_right(name: str, had: Any, gone: tuple[str, ...]) -> None:
    """So that the first worker that comes may take the shard at once."""
    row = write(name, S150, write(name, S150) | had)
    assert row is not None
    assert [attribute for attribute in gone if attribute in row] == []


def test_a_lease_keeps_what_says_nothing_of_the_place_and_its_counter_moves() -> None:
    """KCL's own writes ask for the counter they read: a worker that slept is refused."""
    had = lease("120", "0", leaseCounter={"N": "7"}, throughputKBps={"N": "2.3E-5"}, entityType={"S": "LEASE"})
    row = write("kcl", S150, had)
    assert (row["leaseCounter"], row["throughputKBps"], row["entityType"]) == ({"N": "8"}, {"N": "2.3E-5"}, {"S": "LEASE"})


def test_a_lease_that_had_no_counter_gets_one() -> None:
    assert write("kcl", S150, {"leaseKey": {"S": ID}})["leaseCounter"] == {"N": "1"}


@pytest.mark.parametrize(
    "had",
    [None, kinsumer({"S": "150"}), kinsumer(NOTHING), kinsumer({"S": "LATEST"}), kinsumer(NOTHING, **FINISHED)],
    ids=["no row", "a place", "no place", "the fork's word for the tip", "finished without a number"],
)
def test_a_shard_that_is_finished_tells_kinsumer_the_number_of_its_end(had: Any) -> None:
    """Who captures a shard goes by the number; only the leader asks for `Finished`. From any other number the shard is delivered again."""
    change = WRITERS["kinsumer"].change(RowContent(SHARD, (CHILD,), END, "orders", AT, last="200"), had)
    assert change is not None
    assert change.after["SequenceNumber"] == {"S": "200"}
    assert "N" in change.after["Finished"]


def test_kinsumer_keeps_when_a_shard_was_finished_and_never_says_latest() -> None:
    """The time of the first finish stays; the word LATEST would leave records out."""
    had = kinsumer({"S": "150"}, Finished={"N": "7"}, FinishedRFC={"S": "then"})
    assert write("kinsumer", END, had) is None
    assert write("kinsumer", None, kinsumer({"S": "LATEST"}))["SequenceNumber"] == NOTHING
    assert write("kinsumer", END, kinsumer({"S": "LATEST"}))["SequenceNumber"] == NOTHING
    assert write("kinsumer", END, kinsumer({"S": "150"}))["SequenceNumber"] == {"S": "150"}


def test_a_whole_record_in_kcl_is_a_sub_sequence_that_no_user_record_exceeds() -> None:
    """KCL starts at the record and drops user records up to it; Sluice reads it as the whole record again."""
    writer = WRITERS["kcl"]
    (row,) = writer.reader.parse(Snapshot("t", {"t": writer.keys}, {"t": (lease("150", LONG),)}), STREAM).shards
    assert row.stored == StoredPosition(f"150/{LONG}", Position.after("150"))
    assert int(LONG) == 9_223_372_036_854_775_807


# -- the change of a row -----------------------------------------------------------------------------------------------------------

KEYS = (TableKey("id", "HASH", "S"),)
KNOWN = frozenset({"id", "n", "s"})
BEFORE: Any = {"id": {"S": "a"}, "n": {"N": "1"}}
AFTER: Any = {"id": {"S": "a"}, "n": {"N": "2"}}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"N": "1"}, {"N": "1.0"}),
        ({"N": "2.3E-5"}, {"N": "0.000023"}),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}),
        ({"NS": ["1", "2"]}, {"NS": ["2", "1.0"]}),
        ({"M": {"x": {"L": [{"N": "1"}]}}}, {"M": {"x": {"L": [{"N": "1.0"}]}}}),
        (None, None),
    ],
)
def test_attributes_are_compared_as_dynamodb_compares_them(left: Any, right: Any) -> None:
    """Numbers by value, sets without order."""
    assert same(left, right)


@pytest.mark.parametrize(("left", "right"), [({"N": "1"}, {"S": "1"}), ({"S": ""}, None), (NOTHING, None), ({"L": [{"N": "1"}]}, {"L": []})])
def test_types_and_absence_count(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert not same_rows({"a": left}, {"a": right} if right else {})


@pytest.mark.parametrize(
    ("before", "found", "holds"),
    [
        (BEFORE, BEFORE, True),
        (BEFORE, BEFORE | {"other": {"S": "x"}}, True),
        (BEFORE, BEFORE | {"s": {"S": "x"}}, False),
        (BEFORE, AFTER, False),
        (BEFORE, {"id": {"S": "a"}}, False),
        (BEFORE, None, False),
        (None, None, True),
        (None, BEFORE, False),
    ],
)
def test_a_change_asks_for_every_known_attribute_as_it_was_read(before: Any, found: Any, *, holds: bool) -> None:
    """What the format does not know says nothing about the place."""
    assert RowChange(KEYS, before, AFTER, KNOWN).holds(found) is holds


def test_a_transaction_whose_reply_was_lost_counts_as_made() -> None:
    tables = MemoryTargetTables({"t": (KEYS, [BEFORE])})
    changes = [RowChange(KEYS, BEFORE, AFTER, KNOWN), RowChange(KEYS, None, {"id": {"S": "b"}}, KNOWN)]
    assert tables.write("t", changes) == {}
    write_rows(tables, "t", changes)
    assert sorted(map(str, tables.tables["t"][1])) == sorted(map(str, [AFTER, {"id": {"S": "b"}}]))


@pytest.mark.parametrize("rows", [[], [BEFORE | {"s": {"S": "x"}}]])
def test_a_row_that_moved_or_went_is_somebody_at_work(rows: list[Any]) -> None:
    with pytest.raises(SourceActive, match="a moved"):
        write_rows(MemoryTargetTables({"t": (KEYS, rows)}), "t", [RowChange(KEYS, BEFORE, AFTER, KNOWN)])


def test_changes_are_cut_into_transactions_of_a_hundred() -> None:
    """TransactWriteItems takes no more; the in-memory fake neither."""
    changes = [RowChange(KEYS, None, {"id": {"S": str(i)}}, KNOWN) for i in range(201)]
    assert [len(part) for part in in_transactions(changes)] == [100, 100, 1]
    with pytest.raises(ValueError, match="100"):
        MemoryTargetTables({"t": (KEYS, [])}).write("t", changes)


@pytest.mark.parametrize("kilobytes", [0, 45, 60, 380])
def test_transactions_stay_below_the_size_that_dynamodb_takes(kilobytes: int) -> None:
    """Of 100 rows, and of 4 MB, conditions included: rows of KCL carry an application's state."""
    state: Any = {"pendingCheckpointState": {"B": bytes(kilobytes * 1024)}}
    befores = [lease("150", leaseKey={"S": f"shardId-{i:012d}"}, **(state if kilobytes else {})) for i in range(201)]
    known = frozenset(WRITERS["kcl"].types)
    changes = [RowChange(WRITERS["kcl"].keys, row, lease("160", leaseKey=row["leaseKey"]), known) for row in befores]
    parts = in_transactions(changes)
    assert [change for part in parts for change in part] == changes
    assert [len(part) for part in parts] == [100, 100, 1] or kilobytes
    stored = [sum(len(tagged.get("B", b"")) for change in part for tagged in (change.before or {}).values()) for part in parts]
    assert max(stored) < 4_000_000 * 3 / 4  # in a request bytes are text, a third longer


def test_a_row_that_is_wanted_with_its_state_counts_twice() -> None:
    """It is in the condition and in the row."""
    keys = WRITERS["kcl"].keys
    state: Any = {"pendingCheckpointState": {"B": bytes(300_000)}}
    kept = [RowChange(keys, lease("150", **state), lease("160", **state), frozenset(WRITERS["kcl"].types)) for _ in range(8)]
    assert max(len(part) for part in in_transactions(kept)) <= 6
