"""Letters for a queue or a stream wait in the checkpoint table, and are sent after the commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from sluice_checkpoints.errors import Fenced, Refused
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import EXCLUDED, REJECTED, PendingName
from sluice_checkpoints.protocol.pending_letters import folder_of, place
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put
from sluice_consumer.config import DeadLetterConfig
from sluice_consumer.letters.stores import TableLetters, check_former
from sluice_lab.fakes.table import MemoryTable

LETTER = DeadLetter("c", "s", "shardId-1", "9", 0, 0, "k", b"one", 7, 1, "no")
OTHER = replace(LETTER, sequence="10", data=b"two")
NAME = PendingName(7, 1, 1, REJECTED)


@dataclass
class Queue:
    sent: list[DeadLetter] = field(default_factory=list)
    most: int = 1_000_000

    def write(self, letter: DeadLetter) -> None:
        self.sent.append(letter)

    def check(self, letter: DeadLetter) -> None:
        if len(letter.data) > self.most:
            raise Refused("too large")


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def store() -> CheckpointStore:
    table = MemoryTable()
    table.write(Put(ConsumerRow("c", "arn", 0, generation=1, token="t").to_item(), ()))
    return CheckpointStore(table)


def letters(queue: Queue, store: CheckpointStore) -> TableLetters:
    return TableLetters(queue, store, Epoch(1, "t"))


def test_nothing_is_sent_before_it_is_published(queue: Queue, store: CheckpointStore) -> None:
    entry = letters(queue, store).hold(NAME, (LETTER, OTHER))
    assert (entry, queue.sent) == (f"letters/{NAME}", [])
    following = letters(queue, store)
    assert following.held() == {entry: (NAME, (LETTER, OTHER))}
    assert following.publish(str(entry))
    assert queue.sent == [LETTER, OTHER]


def test_what_is_dropped_is_gone_for_the_next_driver_too(queue: Queue, store: CheckpointStore) -> None:
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
    assert not letters(queue, store).publish(entry)


FOLDER, ANOTHER_QUEUE = DeadLetterConfig(path="file:///letters"), DeadLetterConfig(sqs="https://queue")


@pytest.mark.parametrize("where", [FOLDER, None])
def test_a_queue_is_not_left_while_rejected_records_of_the_open_batch_wait_for_it(
    queue: Queue, store: CheckpointStore, where: DeadLetterConfig | None
) -> None:
    """The next driver would give them to `process`, and a sink that has the batch would skip them."""
    letters(queue, store).hold(NAME, (LETTER,))
    with pytest.raises(Refused, match=r"onError\.deadLetter: .* batch 7, .*set onError\.deadLetter back"):
        check_former(store, 6, where)


@pytest.mark.parametrize("newest", [7, 8])
@pytest.mark.parametrize("where", [DeadLetterConfig(path="file:///others"), ANOTHER_QUEUE, None])
def test_a_folder_is_not_left_while_rejected_records_of_the_open_batch_wait_in_it(
    store: CheckpointStore, where: DeadLetterConfig | None, newest: int
) -> None:
    """Nor is the batch issued with them, or the next one with what it let go. Then any place will do; the folder itself always does."""
    place(store, Epoch(1, "t"), "file:///letters", newest)
    for committed in range(6, newest):
        with pytest.raises(Refused, match=rf"onError\.deadLetter: .* batch {committed + 1}, .* wait in file:///letters; set onError\.deadLetter"):
            check_former(store, committed, where)
    check_former(store, newest, where)
    check_former(store, 6, DeadLetterConfig(path="file:///letters/"))


def test_a_driver_that_lost_its_lease_names_no_folder(store: CheckpointStore) -> None:
    with pytest.raises(Fenced, match="generation 1 does not own"):
        place(store, Epoch(1, "another"), "file:///letters", 7)
    assert folder_of(store, 7) is None


@pytest.mark.parametrize(
    ("committed", "kind", "where"),
    [(7, REJECTED, FOLDER), (6, EXCLUDED, FOLDER), (6, REJECTED, ANOTHER_QUEUE)],
    ids=["its batch is committed", "a row names it", "the table has it for any queue"],
)
def test_a_change_that_loses_no_letter_is_not_refused(
    queue: Queue, store: CheckpointStore, committed: int, kind: str, where: DeadLetterConfig
) -> None:
    """Letters of committed batches stay named until a driver has the former place."""
    letters(queue, store).hold(replace(NAME, kind=kind), (LETTER,))
    check_former(store, committed, where)
