"""Letters for a queue or a stream wait in the checkpoint table, and are sent after the commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import EXCLUDED, REJECTED, PendingName
from sluice_checkpoints.memory.table import MemoryTable
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put
from sluice_consumer.process.dead_letters import TableLetters

LETTER = DeadLetter("c", "s", "shardId-1", "9", 0, 0, "k", b"one", 7, 1, "no")
OTHER = replace(LETTER, sequence="10", data=b"two")
NAME = PendingName(7, 1, 1, REJECTED)


@dataclass
class Queue:
    """What was sent, in order; it refuses records of more than `most` bytes."""

    sent: list[DeadLetter] = field(default_factory=list)
    most: int = 1_000_000

    def write(self, letter: DeadLetter) -> None:
        """Sends."""
        self.sent.append(letter)

    def check(self, letter: DeadLetter) -> None:
        """Refuses."""
        if len(letter.data) > self.most:
            raise Refused("too large")


@pytest.fixture
def queue() -> Queue:
    """An empty one."""
    return Queue()


@pytest.fixture
def store() -> CheckpointStore:
    """A consumer whose lease is generation 1's."""
    table = MemoryTable()
    table.write(Put(ConsumerRow("c", "arn", 0, generation=1, token="t").to_item(), ()))
    return CheckpointStore(table)


def letters(queue: Queue, store: CheckpointStore) -> TableLetters:
    """Those of a driver that begins."""
    return TableLetters(queue, store, Epoch(1, "t"))


def test_nothing_is_sent_before_it_is_published(queue: Queue, store: CheckpointStore) -> None:
    """By this driver, or by the next."""
    entry = letters(queue, store).hold(NAME, (LETTER, OTHER))
    assert (entry, queue.sent) == (f"letters/{NAME}", [])
    following = letters(queue, store)
    assert following.held() == {entry: (NAME, (LETTER, OTHER))}
    assert following.publish(str(entry))
    assert queue.sent == [LETTER, OTHER]


def test_what_is_dropped_is_gone_for_the_next_driver_too(queue: Queue, store: CheckpointStore) -> None:
    """The rest stays."""
    first = letters(queue, store)
    entry, kept = first.hold(NAME, (LETTER,)), first.hold(replace(NAME, part=2, kind=EXCLUDED), (OTHER,))
    assert first.drop([str(entry)]) == {entry}
    assert list(letters(queue, store).held()) == [kept]
    assert not letters(queue, store).publish(str(entry))
    assert queue.sent == []


def test_letters_that_find_no_room_are_sent_at_once(queue: Queue, store: CheckpointStore) -> None:
    """No row can name them."""
    large = replace(LETTER, data=bytes(400_000))
    assert letters(queue, store).hold(NAME, (large,)) is None
    assert (queue.sent, dict(letters(queue, store).held())) == ([large], {})


def test_a_letter_that_the_queue_would_refuse_is_refused_before_its_record_is_left_out(queue: Queue, store: CheckpointStore) -> None:
    """After the commit it would be too late."""
    queue.most = 2
    with pytest.raises(Refused, match="too large"):
        letters(queue, store).hold(NAME, (LETTER,))
    assert dict(letters(queue, store).held()) == {}


@pytest.mark.parametrize("entry", ["s3a://lake/letters/c/pending/000000000007-1-1-rejected.pending", "letters/none"])
def test_an_entry_of_another_place_is_left_to_it(queue: Queue, store: CheckpointStore, entry: str) -> None:
    """A folder's, say: `onError.deadLetter` was changed."""
    assert not letters(queue, store).publish(entry)
