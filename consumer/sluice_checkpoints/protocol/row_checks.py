"""Checks every row of a Sluice table that is read by name, before anything acts on it.

Any table may have a key named `id`, and anybody may change a row by hand.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from sluice_checkpoints.errors import ProtocolViolation, Refused
from sluice_checkpoints.protocol.row_kinds import kind_of
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.table import Member, Outcome, Table, Transaction, Write

T = TypeVar("T")
UNREADABLE = (AttributeError, KeyError, ProtocolViolation, TypeError, ValueError)


class OwnTable:
    """A `Table` whose reads refuse rows that Sluice does not write. Writes pass unchanged."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def name(self) -> str:
        return self._table.name

    def get(self, key: str) -> Item | None:
        """See `Table.get`.

        Raises:
            Refused: the row is not one that Sluice writes.
        """
        item = self._understood(key, lambda: self._table.get(key))
        return item and self._checked(item)

    def batch_get(self, keys: Sequence[str]) -> dict[str, Item]:
        """See `Table.batch_get`; these rows are only compared."""
        return self._table.batch_get(keys)

    def scan(self) -> Iterator[Item]:
        """See `Table.scan`.

        Raises:
            Refused: a row is not one that Sluice writes.
        """
        return map(self._checked, self.anything())

    def anything(self) -> Iterator[Item]:
        """Every row as it is stored.

        Raises:
            Refused: a row holds what cannot be read here.
        """
        rows = self._table.scan()
        while (item := self._understood(None, lambda: next(rows, None))) is not None:
            yield item

    def write(self, write: Write) -> Outcome:
        return self._table.write(write)

    def transact(self, members: Sequence[Member]) -> Transaction:
        return self._table.transact(members)

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        return self._table.side_by_side(calls)

    def _checked(self, item: Item) -> Item:
        self._understood(str(item["id"]), lambda: check(item))
        return item

    def _understood(self, key: str | None, read: Callable[[], Item | None]) -> Item | None:
        """The result of a read of this row, or of the next one of a scan."""
        changed = f"table {self.name} belongs to another program, or was changed by hand"
        try:
            return understood(f"{changed}: row {key}" if key else changed, read)
        except Refused as error:
            found = key or getattr(error.__cause__, "key", None)
            raise Refused(f"{error}. {self._way_on(found)}" if found else str(error)) from error.__cause__

    def _way_on(self, key: str) -> str:
        shown = shlex.quote(json.dumps({"id": {"S": key}}))
        return f"To see the row, run aws dynamodb get-item --table-name {self.name} --key {shown}. Put it back as it was, then try again"


def understood(what: str, read: Callable[[], Item | None]) -> Item | None:
    """The result of a read.

    Raises:
        Refused: something in it shows that Sluice did not write the row; the message begins with `what`.
    """
    try:
        return read()
    except KeyError as missing:
        raise Refused(f"{what} has no attribute {missing}") from missing
    except UNREADABLE as error:
        raise Refused(f"{what}: {error}") from error


def check(item: Item) -> Item:
    """The row, if it has the attributes and types of its kind; rows of no known kind pass.

    Raises:
        AttributeError, KeyError, ProtocolViolation, Refused, TypeError: it has not; see `understood`.
    """
    if kind := kind_of(str(item["id"])):
        for name, type_ in kind.types.items():
            if name in item and type(item[name]) is not type_:
                raise TypeError(f"attribute {name} is {item[name]!r}")
        kind.read(item)
    return item
