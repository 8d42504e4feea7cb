"""The port to one checkpoint table: conditional writes as data.

A condition is a value, so the real adapter renders it as an expression, the in-memory fake evaluates it, and a test can print it. `store` has
the protocol's conditions; nothing here knows shards or leases. A condition that fails is an answer, not an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sluice_checkpoints.protocol.rows import Item

T = TypeVar("T")
Path = tuple[str, ...]
MAX_TRANSACTION = 100  # TransactWriteItems: at most 100 items
MAX_TRANSACTION_BYTES = 3_500_000  # 4 MB, and a margin for what is counted otherwise here than there
MAX_BATCH_GET = 100  # BatchGetItem: at most 100 keys


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute at `path` has exactly this value."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Below:
    """The number at `path` is there and smaller."""

    path: Path
    value: int


@dataclass(frozen=True, slots=True)
class AtMost:
    """The number at `path` is there and not larger."""

    path: Path
    value: int


@dataclass(frozen=True, slots=True)
class Absent:
    """There is nothing at `path` (with the key's own name: there is no row)."""

    path: Path


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these holds."""

    conditions: tuple[Condition, ...]


Condition = Equals | Below | AtMost | Absent | AnyOf
NEW_ROW = Absent(("id",))


def equals(**values: Any) -> tuple[Condition, ...]:
    """One `Equals` for each top-level attribute named."""
    return tuple(Equals((name,), value) for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Put:
    """Write a whole row."""

    item: Item
    when: tuple[Condition, ...]

    @property
    def key(self) -> str:
        """The row's key."""
        return str(self.item["id"])


@dataclass(frozen=True, slots=True)
class Update:
    """Change some attributes of a row; `add` holds numbers to add to top-level attributes."""

    key: str
    when: tuple[Condition, ...]
    put: Mapping[Path, Any] = field(default_factory=dict)
    remove: frozenset[Path] = frozenset()
    add: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """Only a condition on a row, for a transaction."""

    key: str
    when: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a row. Only in a transaction, beside a check of who may; a row that is not there passes if its conditions do."""

    key: str
    when: tuple[Condition, ...]


Write = Put | Update
Member = Put | Update | Check | Delete


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a write.

    Attributes:
        applied: the condition held and the write took effect.
        row: refused: the row as it is (None: there is none). Applied: the former values of what an `Update` set, where they existed.
    """

    applied: bool
    row: Item | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """What became of a transaction: all of it, or nothing and the members whose conditions failed, with the rows as they are."""

    applied: bool
    refused: Mapping[int, Item | None] = field(default_factory=dict)


class Table(Protocol):
    """One DynamoDB table with the single key `id` (string). All reads are strongly consistent.

    Every method raises `ServiceUnavailable` when no answer came in time; the write may or may not have taken effect then.
    """

    @property
    def name(self) -> str:
        """The table's name."""
        ...

    def get(self, key: str) -> Item | None:
        """The row, or None."""
        ...

    def batch_get(self, keys: Sequence[str]) -> dict[str, Item]:
        """The rows of these keys that exist, by key."""
        ...

    def scan(self) -> Iterator[Item]:
        """Every row, in no order."""
        ...

    def write(self, write: Write) -> Outcome:
        """One conditional write."""
        ...

    def transact(self, members: Sequence[Member]) -> Transaction:
        """At most `MAX_TRANSACTION` members, all or nothing."""
        ...

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """What each of these calls on this table brings, in their order (docs/protocol.md, "Writes side by side").

        They may take effect in any order. When one raises, no further one is begun, those under way are waited for, and its error is raised.
        """
        ...


def chunks(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Cuts values into lists of at most `size`."""
    chunk: list[Any] = []
    for value in values:
        chunk.append(value)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def packed(values: Iterable[Any], size: int, weigh: Callable[[Any], int], most: int) -> Iterator[list[Any]]:
    """Cuts values into lists of at most `size`, whose weights sum up to at most `most`; a value that weighs more has a list of its own."""
    pack: list[Any] = []
    weight = 0
    for value in values:
        more = weigh(value)
        if pack and (len(pack) == size or weight + more > most):
            yield pack
            pack, weight = [], 0
        pack.append(value)
        weight += more
    if pack:
        yield pack
