"""The in-memory fake of a checkpoint table: refuses exactly what DynamoDB refuses.

For tests and simulations. Faults are injected through `hook`, which is called before and after every
operation took effect and may raise; an exception raised "after" is a reply that was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.table import (
    MAX_TRANSACTION,
    Absent,
    AnyOf,
    AtMost,
    Below,
    Check,
    Condition,
    Delete,
    Equals,
    Member,
    Outcome,
    Path,
    Put,
    Transaction,
    Update,
    Write,
)

T = TypeVar("T")
Hook = Callable[[str, str, object], None]
_MISSING = object()


def _no_hook(_when: str, _operation: str, _argument: object) -> None:
    """Injects nothing."""


def copied(value: Any) -> Any:
    """A copy of plain data, all the way down; much cheaper than `copy.deepcopy`, which simulations would spend most of their time in."""
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(inner) for inner in value)
    return value


def _look(item: Item | None, path: Path) -> object:
    value: object = item if item is not None else {}
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _MISSING
        value = value[name]
    return value


def _same(left: object, right: object) -> bool:
    """DynamoDB's equality: types count, map order does not; a bool is not a number."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right


def _number(item: Item | None, path: Path) -> int | None:
    value = _look(item, path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def holds(condition: Condition, item: Item | None) -> bool:
    """Whether a condition is true of a row (None: no such row)."""
    match condition:
        case Equals(path, value):
            found = _look(item, path)
            return found is not _MISSING and _same(found, value)
        case Below(path, value):
            number = _number(item, path)
            return number is not None and number < value
        case AtMost(path, value):
            number = _number(item, path)
            return number is not None and number <= value
        case Absent(path):
            return _look(item, path) is _MISSING
        case AnyOf(conditions):
            return any(holds(c, item) for c in conditions)


def _validate(value: object, where: str) -> None:
    if isinstance(value, (set, frozenset)) and not value:
        raise ValueError(f"{where}: an empty set cannot be stored")
    if value is None or isinstance(value, float):
        raise ValueError(f"{where}: {value!r} cannot be stored")
    if isinstance(value, dict):
        for name, inner in value.items():
            _validate(inner, f"{where}.{name}")
    if isinstance(value, (list, tuple)):
        for inner in value:
            _validate(inner, where)


class MemoryTable:
    """A table in this process. Thread-safe; every operation is atomic, reads are consistent."""

    def __init__(self, name: str = "memory", hook: Hook = _no_hook) -> None:
        self._name, self.hook = name, hook
        self.rows: dict[str, Item] = {}
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name

    def get(self, key: str) -> Item | None:
        """The row, or None."""
        self.hook("before", "get", key)
        with self._lock:
            found: Item | None = copied(self.rows.get(key))
        return found

    def batch_get(self, keys: Sequence[str]) -> dict[str, Item]:
        """The rows of these keys that exist."""
        self.hook("before", "batch_get", keys)
        with self._lock:
            return {key: copied(self.rows[key]) for key in keys if key in self.rows}

    def scan(self) -> Iterator[Item]:
        """Every row, as they stood when the scan began."""
        self.hook("before", "scan", None)
        with self._lock:
            rows = copied(list(self.rows.values()))
        return iter(rows)

    def write(self, write: Write) -> Outcome:
        """One conditional write."""
        self.hook("before", "write", write)
        with self._lock:
            row = self.rows.get(write.key)
            if not all(holds(c, row) for c in write.when):
                return Outcome(applied=False, row=copied(row))
            former = self._apply(write)
        self.hook("after", "write", write)
        return Outcome(applied=True, row=former)

    def transact(self, members: Sequence[Member]) -> Transaction:
        """All of it, or nothing and what was refused."""
        self.hook("before", "transact", members)
        if not 0 < len(members) <= MAX_TRANSACTION or len({m.key for m in members}) != len(members):
            raise ValueError("a transaction has 1 to 100 members, each on a row of its own")
        with self._lock:
            rows = [self.rows.get(m.key) for m in members]
            refused = {i: copied(row) for i, (m, row) in enumerate(zip(members, rows, strict=True)) if not all(holds(c, row) for c in m.when)}
            if refused:
                return Transaction(applied=False, refused=refused)
            for member in members:
                if isinstance(member, Delete):
                    self.rows.pop(member.key, None)
                elif not isinstance(member, Check):
                    self._apply(member)
        self.hook("after", "transact", members)
        return Transaction(applied=True)

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """One after the other: a call takes no time here."""
        return [call() for call in calls]

    def _apply(self, write: Write) -> Item | None:
        if isinstance(write, Put):
            _validate(write.item, write.key)
            self.rows[write.key] = copied(write.item)
            return None
        return self._update(write)

    def _update(self, update: Update) -> Item:
        row = copied(self.rows.get(update.key, {"id": update.key}))
        former: Item = {}
        for path, value in update.put.items():
            _validate(value, f"{update.key}.{'.'.join(path)}")
            *outer, last = path
            target, kept = row, former
            for name in outer:
                target, kept = target[name], kept.setdefault(name, {})
            if last in target:
                kept[last] = target[last]
            target[last] = copied(value)
        for path in update.remove:
            row.pop(path[0], None)
        for name, amount in update.add.items():
            row[name] = row.get(name, 0) + amount
        self.rows[update.key] = row
        return {name: value for name, value in former.items() if value != {}}
