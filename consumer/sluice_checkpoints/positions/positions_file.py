"""Positions as a file: what `show --json` prints, edited. Pure; whatever is wrong is refused by the name of its field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import SEQUENCE_NUMBER, Position

YEAR_10000 = 253_402_300_800_000  # epoch milliseconds
NOTES = frozenset({"lineage", "range"})  # of a shard, for people
FIELDS: Mapping[str, frozenset[str]] = {
    "TRIM_HORIZON": frozenset(),
    "END": frozenset(),
    "TIMESTAMP": frozenset({"millis"}),
    "AFTER": frozenset({"sequence"}),
}


@dataclass(frozen=True)
class PositionsFile:
    """The positions of a consumer, as they were read at a batch.

    Attributes:
        consumer: the consumer's id; committed: the last committed batch when the file was printed; last_reset: the last reset then.
        positions: by shard. A shard that is left out stays where it is.
    """

    consumer: str
    committed: int
    last_reset: str | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> PositionsFile:
        """Reads the file.

        Raises:
            Refused: `show --json` did not print it, or a field of it is not as that prints it.
        """
        try:
            found = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise Refused(f"the positions file is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise Refused("the positions file must be the document that `sluice show --json` prints")
        if found.get("consistent", True) is not True:
            raise Refused("consistent: a batch was committed while the file was printed; print it again")
        shards = _of(found, "shards", dict)
        positions = {shard: _position(f"shards.{shard}", stored) for shard, stored in shards.items()}
        last = found.get("lastReset")
        if last is not None and not isinstance(last, str):
            raise Refused(f"lastReset: {last!r} must be a text")
        return PositionsFile(_of(found, "consumerId", str), _of(found, "committed", int), last, positions)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. A name that comes twice would hide an edit."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Refused(f"{name}: the positions file has this name twice in one object; remove one of them")
        found[name] = value
    return found


def _of(found: Mapping[str, Any], name: str, kind: type, where: str = "") -> Any:
    """A field of this type; a bool is not a number."""
    value = found.get(name)
    if type(value) is not kind:
        raise Refused(f"{where}{name}: {value!r} must be {KINDS[kind]}, as `sluice show --json` prints it")
    return value


KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", dict: "an object"}


def _position(where: str, stored: Any) -> Position:
    if not isinstance(stored, dict):
        raise Refused(f"{where}: {stored!r} must be an object with `at`")
    at = _of(stored, "at", str, f"{where}.")
    if at not in FIELDS:
        raise Refused(f"{where}.at: {at!r} must be one of {', '.join(FIELDS)}")
    sub = {"sub"} if at == "AFTER" else set[str]()
    if unknown := sorted(stored.keys() - {"at"} - FIELDS[at] - sub - NOTES):
        raise Refused(f"{where}.{unknown[0]}: a position at {at} has no such field")
    values = {name: _of(stored, name, CHECKS[name][0], f"{where}.") for name in FIELDS[at] | (sub & stored.keys())}
    for name, value in values.items():
        if not CHECKS[name][1](value):
            raise Refused(f"{where}.{name}: {value!r} must be {CHECKS[name][2]}")
    return Position.from_map({"at": at} | values)


CHECKS: Mapping[str, tuple[type, Callable[[Any], bool], str]] = {
    "millis": (int, lambda value: 0 < value < YEAR_10000, "a time in epoch milliseconds"),
    "sequence": (str, lambda value: bool(SEQUENCE_NUMBER.fullmatch(value)), "a sequence number"),
    "sub": (int, lambda value: value >= 0, "the index of a user record"),
}
