"""Moves positions by a plan that is written down first: name it, move each shard, complete it (docs/protocol.md, "Positions are moved").

The plan and its name are written in one transaction. From then on whoever takes the lease completes it before it reads a batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sluice_checkpoints.errors import Fenced, ProtocolViolation, Refused
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.batch_writes import BatchSteps, Epoch, not_fenced
from sluice_checkpoints.protocol.rows import ACTIVE, CONSUMER, RESET_PREFIX, RESETTING, SHARD_PREFIX, Child, ConsumerRow, Item
from sluice_checkpoints.protocol.table import NEW_ROW, Absent, AtMost, Equals, Path, Put, Update, chunks, equals

RESET_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
CHUNK = 1000  # moves in a row: 300 KB at most, of the 400 that an item may have
MOST = 12_000  # moves in a plan: the transaction that names it holds 4 MB
TOGETHER = 500  # moves between two looks at the lease
FORGOTTEN = frozenset({("first",), ("onward",), ("readBy",), ("replays",), ("excluded",), ("letter",), ("calls",)})


@dataclass(frozen=True, slots=True)
class Move:
    """One shard of a plan: from the end of the range that batch `batch` bound, to another position.

    Attributes:
        read_to: what the row says of the age of its records from then on (docs/protocol.md, "Ages"), epoch milliseconds; 0: nothing is known.
        children: what follows the shard; with `to` END only.
    """

    shard: str
    batch: int
    end: Position
    to: Position
    read_to: int = 0
    children: tuple[Child, ...] | None = None

    def to_map(self) -> Item:
        """The stored form."""
        stored: Item = {"id": self.shard, "batch": self.batch, "end": self.end.to_map(), "to": self.to.to_map(), "readTo": self.read_to}
        return stored | ({"children": [child.to_map() for child in self.children]} if self.children is not None else {})

    @staticmethod
    def from_map(stored: Mapping[str, Any]) -> Move:
        """Reads the stored form.

        Raises:
            KeyError, ProtocolViolation: it is none that this version writes.
        """
        children = stored.get("children")
        return Move(
            stored["id"],
            stored["batch"],
            Position.from_map(stored["end"]),
            Position.from_map(stored["to"]),
            stored["readTo"],
            None if children is None else tuple(map(Child.from_map, children)),
        )


@dataclass(frozen=True, slots=True)
class StoredReset:
    """The rows `reset/<id>/<k>`: a plan, and what its document says. They are never changed, and stay.

    Attributes:
        committed: the last committed batch when the plan is carried out.
        asked: hash of what was asked for under this id.
        result: the document of the reset, without what is null (docs/interfaces.md).
    """

    id: str
    committed: int
    moves: tuple[Move, ...]
    asked: str = ""
    result: Item = field(default_factory=dict)

    def items(self) -> list[Item]:
        """The stored form, in rows."""
        parts = list(chunks((move.to_map() for move in self.moves), CHUNK)) or [[]]
        head = {"committed": self.committed, "asked": self.asked, "chunks": len(parts), "result": self.result}
        return [{"id": key_of(self.id, k), "shards": moves} | (head if k == 0 else {}) for k, moves in enumerate(parts)]


def key_of(reset: str, chunk: int) -> str:
    """The key of a row of a plan."""
    return f"{RESET_PREFIX}{reset}/{chunk}"


def stored(store: BatchSteps, reset: str) -> StoredReset | None:
    """The plan of this id; None: the id was never used.

    Raises:
        ProtocolViolation: a row of it is missing.
    """
    head = store.table.get(key_of(reset, 0))
    if head is None:
        return None
    keys = [key_of(reset, k) for k in range(head["chunks"])]
    items = store.table.batch_get(keys)
    if missing := [key for key in keys if key not in items]:
        raise ProtocolViolation(f"rows {missing} of the reset are missing in {store.table.name}: was the table restored to the moment of the reset?")
    moves = tuple(Move.from_map(entry) for key in keys for entry in items[key]["shards"])
    return StoredReset(reset, head["committed"], moves, head["asked"], head["result"])


def name(store: BatchSteps, epoch: Epoch, seen: ConsumerRow, reset: StoredReset, letters: Sequence[str] = ()) -> ConsumerRow:
    """Writes a plan down, and names it in the consumer row. From now on it is carried out, whoever comes.

    Condition: the lease is this epoch's, no batch was committed since `seen`, no other plan is under way, and the id was never used. If the plan's
    `committed` is one more, the open batch is given up: it counts as committed, and was not processed.

    Args:
        store: of the table.
        epoch: the one that plans.
        seen: the consumer row.
        reset: the plan.
        letters: what the row is to name as final dead letters; those of a batch that is given up included.

    Returns:
        The consumer row as it is then.

    Raises:
        Fenced: a later epoch took over, or another plan is under way. Refused: the id was used, or the plan is too large.
    """
    if len(reset.moves) > MOST:
        raise Refused(f"the reset moves {counted(len(reset.moves), 'shard')}, and one plan holds {MOST}: reset them in parts, with --shard")
    put: dict[Path, Any] = {("reset",): reset.id, ("state",): RESETTING}
    named = replace(seen, reset=reset.id, state=RESETTING, committed=reset.committed)
    if reset.committed != seen.committed:
        put |= {("committed",): reset.committed, ("filled",): reset.committed}
        put |= {("letters",): list(letters)} if letters else {}
        named = replace(named, filled=reset.committed, letters=tuple(letters))
    when = (*_owned(epoch), *equals(committed=seen.committed, state=ACTIVE), Absent(("reset",)))
    rows = [Put(item, (NEW_ROW,)) for item in reset.items()]
    outcome = store.table.transact([Update(CONSUMER, when, put=put), *rows])
    if 0 in outcome.refused:
        raise Fenced(f"generation {epoch.generation} does not hold the lease any more, or another reset is under way: nothing was moved")
    if not outcome.applied:
        raise Refused(f"the id {reset.id} was used at the same moment: run the command again to see what it does")
    return named


def move(store: BatchSteps, epoch: Epoch, committed: int, planned: Move) -> None:
    """Moves one shard. Sent twice, or by two epochs, it moves it once.

    Condition: the row is of this epoch or an earlier one, and its `batch` and `end` are those of the plan.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row is neither as planned nor moved.
    """
    to, key = planned.to.to_map(), SHARD_PREFIX + planned.shard
    put: dict[Path, Any] = {
        ("generation",): epoch.generation,
        ("start",): to,
        ("end",): to,
        ("joins",): committed + 1,
        ("records",): 0,
        ("readTo",): planned.read_to,
        ("readers",): {},
        ("bytes",): 0,
        ("behind",): 0,
    }
    gone = FORGOTTEN
    if planned.children is None:
        gone |= {("children",)}
    else:
        put[("children",)] = [child.to_map() for child in planned.children]
    when = (AtMost(("generation",), epoch.generation), *equals(batch=planned.batch, end=planned.end.to_map()))
    outcome = store.table.write(Update(key, when, put=put, remove=gone))
    if outcome.applied:
        return
    row = not_fenced(outcome.row, epoch, planned.shard)
    if (row.start, row.end, row.batch, row.joins) != (planned.to, planned.to, planned.batch, committed + 1):
        raise ProtocolViolation(f"{planned.shard} is at {row.end} in batch {row.batch}, and the reset moves it from {planned.end}: was it edited?")


def complete(store: BatchSteps, consumer: ConsumerRow, epoch: Epoch, reset: StoredReset) -> ConsumerRow:
    """Says that every shard of the plan that the consumer row names was moved. Sent twice it says the same.

    Condition: the lease is this epoch's.

    Returns:
        The consumer row as it is then.

    Raises:
        Fenced: a later epoch took over.
    """
    put: dict[Path, Any] = {("state",): ACTIVE, ("lastReset",): reset.id, ("resetAfter",): reset.committed}
    if not store.table.write(Update(CONSUMER, _owned(epoch), put=put, remove=frozenset({("reset",)}))).applied:
        raise Fenced(f"generation {epoch.generation} does not hold the lease any more: another epoch completes the reset")
    return replace(consumer, reset=None, state=ACTIVE, last_reset=reset.id, reset_after=reset.committed)


def finish(store: BatchSteps, consumer: ConsumerRow, epoch: Epoch, alive: Callable[[], None] = lambda: None) -> ConsumerRow:
    """Carries out the plan that the consumer row names, if it names one. Needs the lease; may be repeated by any later epoch.

    Args:
        store: of the table.
        consumer: its row.
        epoch: the one that has the lease.
        alive: called now and then; it raises where the lease is lost.

    Returns:
        The consumer row as it is then.

    Raises:
        Fenced: the lease was lost in between. ProtocolViolation: a row was changed by hand, or a row of the plan is missing.
    """
    if consumer.reset is None:
        return consumer
    reset = stored(store, consumer.reset)
    if reset is None or reset.committed != consumer.committed:
        raise ProtocolViolation(f"row consumer of {store.table.name} names the reset {consumer.reset}, and there is no such plan after its batch")
    moved(store, epoch, reset.committed, reset.moves, alive)
    return complete(store, consumer, epoch, reset)


def moved(store: BatchSteps, epoch: Epoch, committed: int, moves: Iterable[Move], alive: Callable[[], None]) -> None:
    """Moves all these shards, some side by side."""
    for chunk in chunks(moves, TOGETHER):
        store.table.side_by_side(partial(move, store, epoch, committed, planned) for planned in chunk)
        alive()


def _owned(epoch: Epoch) -> tuple[Equals, ...]:
    return (Equals(("generation",), epoch.generation), Equals(("token",), epoch.token))
