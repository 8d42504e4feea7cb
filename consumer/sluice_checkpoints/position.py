"""Positions in a shard, as they are stored (docs/protocol.md, "Rows"). Pure data; sequence numbers are strings (up to 129 digits), never numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice_checkpoints.errors import ProtocolViolation, Refused

# Kinesis API reference, PutRecord: `0|([1-9]\d{0,128})`.
SEQUENCE_NUMBER = re.compile(r"0|[1-9][0-9]{0,128}")


@dataclass(frozen=True, slots=True)
class Position:
    """A point in a shard; what comes after it has not been read.

    Attributes:
        at: `TRIM_HORIZON`, `TIMESTAMP`, `AFTER` or `END`.
        millis: for TIMESTAMP, epoch milliseconds.
        sequence: for AFTER, the sequence number of the last Kinesis record read.
        sub: for AFTER, the last user record read of that (aggregated) Kinesis record; None when the whole record is done. `None` and `0` are
            different values and are kept apart, for stored positions are compared with equality.
    """

    at: str
    millis: int | None = None
    sequence: str | None = None
    sub: int | None = None

    @staticmethod
    def timestamp(millis: int) -> Position:
        """The first record that arrived at or after `millis`."""
        return Position("TIMESTAMP", millis=millis)

    @staticmethod
    def after(sequence: str, sub: int | None = None) -> Position:
        """The record after `sequence`, or the rest of it after user record `sub`."""
        if not SEQUENCE_NUMBER.fullmatch(sequence):
            raise Refused(f"{sequence!r} is not a sequence number")
        return Position("AFTER", sequence=sequence, sub=sub)

    def to_map(self) -> dict[str, Any]:
        """The stored form; every attribute that is None is left out."""
        values = {"at": self.at, "millis": self.millis, "sequence": self.sequence, "sub": self.sub}
        return {key: value for key, value in values.items() if value is not None}

    @staticmethod
    def from_map(stored: Mapping[str, Any]) -> Position:
        """Reads the stored form.

        Raises:
            ProtocolViolation: the map is none that this version writes.
        """
        position = Position(stored.get("at", ""), stored.get("millis"), stored.get("sequence"), stored.get("sub"))
        needs = {"TRIM_HORIZON": set(), "END": set(), "TIMESTAMP": {"millis"}, "AFTER": {"sequence"}}.get(position.at)
        present = set(stored) - {"at"}
        if needs is None or not needs <= present or present - needs - ({"sub"} if position.at == "AFTER" else set()):
            raise ProtocolViolation(f"unknown position {dict(stored)!r}")
        return position

    def __str__(self) -> str:
        tail = [str(v) for v in (self.millis, self.sequence) if v is not None]
        return self.at + "".join(f" {v}" for v in tail) + (f"/{self.sub}" if self.sub is not None else "")


TRIM_HORIZON = Position("TRIM_HORIZON")
END = Position("END")
