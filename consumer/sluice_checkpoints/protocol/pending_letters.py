"""The rows' part in dead letters that wait for the commit of their batch (docs/protocol.md, "Letters are final with their batch").

A commit names the dead letters of its batch in the consumer row (`BatchSteps.commit`). Dead letters that have no folder wait in the row `letters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.protocol.rows import CONSUMER, LETTERS
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Check, Equals, Path, Put, Update, Write, equals

ROOM = 300_000  # bytes of the row `letters`: DynamoDB takes 400 KB


def published(store: CheckpointStore, epoch: Epoch, seen: Sequence[str], left: Sequence[str]) -> None:
    """Takes dead letters that were published out of the consumer row.

    Condition: this epoch's lease, and the row names exactly those of `seen`. Only a lost reply is recognised.

    Raises:
        Fenced: a later epoch took over. ProtocolViolation: the row names others.
    """
    path: Path = ("letters",)
    when = (*equals(generation=epoch.generation), Equals(path, list(seen)))
    change = Update(CONSUMER, when, put={path: list(left)}) if left else Update(CONSUMER, when, remove=frozenset({path}))
    outcome = store.table.write(change)
    stored = outcome.row or {}
    if outcome.applied or (stored.get("generation"), stored.get("letters", [])) == (epoch.generation, list(left)):
        return
    if stored.get("generation") != epoch.generation:
        raise Fenced(f"generation {stored.get('generation')} took over from {epoch.generation}")
    raise ProtocolViolation(f"row consumer names the dead letters {stored.get('letters')}, not {list(seen)}")


def held(store: CheckpointStore) -> dict[str, str]:
    """The row `letters`: texts of pending dead letters, by name."""
    item = store.table.get(LETTERS) or {}
    return dict(item.get("pending", {}))


def place(store: CheckpointStore, epoch: Epoch, folder: str, batch: int) -> None:
    """Says in the row `letters` that rejected records of this batch, and maybe of the previous one, wait in a folder.

    Written again it is the same.

    Condition: the lease is this epoch's.

    Raises:
        Fenced: a later epoch took over.
    """
    _leave(store, epoch, Update(LETTERS, (), put={("folder",): folder, ("batch",): batch}))


def folder_of(store: CheckpointStore, batch: int) -> str | None:
    """The folder in which rejected records of an open batch may wait; None: in none. What it lets go waits there under the next number."""
    item = store.table.get(LETTERS) or {}
    return str(item["folder"]) if item.get("batch", 0) >= batch else None


def waits_in(store: CheckpointStore, batch: int) -> str | None:
    """Where dead letters of records that `process` rejected in a batch wait for its commit, for people; None: nowhere."""
    rejected = any(name.startswith(f"{batch:012d}-") and name.endswith("-rejected") for name in held(store))
    return folder_of(store, batch) or (f"row `{LETTERS}` of {store.table.name}" if rejected else None)


def hold(store: CheckpointStore, epoch: Epoch, texts: Mapping[str, str]) -> bool:
    """Writes the row `letters` over. Written again it is the same. False: it would be too large, and nothing was written.

    Condition: the lease is this epoch's.

    Raises:
        Fenced: a later epoch took over.
    """
    if sum(len(name.encode()) + len(text.encode()) for name, text in texts.items()) > ROOM:
        return False
    _leave(store, epoch, Put({"id": LETTERS, "pending": dict(texts)}, ()))
    return True


def _leave(store: CheckpointStore, epoch: Epoch, write: Write) -> None:
    mine = Check(CONSUMER, equals(generation=epoch.generation, token=epoch.token))
    if not store.table.transact([mine, write]).applied:
        raise Fenced(f"generation {epoch.generation} does not own {store.table.name} any more: it leaves no dead letters")
