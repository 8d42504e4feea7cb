"""What a driver leaves of a batch that did not end, for the next one (docs/protocol.md, "Poison")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_checkpoints.errors import Fenced
from sluice_checkpoints.protocol.rows import CONSUMER, ISOLATION, Item
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Check, Put, equals


@dataclass(frozen=True, slots=True)
class IsolationNote:
    """The row `isolation`.

    Attributes:
        batch: of which it is. While another batch is open, only `hour` and `excluded` say something.
        search: what was known, as `sluice_consumer.poison.search` writes it.
        failed: the error of a failure that nobody has counted yet. `trace`: the same with its stacks, for people.
        hour: hours since 1970; excluded: how many records were excluded in it. ever: how many ever were.
    """

    batch: int = 0
    search: Mapping[str, Any] = field(default_factory=dict)
    failed: str | None = None
    trace: str | None = None
    hour: int = 0
    excluded: int = 0
    ever: int = 0

    def to_item(self) -> Item:
        """The stored form; what is None is left out."""
        counts = {"batch": self.batch, "hour": self.hour, "excluded": self.excluded, "ever": self.ever}
        item: Item = {"id": ISOLATION, "search": dict(self.search), **counts}
        return item | {key: value for key, value in {"failed": self.failed, "trace": self.trace}.items() if value is not None}

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> IsolationNote:
        """Reads the stored form."""
        return IsolationNote(
            item["batch"], item["search"], item.get("failed"), item.get("trace"), item["hour"], item["excluded"], item.get("ever", 0)
        )


def noted(store: CheckpointStore) -> IsolationNote:
    """The note, or an empty one."""
    item = store.table.get(ISOLATION)
    return IsolationNote.from_item(item) if item else IsolationNote()


def note(store: CheckpointStore, epoch: Epoch, wanted: IsolationNote) -> None:
    """Writes the note over. Written again it is the same.

    Condition: the lease is this epoch's.

    Raises:
        Fenced: a later epoch took over.
    """
    mine = Check(CONSUMER, equals(generation=epoch.generation, token=epoch.token))
    if not store.table.transact([mine, Put(wanted.to_item(), ())]).applied:
        raise Fenced(f"generation {epoch.generation} does not own {store.table.name} any more: it leaves no note")
