"""Whoever reads a table of Sluice says the same before and after its shards were folded (docs/protocol.md, "Folded shards")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import pytest

from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.diagnose.model import Observation
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.export import plan as export
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.reader import Reading
from sluice_checkpoints.formats.sluice import KEY, Sluice
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate import plan as migration
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.encoding import item_to_wire
from sluice_checkpoints.protocol.folding import delete, fold
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.model import Shard, ShardList, StreamIdentity
from sluice_lab.fakes.table import MemoryTable

STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
EPOCH = Epoch(3, "t3")
CONSUMER = ConsumerRow("c", STREAM.arn, 1, generation=3, token="t3", lease_millis=20_000, released=True, committed=7, bootstrapped=True)
GONE, LATER, LEFT, RIGHT, OPEN = (f"shardId-{i:012d}" for i in range(5))


def ended(shard: str, parents: Iterable[str], children: Iterable[str], **more: Any) -> ShardRow:
    followers = tuple(Child(child, frozenset({shard})) for child in children)
    return ShardRow(shard, Position.after("1"), END, batch=3, generation=2, parents=frozenset(parents), children=followers, **more)


ROWS = [
    ended(GONE, [], [LATER]),
    ended(LATER, [GONE], [LEFT, RIGHT], note="it was last read long ago"),
    ended(LEFT, [LATER], [OPEN]),
    ShardRow(RIGHT, Position.after("15"), Position.after("16"), batch=7, parents=frozenset({LATER})),
    ShardRow(OPEN, TRIM_HORIZON, TRIM_HORIZON, parents=frozenset({LEFT})),
]
HALF = 2**127
LISTED = ShardList(
    (
        Shard(LEFT, (LATER,), 0, HALF - 1, "10", "19"),
        Shard(RIGHT, (LATER,), HALF, 2 * HALF - 1, "10"),
        Shard(OPEN, (LEFT,), 0, HALF - 1, "20"),
    ),
    1_700_000_000_000,
)


def table(*, deleted: bool, shards: Iterable[str] = (GONE, LATER)) -> MemoryTable:
    made = MemoryTable("own")
    made.rows = {str(item["id"]): item for item in (CONSUMER.to_item(), *(row.to_item() for row in ROWS))}
    store, rows = CheckpointStore(made), [row for row in ROWS if row.id in shards]
    fold(store, EPOCH, rows, 1_700_000_000_000)
    if deleted:
        delete(store, EPOCH, rows)
    return made


def unfolded() -> MemoryTable:
    made = table(deleted=False)
    made.rows = {key: row for key, row in made.rows.items() if not key.startswith("ended/")}
    return made


def read(made: MemoryTable) -> Reading:
    return Sluice().read(Snapshot("own", {"own": KEY}, {"own": [item_to_wire(row) for row in made.rows.values()]}), STREAM)


def migrated(made: MemoryTable) -> Any:
    found = migration.plan(migration.PlanInput(read(made), LISTED, "own"), Choices(1_700_000_000_000))
    return [(one.id, one.stored, one.verdict, one.row.start) for one in found.shards], found.warnings, found.counts


def diagnosed(made: MemoryTable) -> Any:
    return [asdict(finding) for finding in diagnose(Observation(read(made), LISTED))]


def exported(name: str) -> Callable[[MemoryTable], Any]:
    def plan(made: MemoryTable) -> Any:
        writer = WRITERS[name]
        theirs = export.TargetSide(writer, Snapshot("t", {"t": writer.keys}, {"t": ()}), {})
        found = export.plan(export.SluiceSide(CheckpointStore(made).contents().all, 7), theirs, STREAM, LISTED)
        return [(export.as_document(entry), entry.change) for entry in found.entries], found.warnings

    return plan


READERS: dict[str, Callable[[MemoryTable], Any]] = {"migrate": migrated, "diagnose": diagnosed} | {name: exported(name) for name in WRITERS}


@pytest.mark.parametrize("deleted", [False, True], ids=["folded", "and deleted"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_reader_says_the_same_as_before(reader: Callable[[MemoryTable], Any], *, deleted: bool) -> None:
    assert reader(table(deleted=deleted)) == reader(unfolded())


@pytest.mark.parametrize("reader", [migrated, diagnosed, exported("kcl"), exported("vmware-go-kcl")], ids=["migrate", "diagnose", "kcl", "vmware"])
def test_a_reader_says_the_same_of_a_folded_shard_that_is_listed(reader: Callable[[MemoryTable], Any]) -> None:
    """A machine of the service is late: it is finished all the same, and its records do not come again."""
    assert reader(table(deleted=True, shards=[GONE, LATER, LEFT])) == reader(unfolded())


def test_a_row_that_was_put_late_is_skipped() -> None:
    made = table(deleted=True)
    late = ShardRow(GONE, TRIM_HORIZON, TRIM_HORIZON)
    made.rows[late.key] = late.to_item()
    assert {shard.id: shard.stored.position for shard in read(made).shards}[GONE] == END
    assert f"{late.key}: its shard was folded before" in read(made).skipped
    assert migrated(made) == migrated(unfolded())


ODD: dict[str, dict[str, Any]] = {
    "text": {"shards": "all", "at": 1},
    "a list": {"shards": ["a"], "at": 1},
    "nothing": {},
    "numbers": {"shards": frozenset({1, 2}), "at": 1},
    "no map of notes": {"shards": frozenset({"a"}), "at": 1, "notes": "x"},
    "a note that is no text": {"shards": frozenset({"a"}), "at": 1, "notes": {"a": 1}},
    "a time that is no number": {"shards": frozenset({"a"}), "at": "x"},
    "an attribute that is unknown": {"shards": frozenset({"a"}), "at": 1, "z": 1},
}


@pytest.mark.parametrize("row", ODD.values(), ids=ODD)
@pytest.mark.parametrize("reads", [migrated, diagnosed, lambda made: document(OwnTable(made)), lambda made: own(made).contents()])
def test_a_row_of_ids_that_cannot_be_read_is_refused_whoever_reads_it(reads: Callable[[MemoryTable], Any], row: dict[str, Any]) -> None:
    made = unfolded()
    made.rows["ended/x"] = {"id": "ended/x", **row}
    if reads in {migrated, diagnosed}:
        assert [problem.row for problem in read(made).problems] == ["ended/x"]
        return
    if "z" in row:
        return  # `show` and `export` pass over what a later version may have added
    with pytest.raises(Refused, match="row ended/x"):
        reads(made)


def own(made: MemoryTable) -> CheckpointStore:
    return CheckpointStore(OwnTable(made))
