"""The note that a driver leaves of a batch that did not end (docs/protocol.md, "Poison")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_checkpoints.errors import Fenced
from sluice_checkpoints.protocol.poison_note import IsolationNote, note, noted
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put, Table

EPOCH = Epoch(4, "t4")
ROW = ConsumerRow("c", "arn", 1, generation=4, token="t4", committed=7)
NOTE = IsolationNote(8, {"evidence": {"error": "e", "failures": 2, "passed": True}, "controls": 0}, "e", "told", hour=5, excluded=3, ever=9)


@pytest.fixture
def store(table: Table) -> CheckpointStore:
    table.write(Put(ROW.to_item(), ()))
    return CheckpointStore(table)


def test_a_note_is_read_as_it_was_written(store: CheckpointStore) -> None:
    assert noted(store) == IsolationNote()
    for wanted in (NOTE, NOTE, replace(NOTE, failed=None, trace=None, excluded=4)):
        note(store, EPOCH, wanted)
        assert noted(store) == wanted


@pytest.mark.parametrize("taken", [{"generation": 5}, {"token": "another"}], ids=["a later generation", "another token"])
def test_only_the_owner_of_the_lease_leaves_one(store: CheckpointStore, taken: dict[str, object]) -> None:
    """A late note would be counted of a batch that is shorter by now."""
    note(store, EPOCH, NOTE)
    store.table.write(Put(replace(ROW, **taken).to_item(), ()))  # type: ignore[arg-type]  # fields of the row
    with pytest.raises(Fenced, match="leaves no note"):
        note(store, EPOCH, replace(NOTE, batch=9))
    assert noted(store) == NOTE
