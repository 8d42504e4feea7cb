"""Where a row is in its shard, as text that sorts, and the rows behind what a database has stored (docs/sinks.md, "Databases"). Pure.

A batch that fails may come again shortened, and its rest under the next number. A row's own position does not change then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sluice_checkpoints.errors import SluiceError

DIGITS, SUB_DIGITS = 129, 10
POSITION = re.compile(rf"[0-9]{{{DIGITS}}}-[0-9]{{{SUB_DIGITS}}}")
Rows = Iterator[dict[str, Any]]


class PositionMisuse(SluiceError):
    """A function of `foreach` handles rows or positions in a way that would lose or double records. Nothing of the part may be stored."""


def position(row: Mapping[str, Any]) -> str:
    """The position of a row: sequence and sub-sequence number, padded with zeros to 140 characters, so that text sorts as the stream does.

    Raises:
        PositionMisuse: the row lacks the columns.
    """
    try:
        return f"{row['sequenceNumber']:0>{DIGITS}}-{row['subSequenceNumber']:0>{SUB_DIGITS}}"
    except KeyError as missing:
        raise PositionMisuse(f"the rows have no column {missing}; hand the batch's own columns to `foreach` beside yours") from None


class PartReading:
    """How far the rows of one part were read."""

    def __init__(self) -> None:
        self._at, self._begun, self._ended = "", False, False

    def after(self, rows: Rows, stored: str | None) -> Rows:
        """The rows behind a stored position; see `Part.after`."""
        if self._begun:
            raise PositionMisuse("part.after was called before, and its rows come once; let the error out, and the batch comes again")
        stored = (stored or "").strip()  # CHAR columns pad with blanks
        if stored and not POSITION.fullmatch(stored):
            raise PositionMisuse(
                f"stored: {stored[:60]!r} is not a part.position; pass what was stored for this part.consumer and part.shard, or None"
            )
        self._at, self._begun = stored, True
        return self._behind(rows, stored)

    def _behind(self, rows: Rows, stored: str) -> Rows:
        before = ""
        for row in rows:
            here = position(row)
            if here < before:
                raise PositionMisuse(f"position {here} comes after {before}; hand the rows of a shard to `foreach` in their order")
            before = here
            if here > stored:
                self._at = here
                yield row
        self._ended = True

    @property
    def at(self) -> str:
        if not self._ended:
            told = "not all rows of part.after were taken" if self._begun else "part.after was not called"
            raise PositionMisuse(f"part.position: {told}; store the rows of part.after(rows, stored) first, then the position, in one transaction")
        return self._at
