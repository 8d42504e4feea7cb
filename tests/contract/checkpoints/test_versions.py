"""Which version committed which batches, and where the shards were in front of it (docs/protocol.md, "Versions")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import Fenced
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put, Table
from sluice_checkpoints.protocol.versions import LISTED, SLOTS, KeptPosition, SpecName, Version

EPOCH = Epoch(4, "t4")
ROW = ConsumerRow("c", "arn", 1, generation=4, token="t4", committed=7)
GOOD, BAD = Version(SpecName("good", "orders:1"), 1, 3, 5), Version(SpecName("bad", "orders:2"), 8, 4, 6, slot=1)
POSITIONS = {
    "shard-0": KeptPosition(Position.after("5", 3), 9),
    "shard-1": KeptPosition(TRIM_HORIZON),
    "shard-2": KeptPosition(Position.timestamp(9)),
}


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    table.write(Put(ROW.to_item(), ()))
    return CheckpointStore(table)


def test_a_table_without_versions_is_unknown(store: CheckpointStore) -> None:
    assert versions.known(store) == ()
    assert versions.kept(store, GOOD) is None


def test_a_version_is_read_as_it_was_named(store: CheckpointStore) -> None:
    for _ in range(2):
        versions.name(store, EPOCH, (GOOD,), BAD)
        assert versions.known(store) == (GOOD, BAD)
    nameless = Version(SpecName(), 9, 5, 7)
    versions.name(store, EPOCH, (), nameless)
    assert versions.known(store) == (nameless,)


def test_as_many_versions_stay_as_the_row_lists(store: CheckpointStore) -> None:
    former = [replace(GOOD, first=number) for number in range(1, LISTED + 1)]
    versions.name(store, EPOCH, former, BAD)
    assert versions.known(store) == (*former[1:], BAD)


@pytest.mark.parametrize("taken", [{"generation": 5}, {"token": "another"}], ids=["a later generation", "another token"])
def test_only_the_owner_of_the_lease_names_a_version(store: CheckpointStore, taken: dict[str, Any]) -> None:
    """A late one would drop the versions that came after it."""
    store.table.write(Put(replace(ROW, **taken).to_item(), ()))
    with pytest.raises(Fenced, match="begins no version"):
        versions.name(store, EPOCH, (GOOD,), BAD)
    assert versions.known(store) == ()


def test_positions_are_read_as_they_were_kept(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "CHUNK", 2)
    for _ in range(2):
        kept = versions.keep(store, BAD, POSITIONS)
        assert kept.chunks == 2
        assert versions.kept(store, kept) == POSITIONS
    nothing = versions.keep(store, replace(BAD, slot=2), {})
    assert versions.kept(store, nothing) == {}


def test_positions_of_a_later_epoch_stay(store: CheckpointStore) -> None:
    """Of two epochs that use one slot the later one's are kept, whoever writes last. The former's are not known any more."""
    former, later = replace(BAD, generation=3), replace(BAD, generation=4)
    later = versions.keep(store, later, POSITIONS)
    former = versions.keep(store, former, {"shard-0": KeptPosition(TRIM_HORIZON)})
    assert versions.kept(store, later) == POSITIONS
    assert versions.kept(store, former) is None


def test_positions_of_two_epochs_are_not_mixed(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "CHUNK", 2)
    kept = versions.keep(store, replace(BAD, generation=3), POSITIONS)
    versions.keep(store, replace(BAD, generation=4), {"shard-0": KeptPosition(TRIM_HORIZON)})
    assert versions.kept(store, kept) is None


def test_slots_take_turns() -> None:
    found: list[Version] = []
    for number in range(1, SLOTS + 2):
        version = versions.next_version(found, SpecName(str(number)), number, number, 0)
        assert version is not None
        found.append(version)
    assert [each.slot for each in found] == [0, 1, 2, 3, 4, 0]
    assert versions.next_version(found, found[-1].spec, 99, 99, 0) is None
    assert versions.next_version(found, SpecName(), 99, 99, 0) is not None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda stored: stored.pop("first"), KeyError),
        (lambda stored: stored.update(hash=7), TypeError),
        (lambda stored: stored.update(slot="0"), TypeError),
    ],
)
def test_a_version_that_was_changed_by_hand_is_refused(change: Callable[[dict[str, Any]], object], error: type[Exception]) -> None:
    stored = BAD.to_map()
    change(stored)
    with pytest.raises(error):
        versions.listed({"list": [stored]})
