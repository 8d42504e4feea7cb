"""Which version of the spec committed which batches, and the positions in front of its first one (docs/protocol.md, "Versions").

May not read a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sluice_checkpoints.errors import Fenced
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.batch_writes import BatchSteps, Epoch
from sluice_checkpoints.protocol.rows import CONSUMER, VERSION_PREFIX, VERSIONS, ConsumerRow, Item, ShardRow
from sluice_checkpoints.protocol.table import NEW_ROW, AnyOf, AtMost, Check, Put, chunks, equals

LISTED = 20  # versions in the row
SLOTS = 5  # of which positions are kept
CHUNK = 200  # shards in a row: 30 KB at most


@dataclass(frozen=True, slots=True)
class SpecName:
    """What a driver knows of its version: the hash of its spec and its image. None: it was not given one."""

    hash: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A run of epochs with the same spec.

    Attributes:
        first: its first batch.
        generation: the epoch that began it.
        at: when, epoch milliseconds; for people.
        reset: the last reset that was carried out then; None: there was none.
        slot, chunks: the rows that keep its positions; no chunks: they were not kept.
    """

    spec: SpecName
    first: int
    generation: int
    at: int
    slot: int = 0
    chunks: int = 0
    reset: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the rows that keep its positions."""
        return tuple(key_of(self.slot, k) for k in range(self.chunks))

    def to_map(self) -> Item:
        """The stored form; what is None is left out."""
        names = {"hash": self.spec.hash, "image": self.spec.image, "reset": self.reset}
        numbers = {"first": self.first, "generation": self.generation, "at": self.at, "slot": self.slot, "chunks": self.chunks}
        return numbers | {name: value for name, value in names.items() if value is not None}

    @staticmethod
    def from_map(stored: Mapping[str, Any]) -> Version:
        """Reads the stored form.

        Raises:
            KeyError: a number is missing. TypeError: an attribute is of another type.
        """
        numbers = {name: stored[name] for name in ("first", "generation", "at", "slot", "chunks")}
        names = {name: stored[name] for name in ("hash", "image", "reset") if name in stored}
        for name, value in (numbers | names).items():
            if type(value) is not (int if name in numbers else str):
                raise TypeError(f"{name} of a version is {value!r}")
        reset = names.pop("reset", None)
        return Version(SpecName(**names), reset=reset, **numbers)


@dataclass(frozen=True, slots=True)
class KeptPosition:
    """Where a shard was, and up to when its records were read, as `ShardRow.read_to`: epoch milliseconds, or 0 if that is not known."""

    position: Position
    read_to: int = 0

    def age_millis(self, at: int) -> int:
        """Since when the shard was unread, epoch milliseconds; `at`, when its version began, if nothing else is known."""
        return self.read_to or self.position.millis or at

    def to_map(self) -> Item:
        """The stored form."""
        return self.position.to_map() | ({"readTo": self.read_to} if self.read_to else {})

    @staticmethod
    def from_map(stored: Mapping[str, Any]) -> KeptPosition:
        """Reads the stored form, which may name its shard."""
        return KeptPosition(
            Position.from_map({name: value for name, value in stored.items() if name not in {"id", "readTo"}}), stored.get("readTo", 0)
        )


def key_of(slot: int, chunk: int) -> str:
    """The key of a row that keeps positions."""
    return f"{VERSION_PREFIX}{slot}/{chunk}"


def listed(item: Mapping[str, Any] | None) -> tuple[Version, ...]:
    """The versions of the row `versions`, the oldest first; none without the row.

    Raises:
        KeyError, TypeError: see `Version.from_map`.
    """
    return tuple(map(Version.from_map, item["list"])) if item else ()


def known(store: BatchSteps) -> tuple[Version, ...]:
    """The versions of a table, the oldest first."""
    return listed(store.table.get(VERSIONS))


def next_version(former: Sequence[Version], spec: SpecName, first: int, generation: int, at: int, reset: str | None = None) -> Version | None:
    """The version that begins with batch `first`, after this last reset; None: the last one continues."""
    if former and (former[-1].spec, former[-1].reset) == (spec, reset):
        return None
    return Version(spec, first, generation, at, slot=_next_slot(former, first), reset=reset)


def _next_slot(former: Sequence[Version], first: int) -> int:
    """The slot of a version. Those that commit nothing share two slots: else some of them push out the positions of one that has to be undone.

    The slot of the last version stays as it is until the next one is named.
    """
    if not former:
        return 0
    idle = len(former) > 1 and former[-2].first == former[-1].first == first
    return former[-2].slot if idle else (former[-1].slot + 1) % SLOTS


def with_positions(versions: Iterable[Version]) -> tuple[Version, ...]:
    """The versions of which positions may be kept, the oldest first: the last one of each slot.

    Two may have the same `first`, and a reset between them. The positions of the last one are those from which it read.
    """
    stored = tuple(versions)
    last = {version.slot: number for number, version in enumerate(stored)}
    return tuple(stored[number] for number in sorted(last.values()))


def within_reach(versions: Sequence[Version], consumer: ConsumerRow) -> tuple[Version, ...]:
    """Those `with_positions` in front of which no batch was committed from positions that a reset had moved.

    A sink that was rolled back for such a reset lacks records that only those batches brought again (docs/protocol.md, "Versions"). Of versions
    with the same `first` only the last one counts, in reach or not: an earlier one has the positions of before a reset.
    """
    counts = {version.first: version for version in versions}
    worked = next((version.reset for version in reversed(versions) if version.first <= consumer.committed), None)
    resets = {consumer.last_reset, worked}  # a version after the last one reads from the positions of now
    return tuple(version for version in with_positions(versions) if version.reset in resets and version == counts[version.first])


def _bounded(versions: Sequence[Version]) -> list[Version]:
    """The versions that the row keeps. Those that committed nothing go first, but not the last two: by these `_next_slot` knows the next such one."""
    stay = list(versions)
    for _ in range(len(stay) - LISTED):
        del stay[next((number for number in range(len(stay) - 2) if stay[number].first == stay[number + 1].first), 0)]
    return stay


def places(rows: Mapping[str, ShardRow], committed: int) -> dict[str, KeptPosition]:
    """Committed positions of all shards with a row: nothing was delivered of any other. The age of an open range is that of its end."""
    return {shard: _kept(row, committed) for shard, row in rows.items()}


def _kept(row: ShardRow, committed: int) -> KeptPosition:
    position = row.committed_position(committed)
    return KeptPosition(position, row.read_to if row.batch <= committed and position != END else 0)


def keep(store: BatchSteps, version: Version, positions: Mapping[str, KeptPosition]) -> Version:
    """Keeps the positions in front of a version. Sent twice it says the same.

    Condition: each row is absent, or of this epoch or an earlier one. One of a later epoch stays, and nobody takes it for this version's.

    Returns:
        The version, with the number of rows.
    """
    parts = list(chunks(({"id": shard, **positions[shard].to_map()} for shard in sorted(positions)), CHUNK)) or [[]]
    when = (AnyOf((NEW_ROW, AtMost(("generation",), version.generation))),)
    items = [{"id": key_of(version.slot, k), "generation": version.generation, "shards": chunk} for k, chunk in enumerate(parts)]
    store.table.side_by_side(partial(store.table.write, Put(item, when)) for item in items)
    return replace(version, chunks=len(parts))


def name(store: BatchSteps, epoch: Epoch, former: Sequence[Version], version: Version) -> tuple[Version, ...]:
    """Says that a version begins. Sent twice it says the same.

    Condition: the lease is this epoch's.

    Returns:
        The versions that the table names now, the oldest first.

    Raises:
        Fenced: a later epoch took over.
    """
    stay = tuple(_bounded([*former, version]))
    mine = Check(CONSUMER, equals(generation=epoch.generation, token=epoch.token))
    if not store.table.transact([mine, Put({"id": VERSIONS, "list": [each.to_map() for each in stay]}, ())]).applied:
        raise Fenced(f"generation {epoch.generation} does not own {store.table.name} any more: it begins no version")
    return stay


def kept(store: BatchSteps, version: Version) -> dict[str, KeptPosition] | None:
    """The positions in front of a version, by shard; None: they are not known, or not any more."""
    items = store.table.batch_get(version.keys)
    if not version.chunks or any(items.get(key, {}).get("generation") != version.generation for key in version.keys):
        return None
    return {entry["id"]: KeptPosition.from_map(entry) for key in version.keys for entry in items[key]["shards"]}
