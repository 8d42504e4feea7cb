"""Dead letters of the open batch: pending until its commit makes them final (docs/protocol.md, "Letters are final with their batch").

It may not start a process or read a clock; the simulation runs this code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

from sluice_checkpoints.letters.letter import DeadLetter, Place
from sluice_checkpoints.letters.pending import EXCLUDED, REJECTED, PendingName
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.rows import ShardRow

Letters = tuple[DeadLetter, ...]
MOST_ENTRIES = 100  # that the commit of a batch names: more of them become one, for a row of the table holds 400 KB


class LetterStore(Protocol):
    """Where dead letters go. An *entry* is how a row names pending dead letters."""

    def hold(self, name: PendingName, letters: Letters) -> str | None:
        """Keeps dead letters as pending; returns once they are stored for good. Held again under its name, it is the same.

        Returns:
            Their entry. None: they cannot be held back, and were sent for good.

        Raises:
            Refused: one is too large. Fenced: a later epoch took over. SinkUnavailable, LetterNotWritten: they were not taken.
        """
        ...

    def held(self) -> Mapping[str, tuple[PendingName, Letters]]:
        """What is pending, by entry."""
        ...

    def publish(self, entry: str) -> bool:
        """Makes pending dead letters final for good. Published again they are the same. False: the entry is another store's."""
        ...

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        """Deletes pending dead letters, and returns those that are gone; the others are there for certain."""
        ...


class BatchLetters:
    """Dead letters of one epoch. Implements `pipelines.Rejections`."""

    def __init__(self, store: LetterStore, generation: int) -> None:
        """Reads what earlier epochs left."""
        self._store, self._generation = store, generation
        self._held = dict(store.held())
        self._parts = count(1)
        self._issue: list[str] = []

    def begin_issue(self) -> None:
        """`process` is about to be called."""
        self._issue = []

    def reject(self, letters: Sequence[DeadLetter]) -> None:
        """Keeps what `process` rejects. A record that this issue, or an earlier one, has rejected stays the dead letter that it is.

        Raises:
            What storing raises.
        """
        batch = letters[0].batch if letters else 0
        known = self.rejected(batch)
        new = tuple({letter.place: letter for letter in reversed(letters) if letter.place not in known}.values())[::-1]
        if new and (entry := self._hold(batch, REJECTED, new)):
            self._issue.append(entry)

    def raised(self) -> None:
        """`process` raised: it has rejected nothing. What cannot be deleted stays rejected.

        Raises:
            What deleting raises: then nobody knows what is rejected, and the epoch has to end.
        """
        self._drop(self._issue)
        self._issue = []

    def rejected(self, batch: int) -> frozenset[Place]:
        """The records that issues of this batch rejected, and which it is therefore issued without."""
        return frozenset(letter.place for name, letters in self._held.values() for letter in letters if name.batch == batch and name.kind == REJECTED)

    def exclude(self, letter: DeadLetter) -> str | None:
        """Keeps the dead letter of a record that is about to be excluded; its entry, None: it was sent for good."""
        return self._hold(letter.batch, EXCLUDED, (letter,))

    def final(self, batch: int, rows: Sequence[ShardRow]) -> tuple[str, ...]:
        """The entries that the commit of a batch makes final: dead letters of what it contains, and of what was excluded from it.

        A batch that was shortened lets records go that an earlier issue had rejected. They come again under the next number, and stay rejected:
        a sink that stores in parts may have a position behind them.
        """
        by_shard = {row.id: row for row in rows}
        rejected = [(entry, held) for entry, (name, held) in sorted(self._held.items()) if name.batch == batch and name.kind == REJECTED]
        self._carry(batch + 1, [letter for _, held in rejected for letter in held if let_go(by_shard.get(letter.shard), letter)])
        inside = {letter.place: letter for _, held in rejected for letter in held if contains(by_shard.get(letter.shard), letter)}
        whole = [] if len(rejected) > MOST_ENTRIES else [(entry, held) for entry, held in rejected if all(each.place in inside for each in held)]
        named = {letter.place for _, held in whole for letter in held}
        rest = tuple(letter for place, letter in inside.items() if place not in named)
        entries = (*(entry for entry, _ in whole), self._hold(batch, REJECTED, rest) if rest else None)
        return (*(row.letter for row in rows if row.letter), *(entry for entry in entries if entry))

    def publish(self, entries: Sequence[str]) -> tuple[str, ...]:
        """Makes them final. What is left belongs to another store.

        Raises:
            What storing raises; it may be tried again.
        """
        return tuple(entry for entry in entries if not self._store.publish(entry))

    def forget(self, committed: int, left: Sequence[str]) -> None:
        """Deletes what is pending of committed batches, but for what is `left` to be published: nobody makes it final any more."""
        self._drop([entry for entry, (name, _) in self._held.items() if name.batch <= committed and entry not in left])

    def _carry(self, batch: int, letters: Sequence[DeadLetter]) -> None:
        known = self.rejected(batch)  # of an epoch that died before the commit
        if new := tuple(replace(letter, batch=batch) for letter in letters if letter.place not in known):
            self._hold(batch, REJECTED, new)

    def _hold(self, batch: int, kind: str, letters: Letters) -> str | None:
        name = PendingName(batch, self._generation, next(self._parts), kind)
        entry = self._store.hold(name, letters)
        if entry is not None:
            self._held[entry] = (name, letters)
        return entry

    def _drop(self, entries: Sequence[str]) -> None:
        if entries:
            gone = self._store.drop(entries)
            self._held = {entry: held for entry, held in self._held.items() if entry not in gone}


def contains(row: ShardRow | None, letter: DeadLetter) -> bool:
    """Whether a record that was in a range when it was bound is in it still: a range only becomes shorter at its end."""
    return row is not None and bool(row.records) and not let_go(row, letter)


def let_go(row: ShardRow | None, letter: DeadLetter) -> bool:
    """Whether a record that was in a range when it was bound is behind its end by now, so in a later batch. None: the range is not in this one."""
    if row is None:
        return True
    if row.end == END or row.end.sequence is None:
        return row.end != END and not row.records
    last, sequence = int(row.end.sequence), int(letter.sequence)
    return sequence > last or (sequence == last and row.end.sub is not None and letter.sub > row.end.sub)
