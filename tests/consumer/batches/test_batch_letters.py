"""Which entries the commit of a batch names: `BatchLetters.final`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import PendingName
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.batch_letters import MOST_ENTRIES, BatchLetters, Letters

LETTER = DeadLetter("c", "s", "shardId-1", "0", 0, 0, "k", b"", 7, 1, "no")
ROW = ShardRow("shardId-1", TRIM_HORIZON, Position.after("9999"), batch=7, records=9999)


@dataclass
class Store:
    kept: dict[str, tuple[PendingName, Letters]] = field(default_factory=dict)

    def hold(self, name: PendingName, letters: Letters) -> str:
        self.kept[str(name)] = (name, letters)
        return str(name)

    def held(self) -> dict[str, tuple[PendingName, Letters]]:
        return self.kept

    def publish(self, entry: str) -> bool:
        return entry in self.kept

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        return frozenset(entries)


def rejected(store: Store, calls: int) -> BatchLetters:
    found = BatchLetters(store, 1)
    for number in range(calls):
        found.reject([replace(LETTER, sequence=str(number))])
    return found


@pytest.mark.parametrize(("calls", "entries"), [(2, 2), (MOST_ENTRIES, MOST_ENTRIES), (MOST_ENTRIES + 1, 1), (1000, 1)])
def test_a_commit_names_each_rejected_record_once_in_a_bounded_number_of_entries(calls: int, entries: int) -> None:
    """A row of the table holds 400 KB. So it does in the next epoch, if the commit did not come to pass."""
    store = Store()
    for letters in (rejected(store, calls), BatchLetters(store, 2)):
        final = letters.final(7, [ROW])
        places = [letter.place for entry in final for letter in store.kept[entry][1]]
        assert len(final) == entries
        assert sorted(places) == sorted(replace(LETTER, sequence=str(n)).place for n in range(calls))


def test_an_entry_of_which_a_part_was_let_go_is_named_once_after_a_crash() -> None:
    """The first epoch held the rest anew, and died before its commit."""
    store, row = Store(), replace(ROW, end=Position.after("1"))
    BatchLetters(store, 1).reject([replace(LETTER, sequence=str(n)) for n in range(3)])
    for generation in (2, 3):
        final = BatchLetters(store, generation).final(7, [row])
        assert [letter.sequence for entry in final for letter in store.kept[entry][1]] == ["0", "1"]
