"""What rows say of dead letters that are not published: each write, and its condition (docs/protocol.md, "Letters are final with their batch")."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stored_rows import CONSUMER_ROW, EARLIER, EPOCH, LATER, consumer, put

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.protocol import pending_letters
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch

NAMED = replace(CONSUMER_ROW, letters=("a", "b"))
MINE = Epoch(EPOCH.generation, CONSUMER_ROW.token)


def test_a_commit_names_letters_with_the_same_write(store: CheckpointStore) -> None:
    store.commit(EPOCH, CONSUMER_ROW.committed + 1, ("a", "b"))
    store.commit(EPOCH, CONSUMER_ROW.committed + 1, ("a", "b"))
    assert consumer(store) == replace(NAMED, committed=CONSUMER_ROW.committed + 1)


@pytest.mark.parametrize("left", [(), ("b",)])
def test_what_was_published_is_taken_out(store: CheckpointStore, left: tuple[str, ...]) -> None:
    put(store, NAMED)
    for _ in range(2):
        pending_letters.published(store, EPOCH, NAMED.letters, left)
    assert consumer(store) == replace(CONSUMER_ROW, letters=left)


@pytest.mark.parametrize("epoch", [LATER, EARLIER])
def test_another_epoch_takes_nothing_out(store: CheckpointStore, epoch: Epoch) -> None:
    put(store, NAMED)
    with pytest.raises(Fenced):
        pending_letters.published(store, epoch, NAMED.letters, ())
    assert consumer(store) == NAMED


def test_other_letters_than_those_that_were_read_are_not_taken_out(store: CheckpointStore) -> None:
    put(store, NAMED)
    with pytest.raises(ProtocolViolation, match="names the dead letters"):
        pending_letters.published(store, EPOCH, ("a",), ())
    assert consumer(store) == NAMED


def test_pending_letters_are_held_in_a_row_of_their_own(store: CheckpointStore) -> None:
    assert pending_letters.held(store) == {}
    for _ in range(2):
        assert pending_letters.hold(store, MINE, {"n": "text"})
    assert pending_letters.held(store) == {"n": "text"}


def test_letters_that_find_no_room_are_not_held(store: CheckpointStore) -> None:
    """DynamoDB would refuse the row."""
    pending_letters.hold(store, MINE, {"n": "text"})
    assert not pending_letters.hold(store, MINE, {"n": "text", "m": "é" * (pending_letters.ROOM // 2)})
    assert pending_letters.held(store) == {"n": "text"}


@pytest.mark.parametrize("epoch", [LATER, EARLIER, replace(MINE, token="another")])
def test_a_driver_that_lost_its_lease_holds_nothing(store: CheckpointStore, epoch: Epoch) -> None:
    pending_letters.hold(store, MINE, {"n": "text"})
    with pytest.raises(Fenced, match="leaves no dead letters"):
        pending_letters.hold(store, epoch, {})
    assert pending_letters.held(store) == {"n": "text"}
